"""When a target is reached: the explained classifier's own word."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray


def is_reached(proba: FloatArray, target: Any, confidence: float | None) -> BoolArray:
    """Return whether the largest probability of each series is that of its target, and at least ``confidence``.

    Parameters
    ----------
    proba
        Probabilities (batch, classes).
    target
        Target classes (batch,).
    confidence
        The least probability that counts, or None.

    Examples
    --------
    >>> proba = np.array([[0.4, 0.6], [0.1, 0.9], [0.7, 0.3]])
    >>> is_reached(proba, [1, 1, 1], None).tolist(), is_reached(proba, [1, 1, 1], 0.9).tolist()
    ([True, True, False], [False, True, False])
    """
    reached = proba.argmax(1) == target
    if confidence is not None:
        reached &= proba[np.arange(len(proba)), target] >= confidence
    return np.asarray(reached)
