"""Shared by the static and the interactive figures of answers: choice of features, time axis, labels and titles."""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.errors import ShapeError
from sparcets.explanation.amounts import percent
from sparcets.explanation.result import Explanation
from sparcets.explanation.said import said_after, said_before, subject_of
from sparcets.narrate.method import method_name
from sparcets.narrate.names import has_name, query_name

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
    return f"p({target}) {float(answer.proba_before[0, int(answer.target[0])]):.2f} → {said_after(answer)}"
