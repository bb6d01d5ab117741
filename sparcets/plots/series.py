"""Before and after: the features that change most, with their changed stretches marked, beside a map of all changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.explanation import Explanation
from sparcets.plots import style
from sparcets.registry import require_extra
from sparcets.segments import find_segments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 5  # features drawn as curves


def plot_answer(answer: Explanation) -> Figure:
    """Draw one answer: curves of the most changed features, and a map of every change.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.

    Returns
    -------
    figure
        A matplotlib figure; its first axes are the curves, the last two the map and its colour scale.
    """
    matplotlib = require_extra("matplotlib", "plots", "plots")
    figures = require_extra("matplotlib.figure", "plots", "plots")
    n_steps = int(answer.query.shape[1] if answer.lengths is None else answer.lengths[0])
    shown = _most_changed(answer)
    with matplotlib.rc_context(style.RC):
        # Figure instead of pyplot: nothing is registered globally, and no window can open.
        figure: Figure = figures.Figure(figsize=(11, 1.4 * max(len(shown), 3) + 1.2), layout="constrained")
        grid = figure.add_gridspec(len(shown), 2, width_ratios=[1.5, 1])
        for row, feature in enumerate(shown):
            axes = figure.add_subplot(grid[row, 0])
            _draw_curve(axes, answer, feature, n_steps)
            axes.tick_params(labelbottom=row == len(shown) - 1)
            if row == 0:
                axes.legend(loc="upper right", ncols=2, bbox_to_anchor=(1, 1.35))
        axes.set_xlabel("time (s)" if answer.info.sampling_rate else "time step")
        _draw_map(figure, figure.add_subplot(grid[:, 1]), answer, n_steps)
        figure.suptitle(_title(answer), x=0.01, ha="left", fontweight="bold")
    return figure


def _most_changed(answer: Explanation) -> list[int]:
    size = np.abs(answer.delta[0] / answer.info.scaler.scale).sum(0)  # (features,)
    order = np.argsort(-size, kind="stable")
    changed = [int(f) for f in order if size[f] > 0]
    return sorted((changed or [int(f) for f in order])[:MOST])


def _title(answer: Explanation) -> str:
    before, wanted = answer.class_names[int(answer.predicted[0])], answer.class_names[int(answer.target[0])]
    change = f"{before} → {wanted}" if answer.status[0] != "unchanged" else f"{before}, as wanted"
    p_before = float(answer.proba_before[0, int(answer.target[0])])
    verdict = ", not reached" if answer.status[0] == "not_found" or not answer.valid[0] else ""
    return style.plain(
        f"{change}{verdict}   p({wanted}) {p_before:.2f} → {float(answer.probability[0]):.2f}   "
        f"{100 * float(answer.share_changed[0]):.3g} % changed   ({answer.method})"
    )


def _times(answer: Explanation, n_steps: int) -> Any:
    return np.arange(n_steps) / (answer.info.sampling_rate or 1.0)


def _draw_curve(axes: Axes, answer: Explanation, feature: int, n_steps: int) -> None:
    times = _times(answer, n_steps)
    half = 0.5 / (answer.info.sampling_rate or 1.0)
    found = find_segments(answer.changed[:, :n_steps, [feature]])
    for start, end in zip(found.start, found.end, strict=True):
        axes.axvspan(times[start] - half, times[end - 1] + half, color=style.MARK, alpha=0.18, lw=0)
    axes.plot(times, answer.query[0, :n_steps, feature], color=style.BEFORE, lw=1.3, label="recorded")
    axes.plot(
        times, answer.counterfactual[0, :n_steps, feature], color=style.AFTER, lw=1.3, ls="--", label="counterfactual"
    )
    unit = f"\n({answer.info.units[feature]})" if answer.info.units and answer.info.units[feature] else ""
    axes.set_ylabel(style.plain(f"{answer.feature_names[feature]}{unit}"), rotation=0, ha="right", va="center")
    axes.set_xlim(times[0] - half, times[-1] + half)


def _draw_map(figure: Figure, axes: Axes, answer: Explanation, n_steps: int) -> None:
    standardised = answer.delta[0, :n_steps] / answer.info.scaler.scale  # (time, features)
    drawn = np.where(answer.changed[0, :n_steps], standardised, np.nan)  # exact zeros stay white
    largest = float(np.abs(standardised).max()) or 1.0
    step = 1 / (answer.info.sampling_rate or 1.0)
    image = axes.imshow(
        drawn.T,
        aspect="auto",
        cmap=style.DIVERGING,
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
        extent=(-0.5 * step, (n_steps - 0.5) * step, answer.info.n_features - 0.5, -0.5),
    )
    names = [style.plain(name) for name in answer.feature_names]
    every = max(1, len(names) // 25)
    axes.set_yticks(range(0, len(names), every), [names[i] for i in range(0, len(names), every)], fontsize=7)
    for label, index in zip(axes.get_yticklabels(), range(0, len(names), every), strict=True):
        if not answer.mutable[index]:
            label.set_color(style.FIXED)
    axes.set_xlabel("time (s)" if answer.info.sampling_rate else "time step")
    axes.set_title("change (standard deviations; white: none)", loc="left")
    figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02)
