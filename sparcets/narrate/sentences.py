"""One answer in words, in the data's own units: what to raise or lower, when, by how much, and how reliable it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparcets.explanation.evidence import MAJORITY
from sparcets.explanation.result import Explanation
from sparcets.narrate.changes import Change, Segment, find_changes, find_groups, short_name
from sparcets.narrate.doubts import find_doubts, find_votes
from sparcets.narrate.predictions import Predictions, predictions_of

MAX_CHANGES = 5  # changes described one by one in the long form; the features of the others are listed
MAX_CHANGES_BRIEF = 2  # in the short form
MAX_NAMES = 6  # features named in a list before the rest is counted
PEAK_RATIO = 1.5  # the largest change is mentioned if it exceeds the mean by this factor
MIN_MARGIN = 0.1  # share of the series: shorter unchanged beginnings and ends are not mentioned

Measures = Mapping[str, float]  # an answer's row of Scores.per_query


@dataclass(frozen=True)
class Narrative:
    """The description of one answer in parts, each of whole sentences unless stated otherwise.

    Attributes
    ----------
    opening
        The model's prediction, and the target.
    changes
        What to raise or lower, when and by how much, largest first; phrases that begin with a verb.
    rest
        The remaining changes in one sentence; empty where there are none.
    unchanged
        Features and times without a change; empty where there are none.
    trust
        Probabilities of the model, and which models of other kinds and judges agree.
    doubts
        Warnings where the answer is weak.
    brief
        A summary in one or two sentences.
    """

    opening: str
    changes: tuple[str, ...]
    rest: str
    unchanged: str
    trust: str
    doubts: tuple[str, ...]
    brief: str

    def __str__(self) -> str:
        """Return the long form, one part per line."""
        lines = [self.opening, *(f"  - {change}" for change in self.changes)]
        lines += [line for line in (self.rest, self.unchanged, self.trust) if line]
        return "\n".join([*lines, *(f"Careful: {doubt}" for doubt in self.doubts)])


def narrate(answer: Explanation, *, short: bool = False, measures: Measures | None = None) -> str:
    """Describe what one answer changes, largest change first, and how reliable it is.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.
    short
        One or two sentences instead of the long form.
    measures
        The answer's measures from an evaluation, by name, such as ``scores.per_query.iloc[3]``: adds the judges'
        predictions and the distance to real data.
    """
    narrative = build_narrative(answer, measures=measures)
    return narrative.brief if short else str(narrative)


def build_narrative(answer: Explanation, *, measures: Measures | None = None) -> Narrative:
    """Return the description of one answer in parts; the parameters are those of :func:`narrate`."""
    said = predictions_of(answer)
    if answer.status[0] == "unchanged":
        return Narrative(said.already, (), "", "", "", (), said.already)
    if answer.status[0] == "not_found" or not answer.valid[0]:
        return _not_found(answer, said)
    changes = find_changes(answer)
    long = tuple(_phrase(answer, change, peaks=True) for change in changes[:MAX_CHANGES])
    short = [_phrase(answer, change, peaks=False) for change in changes[:MAX_CHANGES_BRIEF]]
    doubts = tuple(find_doubts(answer, measures or {}))
    n_more = len(changes) - MAX_CHANGES_BRIEF
    more = f"; and {count(n_more, 'smaller change')}" if n_more > 0 else ""
    brief = f"{said.brief}: {'; '.join(short)}{more}."
    return Narrative(
        opening=said.opening,
        changes=long,
        rest=_rest(answer, changes),
        unchanged=_unchanged(answer),
        trust=_trust(answer, said, measures),
        doubts=doubts,
        brief=f"{brief} Careful: {doubts[0]}" if doubts else brief,
    )


def _not_found(answer: Explanation, said: Predictions) -> Narrative:
    reason = str(answer.reason[0]).rstrip(".")
    opening = f"{said.not_found}: {reason}." if reason else f"{said.not_found}; {said.attempt}."
    if reason.startswith("no change was found"):  # said once
        opening = f"{said.stands}, and {reason}."
    doubt = "this is no valid answer; the best attempt is shown, and the model does not predict the target for it."
    if answer.valid[0]:  # a missing answer may be filled with a copy of one that was found
        doubt = "this repeats another answer; fewer answers were found than requested."
    elif not answer.changed[0].any():
        doubt = "this is no valid answer; nothing was changed."
    return Narrative(opening, (), "", "", "", (doubt,), opening)


def _phrase(answer: Explanation, change: Change, *, peaks: bool) -> str:
    """Return a phrase that begins with a verb, or with the group's name if there are several features."""
    when = when_phrase(change.start, change.end, answer.info.sampling_rate)
    if change.group is None:
        segment = change.segments[0]
        name = answer.feature_names[segment.feature]
        return f"{segment.direction} {_amount_of(answer, segment, name, peaks=peaks)} {when}"
    phrases = []
    for direction in dict.fromkeys(segment.direction for segment in change.segments):
        parts = [
            _amount_of(answer, s, short_name(answer.feature_names[s.feature], change.group), peaks=peaks)
            for s in change.segments
            if s.direction == direction
        ]
        phrases.append(f"{direction} {listed(parts)}")
    return f"{change.group}: {listed(phrases)} {when}"


def _amount_of(answer: Explanation, segment: Segment, name: str, *, peaks: bool) -> str:
    """Return by how much a feature changes, with the largest change if it is much larger than the mean."""
    unit = f" {answer.info.units[segment.feature]}" if answer.info.units and answer.info.units[segment.feature] else ""
    if segment.direction == "change":  # rises and falls would cancel in the mean
        return f"{name} both ways (−{amount(-segment.lowest)} to +{amount(segment.highest)}{unit})"
    most = f" (at most {amount(segment.peak)}{unit})" if peaks and segment.peak > PEAK_RATIO * segment.mean else ""
    return f"{name} by {amount(segment.mean)}{unit}{most}"


def _rest(answer: Explanation, changes: Sequence[Change]) -> str:
    """Return a sentence on the changes beyond the first few: their features and their share of the whole change."""
    rest = changes[MAX_CHANGES:]
    if not rest:
        return ""
    names = [change.group or answer.feature_names[change.segments[0].feature] for change in rest]
    share = 100 * sum(change.weight for change in rest) / sum(change.weight for change in changes)
    smaller = f"{count(len(rest), 'smaller change')} ({amount(share)} % of all change)"
    return f"And {smaller}, in {listed_up_to_max(list(dict.fromkeys(names)))}."


def _unchanged(answer: Explanation) -> str:
    """Return sentences on the features and the times without a change."""
    changed = answer.changed[0]  # (time, features)
    constant = ~changed.any(0)
    groups = find_groups(answer)
    whole = {name: members for name, members in groups.items() if constant[members].all()}
    sentences = []
    for words, locked in (("Unchanged", False), ("Not allowed to change", True)):
        chosen = constant & (~answer.mutable if locked else answer.mutable)
        names = [(m[0], name) for name, m in whole.items() if chosen[m].all()]
        grouped = {f for _, name in names for f in whole[name]}
        names += [(f, answer.feature_names[f]) for f in np.flatnonzero(chosen).tolist() if f not in grouped]
        if names:
            sentences.append(f"{words}: {listed_up_to_max([name for _, name in sorted(names)])}.")
    sentences += _unchanged_margins(answer, changed.any(1))
    return " ".join(sentences)


def _unchanged_margins(answer: Explanation, touched: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    """Return a sentence on the unchanged beginning and end of the series, if they are long enough."""
    n_steps = int(len(touched) if answer.lengths is None else answer.lengths[0])
    if not touched.any():
        return []
    first, last = int(touched.argmax()), len(touched) - int(touched[::-1].argmax())
    rate = answer.info.sampling_rate
    sides = []
    if first >= MIN_MARGIN * n_steps:
        sides.append(f"before {first / rate:.2f} s" if rate else f"before step {first}")
    if n_steps - last >= MIN_MARGIN * n_steps:
        sides.append(f"after {last / rate:.2f} s" if rate else f"after step {last - 1}")
    return [f"Nothing changes {' or '.join(sides)}."] if sides else []


def _trust(answer: Explanation, said: Predictions, measures: Measures | None) -> str:
    share = amount(100 * float(answer.share_changed[0]))
    sentences = [
        f"{share} % of the values that may change do.",
        said.moves,
    ]
    if answer.families and not np.isnan(answer.support[0]).any():
        sentences.append(_support(answer))
    if votes := find_votes(measures or {}):
        sentences.append(_votes(votes, said.target))
    oracle = (measures or {}).get("oracle", math.nan)
    if not math.isnan(oracle):
        sentences.append(f"The process that generated the data {'agrees' if oracle == 1 else 'does not agree'}.")
    return " ".join(sentences)


def _support(answer: Explanation) -> str:
    """Return a sentence on the models of other kinds: which families agree."""
    agrees = answer.support[0] > MAJORITY
    yes = [name for name, agree in zip(answer.families, agrees, strict=True) if agree]
    no = [name for name, agree in zip(answer.families, agrees, strict=True) if not agree]
    if not yes:
        return f"Models of other kinds do not agree ({listed(no)})."
    return f"Models of other kinds agree: {', '.join(yes)}{'; not: ' if no else ''}{', '.join(no)}."


def _votes(votes: Mapping[str, bool], target: str) -> str:
    """Return a sentence on the judges' predictions, each by name."""
    if len(votes) == 1:
        ((name, agrees),) = votes.items()
        judge = "The one independent judge"
        return f"{judge} says {target} too ({name})." if agrees else f"{judge} ({name}) does not say {target}."
    names = ", ".join(f"{name} {'yes' if vote else 'no'}" for name, vote in votes.items())
    agree = {0: "None", len(votes): "All"}.get(sum(votes.values()), str(sum(votes.values())))
    return f"{agree} of {len(votes)} independent judges say {target} too ({names})."


def when_phrase(start: int, end: int, rate: float | None) -> str:
    """Describe a half-open range of steps; in seconds, the last step lasts until the next would begin.

    >>> when_phrase(2, 5, None), when_phrase(2, 3, None), when_phrase(2, 5, 4.0)
    ('in steps 2 to 4', 'in step 2', 'from 0.50 to 1.25 s')
    """
    if rate:
        return f"from {start / rate:.2f} to {end / rate:.2f} s"
    return f"in step {start}" if end - start == 1 else f"in steps {start} to {end - 1}"


def amount(value: float) -> str:
    """Format a number for a sentence: two significant digits, three from 100 on, without an exponent where readable.

    >>> amount(0.12345), amount(123.4), amount(12345.6), amount(2e-7), amount(3.0)
    ('0.12', '123', '12,300', '2e-07', '3')
    """
    figures = 3 if abs(value) >= 99.5 else 2
    rounded = float(f"{value:.{figures}g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e7 else f"{rounded:.{figures}g}"


def count(n: int, word: str) -> str:
    """Return a count with its noun.

    >>> count(1, "judge"), count(3, "judge")
    ('1 judge', '3 judges')
    """
    return f"{n} {word}{'' if n == 1 else 's'}"


def listed(parts: Sequence[str]) -> str:
    """Join phrases with commas and an "and".

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def listed_up_to_max(names: Sequence[str]) -> str:
    """Join names like :func:`listed`, but only count those beyond the first few.

    >>> listed_up_to_max(["a", "b", "c", "d", "e", "f", "g", "h"])
    'a, b, c, d, e, f and 2 more'
    """
    if len(names) <= MAX_NAMES + 1:  # "and 1 more" is as long as a name
        return listed(names)
    return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"
