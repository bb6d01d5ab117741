"""What pictures of answers have in common, for print and page: which features, the times, and the words on the axes."""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.errors import ShapeError
from sparcets.explanation import Explanation

MOST = 5  # features drawn as curves


def only_answer(answer: Explanation) -> Explanation:
    """Return what was passed, if it is one answer."""
    if len(answer) != 1:
        raise ShapeError(f"this draws one answer, got {len(answer)}. Pass one of them, such as explanation[3].")
    return answer


def most_changed(answers: Explanation, most: int = MOST) -> list[int]:
    """Return the features that change most in standard deviations, in their own order; the first few if none does."""
    size = np.abs(answers.delta / answers.info.scaler.scale).sum((0, 1))  # (features,)
    order = np.argsort(-size, kind="stable")
    changed = [int(f) for f in order if size[f] > 0]
    return sorted((changed or [int(f) for f in order])[:most])


def n_steps_of(answer: Explanation) -> int:
    """Return the number of steps that are not padding."""
    return int(answer.query.shape[1] if answer.lengths is None else answer.lengths[0])


def times_of(answer: Explanation) -> FloatArray:
    """Return the time of each step that is not padding: in seconds where the rate is known, else in steps."""
    return np.asarray(np.arange(n_steps_of(answer)) / (answer.info.sampling_rate or 1.0))


def time_label(answer: Explanation) -> str:
    """Return the label of the time axis."""
    return "time (s)" if answer.info.sampling_rate else "time (steps)"


def unit_of(answer: Explanation, feature: int) -> str:
    """Return the unit of a feature in brackets; ``(no unit)`` where it is not known."""
    unit = answer.info.units[feature] if answer.info.units else ""
    return f"({unit or 'no unit'})"


def title_of(answer: Explanation) -> str:
    """Return a line on what the model says before and after, and on how much changed."""
    before, wanted = answer.class_names[int(answer.predicted[0])], answer.class_names[int(answer.target[0])]
    change = f"{before} → {wanted}" if answer.status[0] != "unchanged" else f"{before}, as wanted"
    p_before = float(answer.proba_before[0, int(answer.target[0])])
    verdict = ", not reached" if answer.status[0] == "not_found" or not answer.valid[0] else ""
    return (
        f"{change}{verdict}   p({wanted}) {p_before:.2f} → {float(answer.probability[0]):.2f}   "
        f"{100 * float(answer.share_changed[0]):.3g} % changed   ({answer.method})"
    )
