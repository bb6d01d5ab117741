"""Figures of answers: curves of the most changed features with changed segments marked, and a map of all changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparcets.errors import ShapeError
from sparcets.explanation.amounts import percent
from sparcets.explanation.result import Explanation
from sparcets.explanation.said import said_after, said_before
from sparcets.explanation.segments import find_segments
from sparcets.explanation.verdict import VERDICTS
from sparcets.plots import style
from sparcets.plots.belief import draw_belief, has_curve
from sparcets.plots.labels import most_changed, n_steps_of, only_answer, time_label, times_of, unit_of
from sparcets.plots.trust import add_title, look_of, name_of, shade_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADE = 0.18  # opacity of marked segments
MAX_ANSWERS = 4  # drawn over one query; more are hard to tell apart


def plot_answer(answer: Explanation) -> Figure:
    """Draw one answer: its verdict, curves of the most changed features, and a map of all changes.

    Only a believed answer is drawn as one: others are dashed, in the colour of their verdict. Where it was measured
    (``explain(curve=True)``), a panel shows how much may change against who believes it.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.

    Returns
    -------
    figure
        Its first axes are the curves, the last two the map and its colour bar.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(30)
    >>> e = sp.Nearest(sp.wrap(mocks.mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1)
    >>> plot_answer(e).axes[0].get_ylabel().split()
    ['f0', '(no', 'unit)']
    """
    shown, look = most_changed(only_answer(answer)), look_of(answer)
    with style.new_figure(11, 1.4 * max(len(shown), 3) + 1.6 + has_curve(answer)) as figure:
        grid = figure.add_gridspec(len(shown), 2, width_ratios=[1.5, 1])
        for row, feature in enumerate(shown):
            axes = figure.add_subplot(grid[row, 0])
            _shade_changed(axes, answer, feature)
            # Below the recording, so that only the recording is visible where nothing changes.
            axes.plot(
                times_of(answer),
                answer.counterfactual[0, : n_steps_of(answer), feature],
                color=look.colour,
                lw=1.6,
                ls=look.line,
                label=name_of(answer),
                zorder=2.1,
            )
            _draw_recorded(axes, answer, feature)
            axes.tick_params(labelbottom=row == len(shown) - 1)
            if row == 0:
                _add_legend(axes)
        axes.set_xlabel(time_label(answer))
        if has_curve(answer):
            halves = grid[:, 1].subgridspec(2, 1, height_ratios=[1.6, 1])
            draw_belief(figure.add_subplot(halves[1]), answer)
            above = halves[0]
        else:
            above = grid[:, 1]
        draw_map(figure, figure.add_subplot(above), answer)
        add_title(figure, answer)
    return figure


def plot_answers(answers: Explanation) -> Figure:
    """Draw several answers to one query, each in its own line style, and only where it changes something.

    The colour is that of the verdict, as in :func:`plot_answer`.

    Parameters
    ----------
    answers
        The answers to one query, such as ``e[e.query_index == 0]``. Those not found are left out, and at most the first
        four are drawn.

    Returns
    -------
    figure
        One axes for each of the features that change most over all answers.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:2], target=1, n=3)
    >>> [line.get_label() for line in plot_answers(e[e.query_index == 0]).axes[0].lines][-1]
    'recorded'
    """
    if len(np.unique(answers.query_index)) != 1:
        raise ShapeError(
            f"this figure shows the answers to one query, got those to {len(np.unique(answers.query_index))}. "
            "Choose one: e[e.query_index == 0]."
        )
    found = answers[np.isin(answers.status, ["generated", "refined", "neighbour"])][:MAX_ANSWERS]
    shown = most_changed(found if len(found) else answers)
    with style.new_figure(8, 1.4 * max(len(shown), 2) + 1.4) as figure:
        all_axes = np.asarray(figure.subplots(len(shown), 1, sharex=True, squeeze=False))[:, 0]
        for axes, feature in zip(all_axes, shown, strict=True):
            for number, answer in enumerate(found):
                _shade_changed(
                    axes, answer, feature, colour=shade_of(answer, number), row=number, rows=max(len(found), 1)
                )
                _draw_changed_part(axes, answer, feature, number)
            _draw_recorded(axes, answers[0], feature)
        handles, labels = all_axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
        all_axes[-1].set_xlabel(time_label(answers))
        before, target = said_before(answers), str(answers.target_names[0])
        title = f"{before} → {target}: {len(found)} answer{'' if len(found) == 1 else 's'} to one query"
        figure.suptitle(style.escape_mathtext(title), x=0.01, ha="left", fontweight="bold")
    return figure


def answer_label(answer: Explanation, number: int) -> str:
    """Return the legend entry of one of several answers."""
    reached = f"{'p ' if answer.numbers is None else ''}{said_after(answer)}"
    verdict = VERDICTS[str(answer.verdict[0])]
    kind = "answer" if verdict.word == "believed" else "attempt"
    share = percent(float(answer.share_changed[0]))
    return f"{verdict.symbol} {kind} {number + 1}: {verdict.word}, {reached}, {share} changed, {answer.status[0]}"


def draw_map(figure: Figure, axes: Axes, answer: Explanation) -> None:
    """Draw a heat map of the changes of one answer, one row per feature; exact zeros are white."""
    n_steps = n_steps_of(answer)
    standardised = answer.delta[0, :n_steps] / answer.info.scaler.scale  # (time, features)
    drawn = np.where(answer.changed[0, :n_steps], standardised, np.nan)  # NaN is white
    largest = float(np.abs(standardised).max()) or 1.0
    step = 1 / (answer.info.sampling_rate or 1.0)
    image = axes.imshow(
        drawn.T,
        aspect="auto",
        cmap=style.changes_map(),
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
        extent=(-0.5 * step, (n_steps - 0.5) * step, answer.info.n_features - 0.5, -0.5),
    )
    names = [style.escape_mathtext(name) for name in answer.feature_names]
    every = max(1, len(names) // 25)
    axes.set_yticks(range(0, len(names), every), [names[i] for i in range(0, len(names), every)])
    for label, index in zip(axes.get_yticklabels(), range(0, len(names), every), strict=True):
        if not answer.mutable[index]:
            label.set_color(style.FIXED)
    for index in np.flatnonzero(~answer.mutable):
        axes.axhspan(index - 0.5, index + 0.5, color=style.LOCKED, lw=0, zorder=0)
    for spine in axes.spines.values():
        spine.set(visible=True, color=style.FIXED, linewidth=0.6)  # a frame, because white areas are data
    axes.set_xlabel(time_label(answer))
    grey = "" if answer.mutable.all() else "\ngrey: not allowed to change"
    axes.set_title(f"white: no change{grey}", loc="left")
    figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, label="change (standard deviations)")


def _add_legend(axes: Axes) -> None:
    from matplotlib.patches import Patch

    after, before = axes.lines
    handles = [before, after, Patch(color=style.MARK, alpha=SHADE, lw=0, label="changed")]
    axes.legend(handles=handles, loc="lower right", ncols=3, bbox_to_anchor=(1, 1), borderaxespad=0.2)


def _half_step(answer: Explanation) -> float:
    return 0.5 / (answer.info.sampling_rate or 1.0)


def _shade_changed(
    axes: Axes, answer: Explanation, feature: int, *, colour: str = style.MARK, row: int = 0, rows: int = 1
) -> None:
    """Shade the changed segments: over the whole height, or as a bar at the bottom for each of several answers."""
    times, half = times_of(answer), _half_step(answer)
    found = find_segments(answer.changed[:1, : len(times), [feature]])
    low, high = (0.0, 1.0) if rows == 1 else (0.04 * row, 0.04 * row + 0.03)
    for start, end in zip(found.start, found.end, strict=True):
        axes.axvspan(
            times[start] - half,
            times[end - 1] + half,
            ymin=low,
            ymax=high,
            color=colour,
            alpha=SHADE if rows == 1 else 0.9,
            lw=0,
        )


def _draw_recorded(axes: Axes, answer: Explanation, feature: int) -> None:
    times, half = times_of(answer), _half_step(answer)
    axes.plot(times, answer.query[0, : len(times), feature], color=style.BEFORE, lw=1.3, label="recorded", zorder=2.2)
    name = f"{answer.feature_names[feature]}\n{unit_of(answer, feature)}"
    axes.set_ylabel(style.escape_mathtext(name), rotation=0, ha="right", va="center")
    axes.set_xlim(times[0] - half, times[-1] + half)


def _draw_changed_part(axes: Axes, answer: Explanation, feature: int, number: int) -> None:
    """Draw an answer where it changes the feature and one step to either side, where it meets the recording."""
    times = times_of(answer)
    changed = answer.changed[0, : len(times), feature]
    near = changed.copy()
    near[1:] |= changed[:-1]
    near[:-1] |= changed[1:]
    drawn = np.where(near, answer.counterfactual[0, : len(times), feature], np.nan)
    colour, line = shade_of(answer, number), style.ANSWERS[number].line
    axes.plot(times, drawn, color=colour, ls=line, lw=1.6, label=answer_label(answer, number), zorder=2.3)
