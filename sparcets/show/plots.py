"""Figures of answers: curves of the most changed features with changed segments marked, and a map of all changes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.core.arrays import FloatArray, StrArray
from sparcets.core.errors import ShapeError
from sparcets.core.evidence import MAJORITY, VERDICTS, find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.words import distinct, percent, percents, said_after, said_before, seconds, subject_of
from sparcets.show import style
from sparcets.show.text import advice_note, has_name, method_name, query_name
from sparcets.show.verdict import conclude, find_doubts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MAX_FEATURES = 5  # drawn as curves


def only_answer(answer: Explanation) -> Explanation:
    """Return the explanation if it holds exactly one answer, else raise an error."""
    if len(answer) != 1:
        raise ShapeError(f"this figure shows one answer, got {len(answer)}. Pass one of them, such as explanation[3].")
    return answer


def most_changed(answers: Explanation, n: int = MAX_FEATURES) -> list[int]:
    """Return the ``n`` features that change most in standard deviations, by index; the first ones if none changes."""
    size = np.abs(answers.delta / answers.info.scaler.scale).sum((0, 1))  # (features,)
    order = np.argsort(-size, kind="stable")
    changed = [int(f) for f in order if size[f] > 0]
    return sorted((changed or [int(f) for f in order])[:n])


def n_steps_of(answer: Explanation) -> int:
    """Return the number of steps that are not padding."""
    return int(answer.query.shape[1] if answer.lengths is None else answer.lengths[0])


def times_of(answer: Explanation) -> FloatArray:
    """Return the time of each step that is not padding, in seconds if the sampling rate is known, else in steps."""
    return np.asarray(np.arange(n_steps_of(answer)) / (answer.info.sampling_rate or 1.0))


def moment_names(answer: Explanation, steps: Sequence[int]) -> list[str]:
    """Return names of some steps: their times if the sampling rate is known, else their numbers."""
    rate = answer.info.sampling_rate
    return [f"{time} s" for time in seconds(*(step / rate for step in steps))] if rate else [f"step {k}" for k in steps]


def time_label(answer: Explanation) -> str:
    """Return the label of the time axis."""
    return "time (s)" if answer.info.sampling_rate else "time (steps)"


def unit_of(answer: Explanation, feature: int) -> str:
    """Return the unit of a feature in brackets; ``(no unit)`` where it is not known."""
    unit = answer.info.units[feature] if answer.info.units else ""
    return f"({unit or 'no unit'})"


def title_of(answer: Explanation) -> str:
    """Return a title: the query if it has a name, classes and probabilities, the share of changes, and the method."""
    before, target = said_before(answer), str(answer.target_names[0])
    change = f"{before} → {target}" if answer.status[0] != "unchanged" else f"{before}, already the target"
    name = f"{query_name(answer)}:   " if has_name(answer) else ""
    return (
        f"{name}{change}   {_moved(answer, target)}   "
        f"{percent(float(answer.share_changed[0]))} changed   ({method_name(answer)})"
    )


def _moved(answer: Explanation, target: str) -> str:
    """Return what changes in the model's prediction: the probability of the target, or its number."""
    if answer.numbers is not None:
        return f"{subject_of(answer)} {said_before(answer)} → {said_after(answer)}"
    own, after = float(answer.proba_before[0, int(answer.target[0])]), said_after(answer)
    before = f"{own:.2f}"
    if before == after:
        before, after = distinct(own, float(answer.probability[0]))
    return f"p({target}) {before} → {after}"


MAX_LETTERS = 9.5  # of a title in bold, per inch of width
PAD = 3 / 72  # inches above a title in matplotlib's constrained layout
LIGHTER = 0.15  # of the way to white: each further one of several answers


class Look(NamedTuple):
    """Colour, line styles (of matplotlib and of plotly) and name of a counterfactual in a figure."""

    colour: str
    line: Any
    dash: str
    name: str


# Only a believed answer is drawn as one.
LOOKS = {
    "believed": Look(style.AFTER, "-", "solid", "counterfactual"),
    "doubtful": Look(VERDICTS["doubtful"].colour, (0, (5, 1.5)), "dash", "attempt"),
    "trick": Look(VERDICTS["trick"].colour, (0, (1.5, 1)), "dot", "attempt"),
    "not reached": Look(VERDICTS["not reached"].colour, (0, (5, 3)), "longdash", "best attempt"),
    "unchanged": Look(style.AFTER, "-", "solid", "unchanged"),
}


def look_of(answer: Explanation) -> Look:
    """Return how the counterfactual of an explanation of length 1 is drawn."""
    return LOOKS[str(answer.verdict[0])]


def shade_of(answer: Explanation, number: int) -> str:
    """Return the colour of one of several answers: that of its verdict, lighter for later ones."""
    colour = look_of(answer).colour
    parts = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    lighter = LIGHTER * number
    return "#" + "".join(f"{round(part + lighter * (255 - part)):02x}" for part in parts)


def name_of(answer: Explanation) -> str:
    """Return what the counterfactual of an explanation of length 1 is called, with its verdict.

    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> name_of(sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1))
    'attempt (? doubtful)'
    """
    look, verdict = look_of(answer), VERDICTS[str(answer.verdict[0])]
    return look.name if verdict.word == "unchanged" else f"{look.name} ({verdict.label})"


def add_title(figure: Figure, answer: Explanation, legend: str = "") -> None:
    """Put the verdict and a title above a figure, and below it the meaning of its signs and what readers must know."""
    conclusion = conclude(answer)
    width = int(MAX_LETTERS * figure.get_size_inches()[0])
    said = f"{conclusion.verdict.title}: {'; '.join(conclusion.parts)}"
    lines = textwrap.wrap(said, width, max_lines=2, placeholder=" …")
    reached = conclusion.verdict.word not in ("unchanged", "not reached")
    for doubt in find_doubts(answer, {})[:1] if reached else ():
        lines += textwrap.wrap(f"Careful: {doubt}", width, max_lines=2, placeholder=" …")
    look: dict[str, Any] = {"x": 0.01, "ha": "left", "va": "top", "fontweight": "bold", "fontsize": "large"}
    # Empty lines in the title, for which the layout makes room, and the verdict in them, in its own colour.
    figure.suptitle("\n" * len(lines) + style.escape_mathtext(title_of(answer)), **look)
    top = 1 - PAD / float(figure.get_size_inches()[1])
    figure.text(y=top, s=style.escape_mathtext("\n".join(lines)), color=conclusion.verdict.colour, **look)
    note = ".  ".join(part for part in (legend, advice_note(answer)) if part)
    if note:
        figure.supxlabel(style.escape_mathtext(note), fontsize=style.TICKS)


BEST = "best with at most so many changes"
MEANINGS = {
    "believed": "model and all others agree",
    "doubtful": "the model flips, not all others follow",
    "not reached": "the target is not reached",
}
MARKERS = {"believed": "o", "doubtful": "D", "not reached": "x"}


def has_curve(answer: Explanation) -> bool:
    """Return whether it was measured how few changes of an answer are enough."""
    return bool(np.isfinite(answer.curve["share"]).any())


class Points(NamedTuple):
    """The points of a curve of belief, by increasing share.

    Attributes
    ----------
    share, support
        Changed values, and the least convinced kind of other models, in percent.
    word
        A verdict: ``believed`` where the model predicts the target and every kind of other models agrees, ``doubtful``
        where not all of them do, ``not reached`` where the model does not.
    best
        The best support of any change up to this share that the model accepts; 0 if it accepts none.
    """

    share: FloatArray
    support: FloatArray
    word: StrArray
    best: FloatArray


def curve_points(answer: Explanation) -> Points:
    """Return the points of the curve of an explanation of length 1."""
    known = np.isfinite(answer.curve["share"][0])
    share, support, valid = (answer.curve[name][0][known] for name in ("share", "support", "valid"))
    order = np.lexsort((support, share))
    share, support, valid = 100 * share[order], 100 * support[order], valid[order] == 1
    words = np.where(~valid, "not reached", np.where(support > 100 * MAJORITY, "believed", "doubtful"))
    return Points(share, support, words, np.maximum.accumulate(np.where(valid, np.nan_to_num(support), 0.0)))


def limits_of(answer: Explanation) -> str:
    """Return in words from which share of changes on the model, and all others, say the target."""
    flips, believed = float(answer.flips_at[0]), float(answer.least_believed[0])
    verb = "flips" if answer.confidence is None else f"reaches p = {answer.confidence!r}"
    if not np.isfinite(flips):
        return f"the model never {verb}"
    if not np.isfinite(believed):
        return f"the model {verb} at {percent(flips)} (dotted), others never all follow"
    alone, all_of_them = percents(flips, believed)
    return f"the model {verb} at {alone} (dotted), all others follow at {all_of_them} (dashed)"


def draw_belief(axes: Axes, answer: Explanation) -> None:
    """Draw the curve of belief of one answer into axes."""
    points = curve_points(answer)
    axes.axhspan(100 * MAJORITY, 104, color=VERDICTS["believed"].tint, lw=0, zorder=0)
    axes.step(points.share, points.best, where="post", color=style.BEFORE, lw=1.4, label=BEST, zorder=1)
    for word, marker in MARKERS.items():
        chosen = points.word == word
        if chosen.any():
            colour = VERDICTS[word].colour
            face = colour if word == "believed" else "white"
            look: dict[str, Any] = {
                "color": colour,
                "mfc": face,
                "ms": 4,
                "ls": "",
                "zorder": 2,
                "label": MEANINGS[word],
            }
            axes.plot(points.share[chosen], points.support[chosen], marker, **look)
    for share, line in ((answer.flips_at[0], ":"), (answer.least_believed[0], "--")):
        if np.isfinite(share):
            axes.axvline(100 * float(share), color=style.BEFORE, lw=1, ls=line, zorder=0.5)
    axes.set(xlabel="changed values (% of those that may change)", ylim=(-6, 104))
    axes.set_xlim(left=0)
    axes.set_ylabel("agreement of the\nleast convinced kind\nof other models (%)")
    axes.set_title(limits_of(answer).replace("), ", "),\n"), loc="left", fontsize=style.TICKS)
    axes.legend(loc="upper right", bbox_to_anchor=(1, -0.22), fontsize=style.TICKS)


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
