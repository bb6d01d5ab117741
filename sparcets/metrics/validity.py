"""Does the classifier say what was asked for? Precision in its three readings (section 6); lower is better."""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explanation import Explanation


def error_rate(e: Explanation) -> FloatArray:
    """Return 1 where the classifier does not say the target, else 0: its mean is 1 − validity."""
    return (~e.valid).astype(np.float64)


def index_distance(e: Explanation) -> FloatArray:
    """Return |argmax − target| on class indices, as the published code does; it depends on the order of the classes."""
    return np.asarray(np.abs(e.proba_after.argmax(1) - e.target), dtype=np.float64)


def probability_distance(e: Explanation) -> FloatArray:
    """Return the L2 distance between the predicted probabilities and certainty of the target, in [0, √2]."""
    certain = np.eye(e.proba_after.shape[1])[e.target]
    return np.asarray(np.linalg.norm(e.proba_after - certain, axis=1))
