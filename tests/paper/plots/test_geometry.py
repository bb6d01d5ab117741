"""Box plots of body distances: boxes, whiskers, colours and the line of the originals."""

from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib import colors

from sparcets.core.errors import ShapeError
from sparcets_paper.plots.benchmark import plot_distances

EVEN = np.arange(101.0)  # its percentiles are its own values


def test_boxes_hold_the_quartiles_and_whiskers_the_outer_percentiles() -> None:
    (axes,) = plot_distances({"elbow–wrist": {"originals": EVEN, "SPARCE": EVEN.reshape(1, -1) + 100}}).axes
    for patch, shift in zip(axes.patches, (0, 100), strict=True):
        heights = patch.get_path().vertices[:, 1]
        assert (heights.min(), heights.max()) == (25 + shift, 75 + shift)
    ends = sorted(float(y) for line in axes.lines for y in line.get_ydata())
    assert ends[0] == 1 and ends[-1] == 199, "the 1st and the 99th percentile"
    medians = [line.get_ydata()[0] for line in axes.lines if colors.same_color(line.get_color(), "white")]
    assert medians == [50, 150]
    (reference,) = [line for line in axes.lines if line.get_linestyle() == ":"]
    assert list(reference.get_ydata()) == [50, 50], "the median of the originals"


def test_one_panel_per_pair_of_points_four_in_a_row() -> None:
    boxes = {"originals": EVEN, "GAN": EVEN, "CounteRGAN": EVEN, "SPARCE": EVEN}
    figure = plot_distances({f"limb {i} $": boxes for i in range(5)}, unit="mm")
    figure.savefig(io.BytesIO(), dpi=30)
    assert [a.get_title(loc="left") for a in figure.axes] == [rf"limb {i} \$" for i in range(5)]
    assert [a.get_ylabel() for a in figure.axes] == ["distance (mm)", "", "", "", "distance (mm)"]
    assert [a.get_subplotspec().rowspan.start for a in figure.axes] == [0, 0, 0, 0, 1]
    assert [t.get_text() for t in figure.axes[0].get_xticklabels()] == list(boxes)
    assert "1st to 99th percentile" in figure.get_supxlabel()


@pytest.mark.parametrize("nothing", [{}, {"limb": {}}])
def test_nothing_to_draw_raises(nothing: dict[str, dict[str, object]]) -> None:
    with pytest.raises(ShapeError, match="no distance to draw"):
        plot_distances(nothing)
