"""Figures of a training: one panel per value of the history, and the trade-off with its default point."""

import math

import pytest

from sparcets.core.errors import DataError
from sparcets.methods.own.operating_point import OperatingPoint
from sparcets.show.plots import plot_history, plot_trade_off_curve

POINTS = [
    OperatingPoint(0.0, 1.0, valid=0.9, transfer=0.8, changed=0.2),
    OperatingPoint(0.0, 1.3, valid=1.0, transfer=0.9, changed=0.6),
    OperatingPoint(-1.0, 1.0, valid=0.5, transfer=0.4, changed=0.1),
    OperatingPoint(-1.0, 1.3, valid=0.95, transfer=0.7, changed=0.5),
]


def test_lines_and_the_default() -> None:
    valid, transfer = plot_trade_off_curve(POINTS).axes
    plain, scaled, default = valid.lines
    assert plain.get_xdata().tolist() == [10.0, 20.0] and plain.get_ydata().tolist() == [50.0, 90.0], "by changes"
    assert plain.get_label() == "as answered" and scaled.get_label() == "changes × 1.3"
    assert transfer.lines[1].get_ydata().tolist() == [70.0, 90.0]
    assert default.get_label() == "default"
    assert (default.get_xdata().tolist(), default.get_ydata().tolist()) == ([60.0], [100.0]), "the highest score"
    assert transfer.lines[2].get_ydata().tolist() == [90.0]
    assert "%" in valid.get_xlabel() and "%" in valid.get_ylabel() and "held-out" in transfer.get_ylabel()
    assert len({line.get_linestyle() for line in (plain, scaled)}) == 2, "not distinguished by colour alone"


def test_every_value_of_a_history_has_a_panel_with_its_unit() -> None:
    history = {"generator": [3.0, 2.0, 1.0], "sparsity": [0.5, math.nan, 0.25], "trade_off_valid": [1.0] * 15}
    first, second = plot_history(history).axes
    assert first.lines[0].get_xdata().tolist() == [1, 2, 3] and first.lines[0].get_ydata().tolist() == [3.0, 2.0, 1.0]
    labels = (first.get_title(loc="left"), first.get_xlabel(), first.get_ylabel())
    assert labels == ("generator", "epoch", "loss (no unit)") and second.get_title(loc="left") == "sparsity"
    (share,) = plot_history({"validation_error": [0.5]}).axes
    assert share.get_title(loc="left") == "validation error" and share.get_ylabel() == "share (of 1)"


@pytest.mark.parametrize("history", [{}, {"a": []}, {"a": [math.nan]}, {"trade_off_valid": [1.0]}])
def test_nothing_to_draw(history: dict[str, list[float]]) -> None:
    with pytest.raises(DataError, match="no training to draw"):
        plot_history(history)
    with pytest.raises(DataError, match="no trade-off to draw"):
        plot_trade_off_curve([])
