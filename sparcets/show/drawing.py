"""Content of the figures of answers as plain values, the same for matplotlib, plotly and SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sparcets.core.evidence import MAJORITY, VERDICTS, find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.series import FloatArray, StrArray
from sparcets.core.words import percent, percents, seconds
from sparcets.show import style
from sparcets.show.changes import only_answer, without_padding
from sparcets.show.phrases import phrases_of

MAX_FEATURES = 5  # drawn as curves
MAX_ANSWERS = 4  # drawn over one query; more are hard to distinguish
FOUND = ("generated", "refined", "neighbour")  # statuses of answers that are drawn over one query
LIGHTER = 0.15  # how much lighter each further answer is, as a share of the way to white
LINES = (
    ("-", "solid"),
    ("--", "dash"),
    ("-.", "dashdot"),
    (":", "dot"),
)  # for several answers, as matplotlib and plotly call them
BEST = "best with at most so many changes"
SHARE = "changed values (% of those that may change)"
MEANINGS = {
    "believed": "model and all others agree",
    "doubtful": "the model flips, not all others follow",
    "not reached": "the target is not reached",
}


class LineStyle(NamedTuple):
    """Colour, line styles (of matplotlib and of plotly) and legend entry of a counterfactual."""

    colour: str
    line: Any
    dash: str
    name: str


# Only a believed answer has a solid line.
LINE_STYLES = {
    "believed": LineStyle(style.AFTER, "-", "solid", "counterfactual"),
    "doubtful": LineStyle(VERDICTS["doubtful"].colour, (0, (5, 1.5)), "dash", "attempt"),
    "trick": LineStyle(VERDICTS["trick"].colour, (0, (1.5, 1)), "dot", "attempt"),
    "not reached": LineStyle(VERDICTS["not reached"].colour, (0, (5, 3)), "longdash", "best attempt"),
    "unchanged": LineStyle(style.AFTER, "-", "solid", "unchanged"),
}


def line_style_of(answer: Explanation) -> LineStyle:
    """Return the line style of the counterfactual of an explanation of length 1, and its legend entry."""
    verdict = VERDICTS[str(answer.verdict[0])]
    line_style = LINE_STYLES[verdict.word]
    return (
        line_style if verdict.word == "unchanged" else line_style._replace(name=f"{line_style.name} ({verdict.label})")
    )


def line_style_among(answer: Explanation, number: int) -> LineStyle:
    """Return the line style of one of several answers, in the colour of its verdict, lighter for later answers."""
    verdict, colour = VERDICTS[str(answer.verdict[0])], line_style_of(answer).colour
    parts, lighter = [int(colour[k : k + 2], 16) for k in (1, 3, 5)], LIGHTER * number
    shade = "#" + "".join(f"{round(part + lighter * (255 - part)):02x}" for part in parts)
    kind = "answer" if verdict.word == "believed" else "attempt"
    reached, share = phrases_of(answer).reached, percent(float(answer.share_changed[0]))
    name = f"{verdict.symbol} {kind} {number + 1}: {verdict.word}, {reached}, {share} changed, {answer.status[0]}"
    return LineStyle(shade, *LINES[number], name)


class Curve(NamedTuple):
    """A counterfactual in a panel: its values (time,), and the times between which it differs from the recording."""

    values: FloatArray
    spans: list[tuple[float, float]]
    line_style: LineStyle


class Panel(NamedTuple):
    """One feature: its name, its unit in brackets, the recording (time,), and the counterfactuals over it."""

    name: str
    unit: str
    recorded: FloatArray
    curves: list[Curve]


class Curves(NamedTuple):
    """The panels of the most changed features."""

    times: FloatArray  # in seconds if the sampling rate is known, else in steps (time,)
    half: float  # half the time from one step to the next
    time_label: str
    panels: list[Panel]


def curves_of(answer: Explanation) -> Curves:
    """Return the curves of one answer."""
    answer = only_answer(answer)
    return _curves(answer, answer, [line_style_of(answer)], lambda changed: np.ones_like(changed))


def curves_of_several(answers: Explanation) -> Curves:
    """Return the curves of the found answers to one query, each where it changes a feature.

    They extend by one step on either side, where they meet the recording.
    """
    answers = without_padding(answers)
    found = answers[np.isin(answers.status, FOUND)][:MAX_ANSWERS]
    line_styles = [line_style_among(answer, number) for number, answer in enumerate(found)]
    return _curves(answers, found, line_styles, lambda c: c | np.append(c[1:], False) | np.append(False, c[:-1]))


def _curves(
    answers: Explanation, drawn: Explanation, line_styles: Sequence[LineStyle], is_drawn: Callable[..., Any]
) -> Curves:
    times, half = times_of(answers), 0.5 / (answers.info.sampling_rate or 1.0)
    changed, panels = drawn.changed, []
    for f in most_changed(drawn if len(drawn) else answers):
        curves = []
        for i, line_style in enumerate(line_styles):
            found = find_segments(changed[[i]][..., [f]])
            spans = [(times[a] - half, times[b - 1] + half) for a, b in zip(found.start, found.end, strict=True)]
            values = np.where(is_drawn(changed[i, :, f]), drawn.counterfactual[i, :, f], np.nan)
            curves.append(Curve(values, spans, line_style))
        unit = answers.info.units[f] if answers.info.units else ""
        panels.append(Panel(answers.feature_names[f], f"({unit or 'no unit'})", answers.query[0, :, f], curves))
    return Curves(times, half, time_label(answers), panels)


def most_changed(answers: Explanation, n: int = MAX_FEATURES) -> list[int]:
    """Return the ``n`` features that change most in standard deviations, by index; the first ones if none changes."""
    size = np.abs(answers.delta / answers.info.scaler.scale).sum((0, 1))  # (features,)
    order = np.argsort(-size, kind="stable")
    changed = [int(f) for f in order if size[f] > 0]
    return sorted((changed or [int(f) for f in order])[:n])


def times_of(answer: Explanation) -> FloatArray:
    """Return the time of each step, in seconds if the sampling rate is known, else in steps."""
    return np.asarray(np.arange(answer.query.shape[1]) / (answer.info.sampling_rate or 1.0))


def moment_names(answer: Explanation, steps: Sequence[int]) -> list[str]:
    """Return labels of some steps: their times if the sampling rate is known, else their numbers."""
    rate = answer.info.sampling_rate
    return [f"{time} s" for time in seconds(*(step / rate for step in steps))] if rate else [f"step {k}" for k in steps]


def time_label(answer: Explanation) -> str:
    """Return the label of the time axis."""
    return "time (s)" if answer.info.sampling_rate else "time (steps)"


class AgreementCurve(NamedTuple):
    """The agreement of other models by increasing share of changed values."""

    share: FloatArray  # in percent
    support: FloatArray  # smallest support over the kinds of other models, in percent
    word: StrArray  # ``believed``, ``doubtful`` or ``not reached``, as MEANINGS says
    best: FloatArray  # support of any change up to this share that the model accepts; 0 if it accepts none
    limits: tuple[float, float]  # percent from which the model predicts the target, and all others do; NaN if never
    title: str  # description of the limits


def agreement_of(answer: Explanation) -> AgreementCurve | None:
    """Return the curve of an explanation of length 1; None if it was not computed with ``curve=True``."""
    known = np.isfinite(answer.curve["share"][0])
    if not known.any():
        return None
    share, support, valid = (answer.curve[name][0][known] for name in ("share", "support", "valid"))
    order = np.lexsort((support, share))
    share, support, valid = 100 * share[order], 100 * support[order], valid[order] == 1
    words = np.where(~valid, "not reached", np.where(support > 100 * MAJORITY, "believed", "doubtful"))
    best = np.maximum.accumulate(np.where(valid, np.nan_to_num(support), 0.0))
    flips, believed = float(answer.flips_at[0]), float(answer.least_believed[0])
    verb = "flips" if answer.confidence is None else f"reaches p = {answer.confidence!r}"
    if not np.isfinite(flips):
        title = f"the model never {verb}"
    elif not np.isfinite(believed):
        title = f"the model {verb} at {percent(flips)} (dotted), others never all follow"
    else:
        alone, all_of_them = percents(flips, believed)
        title = f"the model {verb} at {alone} (dotted), all others follow at {all_of_them} (dashed)"
    return AgreementCurve(share, support, words, best, (100 * flips, 100 * believed), title)
