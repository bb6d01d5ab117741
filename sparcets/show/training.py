"""Training history: every recorded value by epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from sparcets.core.errors import DataError
from sparcets.show import style

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


MEASURES = {
    "valid": "valid (% of answers)",
    "transfer": "transfer to a held-out classifier (% of answers)",
}


class TradeOffPoint(Protocol):
    """The parts of an operating point of :class:`~sparcets.Explainer` that are drawn."""

    @property
    def log_sparsity_weight(self) -> float:
        """Logarithm of the cost of a changed entry, relative to the training."""

    @property
    def residual_scale(self) -> float:
        """Factor of the changes."""

    @property
    def valid(self) -> float:
        """Share of answers for which the classifier predicts the target."""

    @property
    def transfer(self) -> float:
        """Share of answers for which a held-out classifier predicts the target."""

    @property
    def changed(self) -> float:
        """Share of the entries that may change which do."""

    @property
    def score(self) -> float:
        """Criterion that chooses the default point; higher is better."""


def plot_trade_off_curve(points: Sequence[TradeOffPoint]) -> Figure:
    """Draw validity and transfer against the share of changed entries; the default point is circled.

    Parameters
    ----------
    points
        ``explainer.trade_off_`` of a fitted :class:`~sparcets.Explainer`, measured on held-out training series. The
        point with the highest score is the default; of equal ones, that with the fewest changes.

    Returns
    -------
    figure
        Two axes, for the classifier itself and for a held-out one; one line per scale, over the sparsity weights.

    Examples
    --------
    >>> from sparcets.methods.own.operating_point import OperatingPoint
    >>> few = OperatingPoint(log_sparsity_weight=1.0, residual_scale=1.0, valid=0.9, transfer=0.7, changed=0.1)
    >>> many = OperatingPoint(log_sparsity_weight=0.0, residual_scale=1.0, valid=1.0, transfer=0.9, changed=0.3)
    >>> len(plot_trade_off_curve([few, many]).axes)
    2
    """
    if not points:
        raise DataError("there is no trade-off to draw: it is empty. Pass trade_off_ of a fitted sp.Explainer.")
    default = max(points, key=lambda point: (round(point.score, 6), -point.changed))
    scales = sorted({point.residual_scale for point in points})
    styles = dict(zip(scales, style.ANSWERS * (1 + len(scales) // len(style.ANSWERS)), strict=False))
    with style.new_figure(9, 4.0) as figure:
        all_axes = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, (name, label) in zip(all_axes, MEASURES.items(), strict=True):
            for scale in scales:
                on_line = sorted((p for p in points if p.residual_scale == scale), key=lambda p: p.changed)
                axes.plot(
                    [100 * p.changed for p in on_line],
                    [100 * getattr(p, name) for p in on_line],
                    color=styles[scale].colour,
                    marker=styles[scale].marker,
                    ls=styles[scale].line,
                    lw=1.3,
                    ms=5,
                    label="as answered" if scale == 1 else f"changes × {scale:g}",
                )
            axes.plot(
                100 * default.changed,
                100 * getattr(default, name),
                "o",
                ms=13,
                mfc="none",
                mec=style.BLACK,
                mew=1.4,
                ls="",
                label="default",
            )
            axes.set_xlabel("changed entries (% of those that may change)")
            axes.set_ylabel(label)
            axes.grid(color="#ececec", lw=0.8)
            axes.set_ylim(-4, 104)
            axes.set_xlim(0, 105 * max(point.changed for point in points) or 1)
            axes.tick_params(labelleft=True)
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
