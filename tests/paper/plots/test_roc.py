"""ROC curves: mean, band, area and the diagonal."""

from __future__ import annotations

import io

import numpy as np

from sparcets_paper.plots.benchmark import plot_roc

GRID = np.array([0.0, 0.5, 1.0])
MEAN = np.array([0.0, 0.9, 1.0])
STD = np.array([0.05, 0.2, 0.0])


def test_one_panel_per_target_with_its_methods() -> None:
    figure = plot_roc({"0": {"GAN": (GRID, GRID, STD)}, "1 $": {"GAN": (GRID, GRID, STD), "SPARCE": (GRID, MEAN, STD)}})
    figure.savefig(io.BytesIO(), dpi=30)
    left, right = figure.axes
    assert [a.get_title(loc="left") for a in (left, right)] == ["target 0", r"target 1 \$"]
    assert len(left.lines) == 2 and len(right.lines) == 3, "the methods, and chance"
    assert left.get_xlabel() == right.get_xlabel() == "false positive rate"
    assert left.get_ylabel().startswith("true positive rate") and left.get_aspect() == 1.0
    assert right.lines[1].get_xdata().tolist() == GRID.tolist() and right.lines[1].get_ydata().tolist() == MEAN.tolist()
    chance = right.lines[2]
    assert list(chance.get_xdata()) == list(chance.get_ydata()) == [0, 1]


def test_the_band_is_one_standard_deviation_within_the_unit_square() -> None:
    (axes,) = plot_roc({"1": {"SPARCE": (GRID, MEAN, STD)}}).axes
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    bounds = {x: {round(float(y), 6) for y in corners[corners[:, 0] == x, 1]} for x in GRID}
    assert bounds == {0.0: {0.0, 0.05}, 0.5: {0.7, 1.0}, 1.0: {1.0}}, "0 - 0.05 and 0.9 + 0.2 are clipped"
