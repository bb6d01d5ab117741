"""ROC curves of the size of a change against the salient entries: figure 5 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.errors import ShapeError
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = tuple[Any, Any, Any]  # false positive rates, mean true positive rates, their standard deviations; all (points,)


def plot_roc(curves: Mapping[str, Mapping[str, Curve]]) -> Figure:
    """Draw ROC curves with bands of one standard deviation over the repetitions, one panel per target class.

    Parameters
    ----------
    curves
        For each target class and each method ``(fpr, mean, std)``, each (points,): the mean and the standard deviation
        of the true positive rate at these false positive rates. The legend gives the area under the mean curve.

    Returns
    -------
    figure
        One axes per target.

    Examples
    --------
    >>> grid = np.linspace(0, 1, 5)
    >>> figure = plot_roc({"1": {"SPARCE": (grid, np.ones(5), np.zeros(5))}})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['SPARCE: 1.00', 'chance: 0.50']
    """
    if not curves:
        raise ShapeError("there is no curve to draw, got an empty mapping. Pass {target: {method: (fpr, mean, std)}}.")
    styles = style.method_styles(method for by_method in curves.values() for method in by_method)
    with style.new_figure(0.4 + 4.2 * len(curves), 4.3) as figure:
        axes = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
        for panel, (target, by_method) in zip(axes, curves.items(), strict=True):
            for method, curve in by_method.items():
                _draw(panel, method, *_check(method, curve), look=styles[method])
            panel.plot([0, 1], [0, 1], color=style.FIXED, lw=1, ls=(0, (2, 2)), label="chance: 0.50", zorder=1)
            panel.set(aspect="equal", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="false positive rate")
            panel.set_title(style.escape_mathtext(f"target {target}"), loc="left")
            panel.legend(loc="lower right", title="area under the curve", alignment="left")
        axes[0].set_ylabel("true positive rate (band: ± 1 std)")
    return figure


def _check(method: str, curve: Curve) -> tuple[FloatArray, FloatArray, FloatArray]:
    fpr, mean, std = (np.asarray(values, dtype=float) for values in curve)
    if not fpr.shape == mean.shape == std.shape or fpr.ndim != 1:
        raise ShapeError(
            f"the curve of {method} must be three arrays (points,) of one length, got shapes {fpr.shape}, "
            f"{mean.shape}, {std.shape}. Interpolate all repetitions on one grid of false positive rates."
        )
    return fpr, mean, std


def _draw(axes: Axes, method: str, fpr: FloatArray, mean: FloatArray, std: FloatArray, look: style.MethodStyle) -> None:
    area = float(((mean[1:] + mean[:-1]) / 2 * np.diff(fpr)).sum())
    axes.fill_between(
        fpr, np.clip(mean - std, 0, 1), np.clip(mean + std, 0, 1), color=look.colour, alpha=0.18, lw=0, zorder=2
    )
    axes.plot(
        fpr,
        mean,
        color=look.colour,
        ls=look.line,
        lw=1.6,
        label=style.escape_mathtext(f"{method}: {area:.2f}"),
        zorder=3,
    )
