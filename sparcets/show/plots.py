"""Figures of matplotlib: answers, training histories, and the trade-off of a fit."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import DataError, ShapeError
from sparcets.core.evidence import MAJORITY, VERDICTS
from sparcets.core.explanation import Explanation
from sparcets.core.words import percent
from sparcets.show import drawing, style
from sparcets.show.changes import only_answer
from sparcets.show.phrases import advice_note, change_of, count, has_name, phrases_of, query_name
from sparcets.show.verdict import conclude, find_doubts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


SHADE = 0.18  # opacity of marked segments
MAX_LETTERS = 9.5  # of a title in bold, per inch of width
PAD = 3 / 72  # inches above a title in matplotlib's constrained layout
GRID: dict[str, Any] = {"color": "#ececec", "lw": 0.8}
COLUMNS = 3  # panels of a history side by side
NOT_EPOCHS = "held_out_"  # prefix of values measured once, after the fit
SHARE_SUFFIXES = ("valid", "changed", "error", "accuracy")  # names of shares; all others are losses


def plot_answer(answer: Explanation) -> Figure:
    """Draw one answer: its verdict, curves of the most changed features, and a map of all changes.

    The line of a believed answer is solid; others are dashed, in the colour of their verdict. With
    ``explain(curve=True)``, a panel shows the share of changes against the agreement of other models.

    Parameters
    ----------
    answer
        An explanation of length 1, such as ``explanation[3]``.

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
    answer = only_answer(answer)
    curves, agreement = drawing.curves_of(answer), drawing.agreement_of(answer)
    n = len(curves.panels)
    with style.new_figure(11, 1.4 * max(n, 3) + 1.6 + (agreement is not None)) as figure:
        from matplotlib.patches import Patch

        grid = figure.add_gridspec(n, 2, width_ratios=[1.5, 1])
        for row, panel in enumerate(curves.panels):
            axes = figure.add_subplot(grid[row, 0])
            _draw_panel(axes, curves, panel)
            axes.tick_params(labelbottom=row == n - 1)
            if row == 0:
                after, before = axes.lines
                handles = [before, after, Patch(color=style.MARK, alpha=SHADE, lw=0, label="changed")]
                axes.legend(handles=handles, loc="lower right", ncols=3, bbox_to_anchor=(1, 1), borderaxespad=0.2)
        axes.set_xlabel(curves.time_label)
        above = grid[:, 1]
        if agreement is not None:
            halves = above.subgridspec(2, 1, height_ratios=[1.6, 1])
            above = halves[0]
            _draw_agreement(figure.add_subplot(halves[1]), agreement)
        _draw_map(figure, figure.add_subplot(above), answer)
        add_title(figure, answer)
    return figure


def plot_answers(answers: Explanation) -> Figure:
    """Draw several answers to one query, each in its own line style, and only where it changes a feature.

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
    if (n_queries := len(np.unique(answers.query_index))) != 1:
        raise ShapeError(
            f"this figure shows the answers to one query, got those to {n_queries}. Choose one: e[e.query_index == 0]."
        )
    curves = drawing.curves_of_several(answers)
    with style.new_figure(8, 1.4 * max(len(curves.panels), 2) + 1.4) as figure:
        all_axes = np.asarray(figure.subplots(len(curves.panels), 1, sharex=True, squeeze=False))[:, 0]
        for axes, panel in zip(all_axes, curves.panels, strict=True):
            _draw_panel(axes, curves, panel, several=True)
        handles, labels = all_axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
        all_axes[-1].set_xlabel(curves.time_label)
        n = len(curves.panels[0].curves)
        change = f"{answers.predictions.format_before()} → {answers.target_names[0]}"
        title = f"{change}: {count(n, 'answer')} to one query"
        figure.suptitle(style.escape_mathtext(title), x=0.01, ha="left", fontweight="bold")
    return figure


def _draw_panel(axes: Axes, curves: drawing.Curves, panel: drawing.Panel, *, several: bool = False) -> None:
    """Draw one feature: changed segments shaded, or marked by a bar at the bottom for each of several answers."""
    alone = len(panel.curves) == 1
    # A single answer is drawn below the recording, so that only the recording is visible where nothing changes.
    above = 2.3 if several else 2.1
    options: dict[str, Any] = {"alpha": SHADE if alone else 0.9, "lw": 0}
    for row, (values, spans, (colour, line, _, name)) in enumerate(panel.curves):
        low, high = (0.0, 1.0) if alone else (0.04 * row, 0.04 * row + 0.03)
        for start, end in spans:
            axes.axvspan(start, end, ymin=low, ymax=high, color=colour if several else style.MARK, **options)
        axes.plot(curves.times, values, color=colour, lw=1.6, ls=line, label=name, zorder=above)
    axes.plot(curves.times, panel.recorded, color=style.BEFORE, lw=1.3, label="recorded", zorder=2.2)
    axes.set_ylabel(style.escape_mathtext(f"{panel.name}\n{panel.unit}"), rotation=0, ha="right", va="center")
    axes.set_xlim(curves.times[0] - curves.half, curves.times[-1] + curves.half)


def _draw_map(figure: Figure, axes: Axes, answer: Explanation) -> None:
    """Draw a heat map of the changes of one answer, one row per feature; exact zeros are white."""
    from matplotlib.colors import LinearSegmentedColormap

    standardised = answer.delta[0] / answer.info.scaler.scale  # (time, features)
    largest = float(np.abs(standardised).max()) or 1.0
    step = 1 / (answer.info.sampling_rate or 1.0)
    image = axes.imshow(
        np.where(answer.changed[0], standardised, np.nan).T,  # NaN is white
        aspect="auto",
        cmap=LinearSegmentedColormap.from_list("changes", style.CHANGES).with_extremes(bad="white"),
        vmin=-largest,
        vmax=largest,
        interpolation="nearest",
        extent=(-0.5 * step, (len(standardised) - 0.5) * step, answer.info.n_features - 0.5, -0.5),
    )
    names = [style.escape_mathtext(name) for name in answer.feature_names]
    labelled = range(0, len(names), max(1, len(names) // 25))
    axes.set_yticks(labelled, [names[i] for i in labelled])
    for label, index in zip(axes.get_yticklabels(), labelled, strict=True):
        if not answer.mutable[index]:
            label.set_color(style.FIXED)
    for index in np.flatnonzero(~answer.mutable):
        axes.axhspan(index - 0.5, index + 0.5, color=style.LOCKED, lw=0, zorder=0)
    for spine in axes.spines.values():
        spine.set(visible=True, color=style.FIXED, linewidth=0.6)  # a frame, because white areas are data
    axes.set_xlabel(drawing.time_label(answer))
    grey = "" if answer.mutable.all() else "\ngrey: not allowed to change"
    axes.set_title(f"white: no change{grey}", loc="left")
    figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, label="change (standard deviations)")


def _draw_agreement(axes: Axes, agreement: drawing.AgreementCurve) -> None:
    axes.axhspan(100 * MAJORITY, 104, color=VERDICTS["believed"].tint, lw=0, zorder=0)
    axes.step(agreement.share, agreement.best, where="post", color=style.BEFORE, lw=1.4, label=drawing.BEST, zorder=1)
    for word, marker in (("believed", "o"), ("doubtful", "D"), ("not reached", "x")):
        if (chosen := agreement.word == word).any():
            colour = VERDICTS[word].colour
            face = colour if word == "believed" else "white"
            options: dict[str, Any] = {"color": colour, "mfc": face, "ms": 4, "ls": "", "zorder": 2}
            axes.plot(
                agreement.share[chosen], agreement.support[chosen], marker, label=drawing.MEANINGS[word], **options
            )
    for share, line in zip(agreement.limits, (":", "--"), strict=True):
        if np.isfinite(share):
            axes.axvline(share, color=style.BEFORE, lw=1, ls=line, zorder=0.5)
    axes.set(xlabel=drawing.SHARE, ylim=(-6, 104))
    axes.set_xlim(left=0)
    axes.set_ylabel("agreement of the\nleast convinced kind\nof other models (%)")
    axes.set_title(agreement.title.replace("), ", "),\n"), loc="left", fontsize=style.TICKS)
    axes.legend(loc="upper right", bbox_to_anchor=(1, -0.22), fontsize=style.TICKS)


def add_title(figure: Figure, answer: Explanation, legend: str = "") -> None:
    """Add the verdict and a title above a figure, and the meaning of its signs and a note for readers below it."""
    conclusion = conclude(answer)
    width = int(MAX_LETTERS * figure.get_size_inches()[0])
    said = [f"{conclusion.verdict.title}: {'; '.join(conclusion.parts)}"]
    if conclusion.verdict.word not in ("unchanged", "not reached"):
        said += [f"Careful: {doubt}" for doubt in find_doubts(answer, {})[:1]]
    lines = [line for text in said for line in textwrap.wrap(text, width, max_lines=2, placeholder=" …")]
    options: dict[str, Any] = {"x": 0.01, "ha": "left", "va": "top", "fontweight": "bold", "fontsize": "large"}
    name = f"{query_name(answer)}:   " if has_name(answer) else ""
    share = percent(float(answer.share_changed[0]))
    title = f"{name}{change_of(answer)}   {phrases_of(answer).moved}   {share} changed   ({answer.method})"
    # Empty lines in the title make room in the layout for the verdict, which has its own colour.
    figure.suptitle("\n" * len(lines) + style.escape_mathtext(title), **options)
    top = 1 - PAD / float(figure.get_size_inches()[1])
    figure.text(y=top, s=style.escape_mathtext("\n".join(lines)), color=conclusion.verdict.colour, **options)
    note = ".  ".join(part for part in (legend, advice_note(answer)) if part)
    if note:
        figure.supxlabel(style.escape_mathtext(note), fontsize=style.TICKS)


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
            axes.grid(**GRID)
    return figure
