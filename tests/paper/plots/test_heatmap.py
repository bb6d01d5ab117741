"""Heat maps: position and colour scale of each value, and what is white."""

import io

import numpy as np

from sparcets_paper.plots.heatmap import plot_saliency

T, F = 7, 4
QUERY = np.arange(float(T * F)).reshape(T, F)
MASK = np.zeros((T, F), dtype=bool)
MASK[1:3, 2] = True


def delta(entries):
    change = np.zeros((T, F))
    for entry, value in entries.items():
        change[entry] = value
    return change


def drawn(axes):
    return np.ma.filled(axes.images[0].get_array().astype(float), np.nan)


ROW = [("query", QUERY), ("salient", MASK), ("GAN", delta({(0, 0): 0.5, (1, 2): 4.0}))]
ROW += [("SPARCE", delta({(2, 2): 2.0}))]


def test_exact_zeros_are_white_and_everything_else_is_drawn():
    figure = plot_saliency([ROW])
    figure.savefig(io.BytesIO(), dpi=30)
    _, salient, gan, sparce, *_ = figure.axes
    assert drawn(gan)[1, 2] == 4.0 and drawn(gan)[0, 0] == 0.5 and np.isnan(drawn(gan)).sum() == T * F - 2
    assert drawn(sparce)[2, 2] == 2.0 and np.isnan(drawn(sparce)).sum() == T * F - 1
    shown = sparce.images[0].to_rgba(sparce.images[0].get_array())
    assert shown[0, 0, 3] == 0.0, "transparent, so white"
    smallest = np.array(gan.images[0].cmap(0.0))[:3]
    assert smallest.min() < 0.5, "and the smallest change is far from white"
    assert drawn(salient).tolist() == MASK.astype(float).tolist()
