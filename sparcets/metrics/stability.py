"""Stability of answers when the seed, the training data or noise on the queries varies.

Each function compares two explanations of the same queries in the same order, answer by answer.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> explainer = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
>>> query = X[y != 1][:3]
>>> e, other = explainer.explain(query, target=1), explainer.explain(query + 0.001, target=1)
>>> stays_valid(e, other).tolist(), stays_in_place(e, other).tolist()
([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
>>> bool((residual_distance(e, other) < 0.01).all())
True
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.errors import ShapeError
from sparcets.explanation.result import Explanation
from sparcets.metrics.diversity import jaccard
from sparcets.metrics.proximity import n_entries, standardised_delta
from sparcets.metrics.sparsity import changed_within


def stays_valid(e: Explanation, other: Explanation) -> FloatArray:
    """Return 1 where both answers are valid, 0 where only the first is; NaN where the first is not."""
    _check_same_queries(e, other)
    return np.where(e.valid, other.valid.astype(np.float64), np.nan)


def stays_in_place(e: Explanation, other: Explanation) -> FloatArray:
    """Return the Jaccard index |A ∩ B| / |A ∪ B| of the changed entries; NaN unless both answers are valid."""
    _check_same_queries(e, other)
    return np.where(e.valid & other.valid, jaccard(changed_within(e), changed_within(other)), np.nan)


def residual_distance(e: Explanation, other: Explanation) -> FloatArray:
    """Return ‖δ − δ'‖₁ / (T·F), both standardised by the scaler of ``e``; NaN unless both answers are valid."""
    _check_same_queries(e, other)
    difference = standardised_delta(e)
    difference -= standardised_delta(replace(other, info=e.info))
    distance = np.abs(difference, out=difference).sum((1, 2)) / n_entries(e)
    return np.where(e.valid & other.valid, distance, np.nan)


def _check_same_queries(e: Explanation, other: Explanation) -> None:
    if e.query.shape != other.query.shape:
        raise ShapeError(
            f"stability compares explanations of the same queries, got answers of shape {e.query.shape} and "
            f"{other.query.shape}. Explain the same queries twice, with the same n."
        )
    for name in ("query_index", "target", "lengths"):
        if not np.array_equal(getattr(e, name), getattr(other, name)):
            raise ShapeError(
                f"stability compares explanations of the same queries in the same order for the same targets, but the "
                f"two differ in {name}. Explain the same queries twice, with the same target=, and slice both alike."
            )
