"""Histories: one panel per value, epochs counted from 1."""

import math

import pytest

from sparcets.core.errors import DataError
from sparcets.show.plots import plot_history


def test_every_value_has_a_panel_with_its_unit() -> None:
    history = {"generator": [3.0, 2.0, 1.0], "sparsity": [0.5, math.nan, 0.25], "trade_off_valid": [1.0] * 15}
    first, second = plot_history(history).axes
    assert first.lines[0].get_xdata().tolist() == [1, 2, 3] and first.lines[0].get_ydata().tolist() == [3.0, 2.0, 1.0]
    assert (first.get_title(loc="left"), first.get_xlabel(), first.get_ylabel()) == (
        "generator",
        "epoch",
        "loss (no unit)",
    )
    assert second.get_title(loc="left") == "sparsity"
    (share,) = plot_history({"validation_error": [0.5]}).axes
    assert share.get_title(loc="left") == "validation error" and share.get_ylabel() == "share (of 1)"


@pytest.mark.parametrize("history", [{}, {"a": []}, {"a": [math.nan]}, {"trade_off_valid": [1.0]}])
def test_nothing_to_draw(history: dict[str, list[float]]) -> None:
    with pytest.raises(DataError, match="no training to draw"):
        plot_history(history)
