"""Figures that compare methods: what is drawn where, and in which style."""

import io

import numpy as np

from sparcets_paper.plots.benchmark import plot_roc
from sparcets_paper.plots.benchmark import plot_trade_off as trade_off

GRID = np.array([0.0, 0.5, 1.0])
MEAN = np.array([0.0, 0.9, 1.0])
STD = np.array([0.05, 0.2, 0.0])


def test_each_method_has_a_marker_and_those_without_a_value_are_listed_below():
    figure = trade_off([("SPARCE", 0.25, 0.75), ("lost $", float("nan"), 0.5), ("GAN", 1.0, 0.5)])
    figure.savefig(io.BytesIO(), dpi=30)
    (axes,) = figure.axes
    drawn = {line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    assert drawn == {"SPARCE": (25.0, 75.0), "GAN": (100.0, 50.0), "ideal": (0, 100)}
    assert axes.get_xlabel().startswith("changed entries (%") and axes.get_ylabel().startswith("transfer (%")
    assert [t.get_text() for t in figure.texts] == [r"no value: lost \$"]


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
