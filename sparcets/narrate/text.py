"""One answer in words, in the data's own units: what to raise or lower, when, by how much, and how far to trust it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparcets.explanation import Explanation
from sparcets.narrate.changes import Change, Stretch, find_changes, find_groups, short_name
from sparcets.narrate.doubts import find_doubts, find_votes

MOST = 5  # changes told one by one in the long form; the rest is named
FEW = 2  # in the short form
NAMED = 6  # features named in a list before the rest is counted
PEAK = 1.5  # times the mean: a largest change that is told beside it
MARGIN = 0.1  # of the series: a calm beginning or end that is shorter is not worth a word

Measures = Mapping[str, float]  # an answer's row of Scores.per_query


@dataclass(frozen=True)
class Story:
    """The parts of what is said of one answer; each is a whole sentence unless it says otherwise.

    Attributes
    ----------
    opening
        What the model says, and what it would say.
    changes
        What to raise or lower, when and by how much, the largest first; phrases that begin with a verb.
    rest
        What else changes, in one sentence; empty where everything was told.
    stayed
        What stayed as it was; empty where nothing did.
    trust
        How sure the model and the judges are.
    doubts
        Plain warnings where the answer is weak.
    brief
        All of it in one or two sentences.
    """

    opening: str
    changes: tuple[str, ...]
    rest: str
    stayed: str
    trust: str
    doubts: tuple[str, ...]
    brief: str

    def __str__(self) -> str:
        """Return the long form, one thought per line."""
        lines = [self.opening, *(f"  - {change}" for change in self.changes)]
        lines += [line for line in (self.rest, self.stayed, self.trust) if line]
        return "\n".join([*lines, *(f"Careful: {doubt}" for doubt in self.doubts)])


def narrate(answer: Explanation, *, short: bool = False, measures: Measures | None = None) -> str:
    """Say what one answer changes, largest change first, and how far to trust it.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.
    short
        One or two sentences instead of the long form.
    measures
        What an evaluation found about this answer, by name, such as ``scores.per_query.iloc[3]``: the judges' votes and
        the distance from real data are told too.
    """
    story = tell(answer, measures=measures)
    return story.brief if short else str(story)


def tell(answer: Explanation, *, measures: Measures | None = None) -> Story:
    """Return the parts of what is said of one answer; the parameters are those of :func:`narrate`."""
    before = answer.class_names[int(answer.predicted[0])]
    wanted = answer.class_names[int(answer.target[0])]
    p = float(answer.probability[0])
    if answer.status[0] == "unchanged":
        sentence = f"The model already says {wanted} (probability {p:.2f}); nothing has to change."
        return Story(sentence, (), "", "", "", (), sentence)
    if answer.status[0] == "not_found" or not answer.valid[0]:
        return _not_found(answer, before, wanted)
    changes = find_changes(answer)
    told = tuple(_sentence(answer, change, peaks=True) for change in changes[:MOST])
    few = [_sentence(answer, change, peaks=False) for change in changes[:FEW]]
    doubts = tuple(find_doubts(answer, measures or {}))
    p_before = float(answer.proba_before[0, int(answer.target[0])])
    more = f"; and {count(len(changes) - FEW, 'smaller change')}" if len(changes) > FEW else ""
    brief = f"{wanted} instead of {before} (probability {p_before:.2f} → {p:.2f}): {'; '.join(few)}{more}."
    return Story(
        opening=f"The model says {before}. For it to say {wanted}:",
        changes=told,
        rest=_rest(answer, changes),
        stayed=_stayed(answer),
        trust=_trust(answer, wanted, measures),
        doubts=doubts,
        brief=f"{brief} Careful: {doubts[0]}" if doubts else brief,
    )


def _not_found(answer: Explanation, before: str, wanted: str) -> Story:
    opening = f"No change was found that makes the model say {wanted} instead of {before}"
    why = str(answer.reason[0]).rstrip(".")
    p = float(answer.probability[0])
    opening = f"{opening}: {why}." if why else f"{opening}; the best attempt reached a probability of {p:.2f}."
    doubt = "this is no answer; what is shown is the best attempt, and the model does not accept it."
    if answer.valid[0]:  # the place of a missing answer may hold a copy of one that was found
        doubt = "this is no answer of its own; there are fewer answers than were asked for."
    elif not answer.changed[0].any():
        doubt = "this is no answer; nothing was changed."
    return Story(opening, (), "", "", "", (doubt,), opening)


def _sentence(answer: Explanation, change: Change, *, peaks: bool) -> str:
    """Describe a change, beginning with a verb, or with the group's name where there are several features."""
    when = when_phrase(change.start, change.end, answer.info.sampling_rate)
    if change.group is None:
        stretch = change.stretches[0]
        return f"{stretch.way} {_by(answer, stretch, answer.feature_names[stretch.feature], peaks=peaks)} {when}"
    phrases = []
    for way in dict.fromkeys(stretch.way for stretch in change.stretches):
        parts = [
            _by(answer, s, short_name(answer.feature_names[s.feature], change.group), peaks=peaks)
            for s in change.stretches
            if s.way == way
        ]
        phrases.append(f"{way} {listed(parts)}")
    return f"{change.group}: {listed(phrases)} {when}"


def _by(answer: Explanation, stretch: Stretch, name: str, *, peaks: bool) -> str:
    """Say by how much a feature changes; with the largest change where that is a good deal more than the mean."""
    unit = f" {answer.info.units[stretch.feature]}" if answer.info.units and answer.info.units[stretch.feature] else ""
    if stretch.way == "change":  # its mean would hide what happens, or be none at all
        return f"{name} both ways (−{amount(-stretch.lowest)} to +{amount(stretch.highest)}{unit})"
    most = f" (at most {amount(stretch.most)}{unit})" if peaks and stretch.most > PEAK * stretch.mean else ""
    return f"{name} by {amount(stretch.mean)}{unit}{most}"


def _rest(answer: Explanation, changes: Sequence[Change]) -> str:
    """Name what is not told one by one, and say how much of the whole change that is."""
    rest = changes[MOST:]
    if not rest:
        return ""
    names = [change.group or answer.feature_names[change.stretches[0].feature] for change in rest]
    share = 100 * sum(change.weight for change in rest) / sum(change.weight for change in changes)
    smaller = f"{count(len(rest), 'smaller change')} ({amount(share)} % of all change)"
    return f"And {smaller}, in {enumerated(list(dict.fromkeys(names)))}."


def _stayed(answer: Explanation) -> str:
    """Name the features, and the time, that nothing was changed in."""
    changed = answer.changed[0]  # (time, features)
    still = ~changed.any(0)
    groups = find_groups(answer)
    whole = {name: members for name, members in groups.items() if still[members].all()}
    sentences = []
    for words, locked in (("Unchanged", False), ("Not allowed to change", True)):
        chosen = still & (~answer.mutable if locked else answer.mutable)
        names = [(m[0], name) for name, m in whole.items() if chosen[m].all()]
        told = {f for _, name in names for f in whole[name]}
        names += [(f, answer.feature_names[f]) for f in np.flatnonzero(chosen).tolist() if f not in told]
        if names:
            sentences.append(f"{words}: {enumerated([name for _, name in sorted(names)])}.")
    sentences += _calm(answer, changed.any(1))
    return " ".join(sentences)


def _calm(answer: Explanation, touched: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    """Say that nothing changes before or after some time, where that is a good part of the series."""
    n_steps = int(len(touched) if answer.lengths is None else answer.lengths[0])
    if not touched.any():
        return []
    first, last = int(touched.argmax()), len(touched) - int(touched[::-1].argmax())
    rate = answer.info.sampling_rate
    sides = []
    if first >= MARGIN * n_steps:
        sides.append(f"before {first / rate:.2f} s" if rate else f"before step {first}")
    if n_steps - last >= MARGIN * n_steps:
        sides.append(f"after {last / rate:.2f} s" if rate else f"after step {last - 1}")
    return [f"Nothing changes {' or '.join(sides)}."] if sides else []


def _trust(answer: Explanation, wanted: str, measures: Measures | None) -> str:
    p, p_before = float(answer.probability[0]), float(answer.proba_before[0, int(answer.target[0])])
    share = amount(100 * float(answer.share_changed[0]))
    sentences = [
        f"{share} % of the values that may change do.",
        f"The model's probability of {wanted} goes from {p_before:.2f} to {p:.2f}.",
    ]
    if votes := find_votes(measures or {}):
        sentences.append(_verdict(votes, wanted))
    oracle = (measures or {}).get("oracle", math.nan)
    if not math.isnan(oracle):
        sentences.append(f"The process that made the data {'agrees' if oracle == 1 else 'does not agree'}.")
    return " ".join(sentences)


def _verdict(votes: Mapping[str, bool], wanted: str) -> str:
    """Say what the judges said, each by name."""
    if len(votes) == 1:
        ((name, agrees),) = votes.items()
        judge = "The one independent judge"
        return f"{judge} says {wanted} too ({name})." if agrees else f"{judge} ({name}) does not say {wanted}."
    names = ", ".join(f"{name} {'yes' if said else 'no'}" for name, said in votes.items())
    agree = {0: "None", len(votes): "All"}.get(sum(votes.values()), str(sum(votes.values())))
    return f"{agree} of {len(votes)} independent judges say {wanted} too ({names})."


def when_phrase(start: int, end: int, rate: float | None) -> str:
    """Say when a half-open range of steps is; the last step lasts until the next would begin.

    >>> when_phrase(2, 5, None), when_phrase(2, 3, None), when_phrase(2, 5, 4.0)
    ('in steps 2 to 4', 'in step 2', 'from 0.50 to 1.25 s')
    """
    if rate:
        return f"from {start / rate:.2f} to {end / rate:.2f} s"
    return f"in step {start}" if end - start == 1 else f"in steps {start} to {end - 1}"


def amount(value: float) -> str:
    """Write a number as one says it: two figures, three from a hundred on, without an exponent where it can be read.

    >>> amount(0.12345), amount(123.4), amount(12345.6), amount(2e-7), amount(3.0)
    ('0.12', '123', '12,300', '2e-07', '3')
    """
    figures = 3 if abs(value) >= 99.5 else 2
    rounded = float(f"{value:.{figures}g}")
    return f"{rounded:,.0f}" if 1000 <= abs(rounded) < 1e7 else f"{rounded:.{figures}g}"


def count(n: int, word: str) -> str:
    """Count things.

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


def enumerated(names: Sequence[str]) -> str:
    """Name things, and count those beyond the first few.

    >>> enumerated(["a", "b", "c", "d", "e", "f", "g", "h"])
    'a, b, c, d, e, f and 2 more'
    """
    if len(names) <= NAMED + 1:  # "and 1 more" takes as much room as its name
        return listed(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"
