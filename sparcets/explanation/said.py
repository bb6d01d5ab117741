"""What the explained model says of an answer, in a few words: a class and a probability, or a number with its unit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sparcets.arrays import FloatArray

if TYPE_CHECKING:
    from sparcets.explanation.result import Explanation


def said_before(e: Explanation, i: int = 0) -> str:
    """Return what the model says of the query of answer ``i``: the name of a class, or the numbers asked for."""
    if e.numbers is None:
        return e.class_names[int(e.predicted[i])]
    return _numbers(e, e.numbers.before, i)


def said_after(e: Explanation, i: int = 0) -> str:
    """Return what the model says of answer ``i``: the probability of the target, or the number."""
    if e.numbers is None:
        return f"{float(e.probability[i]):.2f}"
    return _numbers(e, e.numbers.after, i)


def subject_of(e: Explanation, i: int = 0) -> str:
    """Return what answer ``i`` is about, of a regressor: the names of the outputs that were asked for."""
    assert e.info.outcome is not None
    return ", ".join(e.info.outcome.names[k] for k in _asked(e, i))


def _asked(e: Explanation, i: int) -> list[int]:
    assert e.numbers is not None
    return [int(k) for k in np.flatnonzero(np.isfinite(e.numbers.bounds[i]).any(1))]


def _numbers(e: Explanation, numbers: FloatArray, i: int) -> str:
    assert e.info.outcome is not None
    return e.info.outcome.say(numbers[i], _asked(e, i))
