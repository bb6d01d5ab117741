"""Figures that compare methods: what is drawn where, and in which style."""

import io

import numpy as np
import pytest
from matplotlib import colors

from sparcets_paper.plots.benchmark import METHODS, method_styles, plot_distances, plot_roc
from sparcets_paper.plots.benchmark import plot_trade_off as trade_off

GRID = np.array([0.0, 0.5, 1.0])
MEAN = np.array([0.0, 0.9, 1.0])
STD = np.array([0.05, 0.2, 0.0])
EVEN = np.arange(101.0)  # its percentiles are its own values


def test_each_method_has_a_marker_and_those_without_a_value_are_listed_below():
    figure = trade_off([("SPARCE", 0.25, 0.75), ("lost $", float("nan"), 0.5), ("GAN", 1.0, 0.5)])
    figure.savefig(io.BytesIO(), dpi=30)
    (axes,) = figure.axes
    drawn = {line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    assert drawn == {"SPARCE": (25.0, 75.0), "GAN": (100.0, 50.0), "ideal": (0, 100)}
    assert axes.get_xlabel().startswith("changed entries (%") and axes.get_ylabel().startswith("transfer (%")
    assert [t.get_text() for t in figure.texts] == [r"no value: lost \$"]


@pytest.mark.parametrize("own", range(7))
def test_no_two_methods_have_the_same_style(own):
    names = ["SPARCE", *list(METHODS)[:own], *(f"peer {i}" for i in range(14))]
    found = method_styles(names)
    assert list(found) == names
    assert len({(look.colour, look.marker) for look in found.values()}) == len(names)


def test_roc_curves_have_one_panel_per_target_with_its_methods():
    figure = plot_roc({"0": {"GAN": (GRID, GRID, STD)}, "1 $": {"GAN": (GRID, GRID, STD), "SPARCE": (GRID, MEAN, STD)}})
    figure.savefig(io.BytesIO(), dpi=30)
    left, right = figure.axes
    assert [a.get_title(loc="left") for a in (left, right)] == ["target 0", r"target 1 \$"]
    assert len(left.lines) == 2 and len(right.lines) == 3, "the methods, and chance"
    assert right.lines[1].get_xdata().tolist() == GRID.tolist() and right.lines[1].get_ydata().tolist() == MEAN.tolist()
    corners = right.collections[1].get_paths()[0].vertices
    bounds = {x: {round(float(y), 6) for y in corners[corners[:, 0] == x, 1]} for x in GRID}
    assert bounds == {0.0: {0.0, 0.05}, 0.5: {0.7, 1.0}, 1.0: {1.0}}, "the band, within the unit square"


def test_boxes_hold_the_quartiles_and_whiskers_the_outer_percentiles():
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
