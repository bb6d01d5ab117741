"""Validity: does the classifier predict the target? With the three definitions of the paper's precision (section 6).

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
from sparcets.explanation.result import Explanation


def valid(e: Explanation) -> FloatArray:
    """Return 1 where the classifier predicts the target, else 0: the mean is the validity. Higher is better."""
    return e.valid.astype(np.float64)


def target_probability(e: Explanation) -> FloatArray:
    """Return the classifier's probability of the target after the change. Higher is better."""
    return e.probability.astype(np.float64)


def coverage(e: Explanation) -> float:
    """Return the share of queries with at least one valid answer. Higher is better.

    Queries that the classifier already puts into the target class (``unchanged``) do not count; NaN if all are.
    """
    counted = e.status != "unchanged"
    queries = np.unique(e.query_index[counted])
    answered = np.unique(e.query_index[counted & e.valid])
    return len(answered) / len(queries) if len(queries) else float("nan")


def error_rate(e: Explanation) -> FloatArray:
    """Return 1 where the classifier does not predict the target, else 0: the mean is 1 − validity. Lower is better."""
    return (~e.valid).astype(np.float64)


def index_distance(e: Explanation) -> FloatArray:
    """Return |argmax − target| on class indices, as in the published code; it depends on the order of the classes."""
    return np.asarray(np.abs(e.proba_after.argmax(1) - e.target), dtype=np.float64)


def probability_distance(e: Explanation) -> FloatArray:
    """Return the L2 distance between the predicted probabilities and the one-hot target, in [0, √2]."""
    one_hot = np.eye(e.proba_after.shape[1])[e.target]
    return np.asarray(np.linalg.norm(e.proba_after - one_hot, axis=1))
