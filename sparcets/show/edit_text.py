"""Edits as text and as plain values: the features, the time, the change, and what requires it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.edits import FREE, Edit, apply_edits
from sparcets.core.errors import DataError
from sparcets.core.explanation import Explanation
from sparcets.core.series import FloatArray
from sparcets.core.words import amount, percent, seconds
from sparcets.motion.skeleton import group_name
from sparcets.show.changes import without_padding
from sparcets.show.phrases import count, further, listed, listed_up_to_max, place_of, unit_of, when_phrase

MAX_MOVES = 2  # features of a group whose change is described by numbers
MAX_CHANGES = 8  # `free` edits of an answer that are described
DESCRIBED_SHARE = 0.8  # share of the whole change to describe, by at most so many edits
MAX_FREE = 2  # `free` edits of a constraint that are described
MAX_BRIEF = 3  # edits in a short text
ONE_WAY = 0.5  # net change, as a share of all change, from which a feature is higher or lower on the whole
UNSEEN = 1e-3  # standard deviations; smaller changes by a constraint are omitted
WHOLE = 0.05  # amounts this near to 1 are described as the whole way


def as_dict(edit: Edit) -> dict[str, Any]:
    """Return an edit as plain values for JSON, without the course of a training series."""
    return {
        "features": list(edit.features),
        "start": edit.start,
        "end": edit.end,
        "kind": edit.kind,
        "amount": float(edit.amount),
        "row": edit.row,
        "needed_by": list(edit.needed_by),
        "text": edit.text,
    }


def with_texts(answer: Explanation, edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits of an explanation of length 1 with their sentences as ``text``."""
    answer = without_padding(answer)
    return [replace(edit, text=_phrase(answer, edit)) for edit in edits]


def edit_phrases(answer: Explanation, edits: Sequence[Edit]) -> tuple[str, list[str], str]:
    """Return a common beginning for the edits of an answer, a phrase for each, and a sentence on the omitted ones.

    For `free` edits only the largest get a phrase. Those of a constraint after other edits share one phrase if they are
    many; invisible ones are omitted.
    """
    told = [edit for edit in edits if edit.kind != FREE]
    if not told:
        largest, rest = _largest(answer, edits)
        return "", [edit.text for edit in largest], rest
    follows = {(edit.row, edit.amount) for edit in told}
    one = len(follows) == 1 and told[0].kind == "follow"
    phrases = [_phrase(answer, edit, like=False) if one else edit.text for edit in told]
    scale = answer.info.scaler.scale
    free = [edit for edit in edits if edit.kind == FREE and abs(edit.amount) > UNSEEN * scale[edit.columns[0]]]
    if len(free) <= MAX_FREE:
        phrases += [f"by your constraints, {edit.text}" for edit in free]
    else:
        when = when_phrase(min(e.start for e in free), max(e.end for e in free), answer.info.sampling_rate)
        names = list(dict.fromkeys(name for edit in free for name in edit.features))
        phrases.append(f"your constraints then alter {count(len(free), 'segment')} of {listed_up_to_max(names)} {when}")
    return (_following(answer, told[0]) if one else ""), phrases, ""


def _largest(answer: Explanation, edits: Sequence[Edit]) -> tuple[list[Edit], str]:
    """Return the edits that make up most of the change, the largest first, and a sentence on the others."""
    size = np.abs(answer.delta[0]) / answer.info.scaler.scale  # (time, features)
    weights = np.array([size[edit.start : edit.end, edit.columns[0]].sum() for edit in edits])
    order = np.argsort(-weights, kind="stable")
    n = min(MAX_CHANGES, 1 + int(np.searchsorted(weights[order].cumsum(), DESCRIBED_SHARE * weights.sum())))
    others = [edits[k] for k in order[n:]]
    if not others:
        return [edits[k] for k in order], ""
    names = listed_up_to_max(list(dict.fromkeys(name for edit in others for name in edit.features)))
    share = percent(float(weights[order[n:]].sum() / weights.sum()))
    return [
        edits[k] for k in order[:n]
    ], f"And {count(len(others), 'other change')} ({share} of all change), in {names}."


def brief_phrase(answer: Explanation, edits: Sequence[Edit]) -> str:
    """Return the features and the time of an edit, for a sentence."""
    told = [edit for edit in edits if edit.kind != FREE]
    first = (told or _largest(answer, edits)[0])[:MAX_BRIEF]
    parts = [f"{_who(answer, edit)} {_when(answer, edit)}" for edit in first]
    if others := len(told or edits) - len(first):
        parts.append(count(others, "other edit"))
    follows = {edit.row for edit in told}
    like = f", {_following(answer, told[0])}" if len(follows) == 1 and told[0].kind == "follow" else ""
    return f"{listed(parts)}{like}"


def _phrase(answer: Explanation, edit: Edit, *, like: bool = True) -> str:
    what = _what(answer, edit)
    if like and edit.kind == "follow":
        what += f", {_following(answer, edit)}"
    along = ""
    if edit.needed_by and "model" not in edit.needed_by:
        why = "for the other models" if "families" in edit.needed_by else "for realism"
        along = f" (needed {why})"
    return f"{_who(answer, edit)} {_when(answer, edit)}: {what}{along}"


def _own_features(answer: Explanation, edit: Edit) -> list[int]:
    """Return the features that an edit acts on, without those that only move along."""
    return [f for f in edit.columns if f < answer.info.n_features]


def _who(answer: Explanation, edit: Edit) -> str:
    """Return a name for features: the name of a user's group, of limbs, or the list of names."""
    names = [answer.feature_names[f] for f in _own_features(answer, edit)] or list(edit.features)
    for constraints in (answer.constraints.get("explain", {}), answer.constraints.get("fit", {})):
        for name, members in constraints.get("groups", {}).items():
            indices = [answer.info.feature_index(member) for member in members]
            if sorted(answer.feature_names[f] for f in indices) == sorted(names):
                return str(name)
    return group_name(names, answer.feature_names)


def _when(answer: Explanation, edit: Edit) -> str:
    if edit.start == 0 and edit.end == answer.query.shape[1]:
        return "throughout"
    return when_phrase(edit.start, edit.end, answer.info.sampling_rate)


def _following(answer: Explanation, edit: Edit) -> str:
    """Return the series that an edit follows, and how far."""
    if edit.row is None:
        return "following what the generator proposes"
    whom = f"recording {edit.row}"
    whom += ", which lies within the target" if answer.info.is_regression else f" of class {answer.target_names[0]}"
    if abs(edit.amount - 1) <= WHOLE:
        return f"following {whom}"
    if edit.amount < 1:
        return f"going {percent(edit.amount)} of the way to {whom}"
    return f"going {amount(edit.amount)} times the way to {whom}"


def _what(answer: Explanation, edit: Edit) -> str:
    """Describe an edit: its operation, or the changes of the most changed features."""
    rate = answer.info.sampling_rate
    if edit.kind == "shift":
        late = abs(edit.amount)
        much = f"{seconds(late / rate)[0]} s" if rate else count(round(late), "step")
        return f"{much} {'later' if edit.amount > 0 else 'earlier'}"
    if edit.kind == "size":
        return f"{amount(edit.amount)} times as far from its mean"
    if edit.kind == "smooth":
        width = 2 * int(edit.amount) + 1
        return f"averaged over {f'{seconds(width / rate)[0]} s' if rate else count(width, 'step')}"
    return _moves(answer, edit)


def _moves(answer: Explanation, edit: Edit) -> str:
    """Describe the largest changes of features, on average over the changed steps."""
    own = _own_features(answer, edit) or [answer.feature_names.index(name) for name in edit.features]
    query = answer.query[0]
    try:
        delta = apply_edits(query, [edit]) - query
    except DataError:  # the course of a training series is not stored
        delta = answer.delta[0]  # use the whole answer
    change = np.nan_to_num(delta[edit.start : edit.end].astype(np.float64))
    size = np.abs(change).sum(0) / answer.info.scaler.scale
    chosen = sorted(own, key=lambda f: -size[f])[:MAX_MOVES]
    places = {f: place_of(answer, f) for f in own}
    named = {f: answer.feature_names[f] if place is None else place.point for f, place in places.items()}
    of_name: dict[str, list[str]] = {}
    for f in chosen:
        if size[f] > 0:
            of_name.setdefault(named[f], []).append(_move(answer, f, change[:, f]))
    moves = [
        listed(some) if len(set(named.values())) == 1 else f"{name} {listed(some)}" for name, some in of_name.items()
    ]
    return listed(moves) if moves else "a negligible change"


def _move(answer: Explanation, feature: int, change: FloatArray) -> str:
    """Describe how much higher or lower a feature is: ``0.12 m higher``."""
    unit, changed = unit_of(answer, feature), change[change != 0]
    if abs(changed.sum()) < ONE_WAY * np.abs(changed).sum():
        place = place_of(answer, feature)
        ways = "both ways" if place is None else "up and down" if place.is_height else f"to and fro along {place.axis}"
        return f"{ways} by up to {amount(np.abs(changed).max())}{unit}"
    mean = float(changed.mean())
    return f"{amount(abs(mean))}{unit} {further(answer, feature, mean > 0)}"
