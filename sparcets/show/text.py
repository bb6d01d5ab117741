"""Description of one answer, in the data's own units: its reliability, then the changes, their times and sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sparcets.core.evidence import MAJORITY, VERDICTS, other_kinds
from sparcets.core.explanation import Explanation
from sparcets.core.progress import html_card
from sparcets.core.words import percent, seconds
from sparcets.motion.skeleton import coordinate_groups
from sparcets.show.changes import only_answer
from sparcets.show.edit_text import brief_phrase, edit_phrases
from sparcets.show.phrases import Phrases, advice_note, listed, listed_up_to_max, phrases_of, when_phrase
from sparcets.show.verdict import Conclusion, Measures, conclude, find_doubts, find_votes

MIN_MARGIN = 0.1  # share of the series: shorter unchanged beginnings and ends are not mentioned
MAX_ROWS = 10  # answers that are shown


@dataclass(frozen=True)
class Narrative:
    """The description of one answer in parts, each of whole sentences unless stated otherwise; empty where unknown."""

    conclusion: Conclusion  # the verdict, and its doubts
    opening: str  # the model's prediction, and the target
    changes: tuple[str, ...]  # features, times and sizes, most needed or largest first
    rest: str  # the remaining changes
    unchanged: str  # features and times without a change
    trust: str  # probabilities of the model, and which other models and judges agree
    doubts: tuple[str, ...]  # further warnings; the reasons of the verdict are in ``conclusion``
    note: str  # advice for readers if the series are from people
    brief: str  # a summary in one or two sentences

    def __str__(self) -> str:
        """Return the long form, one part per line; the reliability comes first."""
        lines = [str(self.conclusion), *(f"Careful: {doubt}" for doubt in self.doubts)]
        lines += [self.opening, *(f"  - {change}" for change in self.changes)]
        return "\n".join([*lines, *(line for line in (self.rest, self.unchanged, self.trust, self.note) if line)])


def narrate(answer: Explanation, *, short: bool = False, measures: Measures | None = None) -> str:
    """Describe the changes of one answer and its reliability, in one or two sentences if ``short``.

    Measures from an evaluation, by name, add the judges' predictions and the distance to real data.
    """
    narrative = build_narrative(answer, measures=measures)
    return narrative.brief if short else str(narrative)


def build_narrative(answer: Explanation, *, measures: Measures | None = None) -> Narrative:
    """Return the description of one answer in parts; the parameters are those of :func:`narrate`."""
    answer = only_answer(answer)
    said, conclusion, note = phrases_of(answer), conclude(answer), advice_note(answer)
    label = conclusion.verdict.title
    if answer.status[0] == "unchanged":
        return Narrative(conclusion, said.already, (), "", "", "", (), note, f"{label}: {said.already}")
    if conclusion.verdict.word == "not reached":
        opening = _not_found(answer, said)
        return Narrative(conclusion, opening, (), "", "", "", (), note, f"{label}: {opening}")
    edits = answer.edits(0)
    following, changes, rest = edit_phrases(answer, edits)
    doubts = tuple(find_doubts(answer, measures or {}))
    brief = f"{label}: {said.brief}: {brief_phrase(answer, edits)}."
    return Narrative(
        conclusion=conclusion,
        opening=f"{said.opening.removesuffix(':')}{following and f', {following}'}:",
        changes=tuple(changes),
        rest=rest,
        unchanged=_unchanged(answer),
        trust=_trust(answer, said, measures),
        doubts=doubts,
        note=note,
        brief=f"{brief} Careful: {doubts[0]}" if doubts else brief,
    )


def _not_found(answer: Explanation, said: Phrases) -> str:
    reason, unsure = str(answer.reason[0]).rstrip("."), answer.predictions.is_unsure()
    if not reason:
        return f"{said.stands if unsure else said.not_found}; {said.attempt}."
    if unsure:
        return f"{said.stands}, and of the best attempt, {reason}."
    target = str(answer.target_names[0])
    return f"{said.stands}{'' if answer.predictions.format_before() == target else f', not {target}'}: {reason}."


def _unchanged(answer: Explanation) -> str:
    """Return sentences on the features and the times without a change."""
    changed = answer.changed[0]  # (time, features)
    constant = ~changed.any(0)
    groups = _groups(answer)
    whole = {name: members for name, members in groups.items() if constant[members].all()}
    sentences = []
    for words, locked in (("Unchanged", False), ("Not allowed to change", True)):
        chosen = constant & (~answer.mutable if locked else answer.mutable)
        names = [(m[0], name) for name, m in whole.items() if chosen[m].all()]
        grouped = {f for _, name in names for f in whole[name]}
        names += [(f, answer.feature_names[f]) for f in np.flatnonzero(chosen).tolist() if f not in grouped]
        if names:
            sentences.append(f"{words}: {listed_up_to_max([name for _, name in sorted(names)])}.")
    sentences += [*_frozen(answer), *_unchanged_margins(answer, changed.any(1))]
    return " ".join(sentences)


def _groups(answer: Explanation) -> dict[str, list[int]]:
    """Return the groups of features by name: those of the constraints, then coordinates of one object.

    ``LeftWrist_x`` and ``LeftWrist_y`` are a group, and so are ``gravity.x``, ``gravity.y`` and ``gravity.z``.
    """
    groups: dict[str, list[int]] = {}
    free = set(range(answer.info.n_features))
    for constraints in (answer.constraints.get("explain", {}), answer.constraints.get("fit", {})):
        for name, members in constraints.get("groups", {}).items():
            indices = [answer.info.feature_index(member) for member in members]
            if len(indices) > 1 and free.issuperset(indices):
                groups[str(name)] = sorted(indices)
                free.difference_update(indices)
    named = coordinate_groups(answer.feature_names)
    return groups | {name: m for name, m in named.items() if free.issuperset(m) and name not in groups}


def _frozen(answer: Explanation) -> list[str]:
    """Return a sentence on the frozen times, if there are any."""
    n_steps = answer.query.shape[1]
    windows = [window for given in answer.constraints.values() for window in given.get("frozen", ())]
    ends = [(start or 0, n_steps if stop is None else min(stop, n_steps)) for start, stop in windows]
    when = [when_phrase(start, stop, answer.info.sampling_rate) for start, stop in sorted(set(ends)) if start < stop]
    return [f"Nothing may change {listed(when)}."] if when else []


def _unchanged_margins(answer: Explanation, touched: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[str]:
    """Return a sentence on the unchanged beginning and end of the series, if they are long enough."""
    if not touched.any():
        return []
    n_steps = len(touched)
    first, last = int(touched.argmax()), len(touched) - int(touched[::-1].argmax())
    rate = answer.info.sampling_rate
    sides, (begin, end) = [], seconds(first / (rate or 1), last / (rate or 1))
    if first >= MIN_MARGIN * n_steps:
        sides.append(f"before {begin} s" if rate else f"before step {first}")
    if n_steps - last >= MIN_MARGIN * n_steps:
        sides.append(f"after {end} s" if rate else f"after step {last - 1}")
    return [f"Nothing changes {' or '.join(sides)}."] if sides else []


def _trust(answer: Explanation, said: Phrases, measures: Measures | None) -> str:
    sentences = [f"{percent(float(answer.share_changed[0]))} of the values that may change do.", said.moves]
    if answer.families and not np.isnan(answer.support[0]).any():
        sentences.append(_support(answer))
    if votes := find_votes(measures or {}):
        sentences.append(_votes(votes, str(answer.target_names[0])))
    oracle = (measures or {}).get("oracle", math.nan)
    if not math.isnan(oracle):
        sentences.append(f"The process that generated the data {'agrees' if oracle == 1 else 'does not agree'}.")
    return " ".join(sentences)


def _support(answer: Explanation) -> str:
    """Return a sentence on the other models: which kinds agree."""
    others = other_kinds(answer.families)
    asked = list(zip(np.array(answer.families)[others].tolist(), answer.support[0][others] > MAJORITY, strict=True))
    yes, no = ([name for name, agree in asked if agree == wanted] for wanted in (True, False))
    if not yes:
        return f"Other models do not agree ({listed(no)})."
    return f"Other models agree: {', '.join(yes)}{'; not: ' if no else ''}{', '.join(no)}."


def _votes(votes: Mapping[str, bool], target: str) -> str:
    """Return a sentence on the judges' predictions, each by name."""
    if len(votes) == 1:
        ((name, agrees),) = votes.items()
        judge = "The one independent judge"
        return f"{judge} says {target} too ({name})." if agrees else f"{judge} ({name}) does not say {target}."
    names = ", ".join(f"{name} {'yes' if vote else 'no'}" for name, vote in votes.items())
    agree = {0: "None", len(votes): "All"}.get(sum(votes.values()), str(sum(votes.values())))
    return f"{agree} of {len(votes)} independent judges say {target} too ({names})."


def table_of_answers(e: Explanation) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the heads of the columns, and a row per answer: predictions before and after, and a summary of changes."""
    known = {head: values for head, values in (("id", e.ids), ("subject", e.subjects)) if values is not None}
    said = e.predictions
    heads = [*known, "verdict", "predicted", "target", "status", said.head, "changed", "edits"]
    rows = [
        (
            *(str(values[i]) for values in known.values()),
            VERDICTS[str(e.verdict[i])],
            said.format_before(i),
            str(e.target_names[i]),
            str(e.status[i]),
            said.format_after(i),
            percent(float(e.share_changed[i])),
            len(e.edits(i)),
        )
        for i in range(len(e))
    ]
    return heads, rows


def explanation_card(e: Explanation) -> str:
    """Return a row for each of the first answers as HTML."""
    shown = e[:MAX_ROWS]
    heads, answers = table_of_answers(shown)
    rows = [(i, int(query), *answer) for i, (query, answer) in enumerate(zip(shown.query_index, answers, strict=True))]
    needed = e.status != "unchanged"
    already = f", {int((~needed).sum())} are in the target already" if not needed.all() else ""
    lines = [
        f"{int((e.valid & needed).sum())} of the {int(needed.sum())} that needed a change are valid{already}; "
        f"by {e.method or 'an unknown method'}",
        "in words: text(i), as a picture: plot(i), as a table: to_frame()",
    ]
    lines += [f"careful: {doubt}" for doubt in e.info.model_doubts]
    lines += [f"the first {len(shown)} of {len(e)} answers:"] if len(e) > len(shown) else []
    return html_card(
        f"Explanation: {len(e)} answer{'s' * (len(e) != 1)}", lines, heads=("answer", "query", *heads), rows=rows
    )
