"""Heat maps: position and colour scale of each value, and what is white."""

import io

import numpy as np
from matplotlib import colors

from sparcets_paper.plots.benchmark import METHODS
from sparcets_paper.plots.heatmap import plot_heatmaps, plot_saliency

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


def draw(figure):
    figure.savefig(io.BytesIO(), dpi=30)


ROW = [
    ("query", QUERY),
    ("salient", MASK),
    ("GAN", delta({(0, 0): 0.5, (1, 2): 4.0})),
    ("SPARCE", delta({(2, 2): 2.0})),
]


def test_one_feature_is_drawn_as_a_curve_below_each_map_beside_the_query():
    changed = QUERY + delta({(3, 1): 2.0, (0, 3): 1.5})
    figure = plot_heatmaps([("query", QUERY), ("SPARCE", changed)], feature_names=("a", "b_$x$", "c", "d"))
    draw(figure)
    *maps, left, right, _ = figure.axes
    (image,) = maps[0].images
    assert image.get_array().shape == (T, F) and image.get_array()[5, 1] == QUERY[5, 1]
    assert image.get_extent() == [-0.5, F - 0.5, T - 0.5, -0.5], "row t lies at y = t, column f at x = f"
    assert [line.get_ydata().tolist() for line in left.lines] == [QUERY[:, 1].tolist()]
    assert [line.get_ydata().tolist() for line in right.lines] == [QUERY[:, 1].tolist(), changed[:, 1].tolist()]
    assert [m.lines[0].get_xdata()[0] for m in maps] == [1, 1], "a marker above its column"
    assert left.get_title(loc="left") == r"▼ b_\$x\$" and left.get_ylabel() == "value\n(standard\ndeviations)"
    assert colors.same_color(right.lines[1].get_color(), METHODS["sparce"].colour)


def test_exact_zeros_are_white_and_everything_else_is_drawn():
    figure = plot_saliency([ROW])
    draw(figure)
    _, salient, gan, sparce, *_ = figure.axes
    assert drawn(gan)[1, 2] == 4.0 and drawn(gan)[0, 0] == 0.5 and np.isnan(drawn(gan)).sum() == T * F - 2
    assert drawn(sparce)[2, 2] == 2.0 and np.isnan(drawn(sparce)).sum() == T * F - 1
    shown = sparce.images[0].to_rgba(sparce.images[0].get_array())
    assert shown[0, 0, 3] == 0.0, "transparent, so white"
    smallest = np.array(gan.images[0].cmap(0.0))[:3]
    assert smallest.min() < 0.5, "and the smallest change is far from white"
    assert drawn(salient).tolist() == MASK.astype(float).tolist()
