"""Box plots of body distances: boxes, whiskers, colours and the line of the originals."""

from __future__ import annotations

import numpy as np
from matplotlib import colors

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
