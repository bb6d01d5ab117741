"""The trade-off curve of a fit: one line per scale, and the default point."""

from dataclasses import dataclass, replace

import pytest

from sparcets.core.errors import DataError
from sparcets.show.plots import plot_trade_off_curve


@dataclass(frozen=True)
class Point:
    log_sparsity_weight: float
    residual_scale: float
    valid: float
    transfer: float
    changed: float
    score: float


POINTS = [
    Point(log_sparsity_weight=0.0, residual_scale=1.0, valid=0.9, transfer=0.8, changed=0.2, score=0.76),
    Point(log_sparsity_weight=0.0, residual_scale=1.3, valid=1.0, transfer=0.9, changed=0.6, score=0.75),
    Point(log_sparsity_weight=-1.0, residual_scale=1.0, valid=0.5, transfer=0.4, changed=0.1, score=0.38),
    Point(log_sparsity_weight=-1.0, residual_scale=1.3, valid=0.95, transfer=0.7, changed=0.5, score=0.57),
]


def test_lines_and_the_default() -> None:
    valid, transfer = plot_trade_off_curve(POINTS).axes
    plain, scaled, default = valid.lines
    assert plain.get_xdata().tolist() == [10.0, 20.0] and plain.get_ydata().tolist() == [50.0, 90.0], "by changes"
    assert plain.get_label() == "as answered" and scaled.get_label() == "changes × 1.3"
    assert transfer.lines[1].get_ydata().tolist() == [70.0, 90.0]
    assert default.get_label() == "default"
    assert (default.get_xdata().tolist(), default.get_ydata().tolist()) == ([20.0], [90.0]), "the highest score"
    assert transfer.lines[2].get_ydata().tolist() == [80.0]
    assert "%" in valid.get_xlabel() and "%" in valid.get_ylabel() and "held-out" in transfer.get_ylabel()
    assert len({line.get_linestyle() for line in (plain, scaled)}) == 2, "not distinguished by colour alone"


def test_of_equal_scores_the_fewest_changes_are_the_default() -> None:
    equal = [replace(POINTS[1], score=0.7), replace(POINTS[2], score=0.7 - 1e-9), replace(POINTS[3], score=0.7)]
    (*_, default) = plot_trade_off_curve(equal).axes[0].lines
    assert default.get_xdata().tolist() == [10.0]


def test_points_of_a_fitted_explainer_can_be_drawn() -> None:
    from sparcets.methods.own.operating_point import OperatingPoint, best_point

    values = [(p.log_sparsity_weight, p.residual_scale, p.valid, p.transfer, p.changed) for p in POINTS]
    points = [OperatingPoint(*value) for value in values]
    (*_, default) = plot_trade_off_curve(points).axes[0].lines
    assert default.get_xdata().tolist() == [100 * best_point(points).changed]


def test_nothing_to_draw() -> None:
    with pytest.raises(DataError, match="no trade-off to draw"):
        plot_trade_off_curve([])
