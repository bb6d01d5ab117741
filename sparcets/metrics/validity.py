"""Does the classifier say what was asked for? Precision in its three readings (the paper's section 6), and plainly.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y != 1][:3], target=1)
>>> valid(e).tolist(), error_rate(e).tolist(), coverage(e)
([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], 1.0)
"""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explanation import Explanation


def valid(e: Explanation) -> FloatArray:
    """Return 1 where the classifier says the target, else 0: its mean is the validity. Higher is better."""
    return e.valid.astype(np.float64)


def target_probability(e: Explanation) -> FloatArray:
    """Return the classifier's probability of the target after the change. Higher is better."""
    return e.probability.astype(np.float64)


def coverage(e: Explanation) -> float:
    """Return the share of the queries with at least one valid answer, over those that needed one. Higher is better.

    Queries that the classifier puts into the target class already (``unchanged``) are left out; NaN if all are.
    """
    asked = e.status != "unchanged"
    queries = np.unique(e.query_index[asked])
    answered = np.unique(e.query_index[asked & e.valid])
    return len(answered) / len(queries) if len(queries) else float("nan")


def error_rate(e: Explanation) -> FloatArray:
    """Return 1 where the classifier does not say the target, else 0: its mean is 1 − validity. Lower is better."""
    return (~e.valid).astype(np.float64)


def index_distance(e: Explanation) -> FloatArray:
    """Return |argmax − target| on class indices, as the published code does; it depends on the order of the classes."""
    return np.asarray(np.abs(e.proba_after.argmax(1) - e.target), dtype=np.float64)


def probability_distance(e: Explanation) -> FloatArray:
    """Return the L2 distance between the predicted probabilities and certainty of the target, in [0, √2]."""
    certain = np.eye(e.proba_after.shape[1])[e.target]
    return np.asarray(np.linalg.norm(e.proba_after - certain, axis=1))
