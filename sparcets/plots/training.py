"""Training history: every recorded value by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sparcets.errors import DataError
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 3
NOT_EPOCHS = "trade_off_"  # prefix of values measured once, after the training
SHARE_SUFFIXES = ("valid", "changed", "error", "accuracy")  # names of shares; all others are losses


def plot_history(history: Mapping[str, Sequence[float]]) -> Figure:
    """Draw every value of a training history, one panel each.

    Parameters
    ----------
    history
        ``explainer.history_`` or ``classifier.history_``: values per epoch by name.

    Returns
    -------
    figure
        One axes per value, three per row.

    Examples
    --------
    >>> figure = plot_history({"generator": [2.0, 1.0], "validation_error": [0.5, 0.25]})
    >>> [(axes.get_title(loc="left"), axes.get_ylabel()) for axes in figure.axes]
    [('generator', 'loss (no unit)'), ('validation error', 'share (of 1)')]
    """
    shown = {name: np.asarray(v, dtype=float) for name, v in history.items() if not name.startswith(NOT_EPOCHS)}
    shown = {name: values for name, values in shown.items() if np.isfinite(values).any()}
    if not shown:
        raise DataError(
            "there is no training to draw: the history is empty. Pass history_ of a fitted explainer or classifier."
        )
    n_columns = min(COLUMNS, len(shown))
    n_rows = -(-len(shown) // n_columns)
    with style.new_figure(max(4.0, 3.1 * n_columns), 0.3 + 2.1 * n_rows) as figure:
        grid = figure.add_gridspec(n_rows, n_columns)
        for i, (name, values) in enumerate(shown.items()):
            axes = figure.add_subplot(grid[i // n_columns, i % n_columns])
            few = len(values) < 30
            axes.plot(np.arange(1, len(values) + 1), values, color=style.BLUE, lw=1.4, marker="." if few else "")
            axes.set_title(style.escape_mathtext(name.replace("_", " ")), loc="left")
            axes.set_xlabel("epoch")
            axes.set_ylabel("share (of 1)" if name.endswith(SHARE_SUFFIXES) else "loss (no unit)")
            axes.locator_params(axis="x", integer=True)
            axes.grid(color="#ececec", lw=0.8)
    return figure
