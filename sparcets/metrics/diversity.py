"""Diversity of the answers to one query where ``n > 1`` were requested (``explain(X, n=3)``); higher is better.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y != 1][:2], target=1, n=3)
>>> bool((diversity(e) > 0).all())  # three neighbours
True
>>> place_diversity(e).tolist()  # each neighbour differs from the query in every entry
[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, length_mask
from sparcets.explanation.result import Explanation
from sparcets.metrics.proximity import n_entries
from sparcets.metrics.sparsity import changed_within

_CHUNK = 2**20  # entries compared at once, bounding memory


def diversity(e: Explanation) -> FloatArray:
    """Return the mean distance of each counterfactual to the other valid ones of the same query.

    The distance is that of :func:`~sparcets.metrics.proximity.similarity`, ‖c − c'‖₁ / (T·F) in standardised units.
    NaN for answers that are not valid, and where there is no other valid one.
    """
    inside = length_mask(e.lengths, len(e), e.query.shape[1])
    entries = n_entries(e)

    def distance(one: IntArray, other: IntArray) -> FloatArray:
        difference = e.counterfactual[one].astype(np.float64)
        difference -= e.counterfactual[other]
        difference /= e.info.scaler.scale
        if (gaps := e.missing) is not None:
            difference[gaps[one]] = 0.0
        return np.asarray((np.abs(difference, out=difference).sum(2) * inside[one]).sum(1) / entries[one])

    return _mean_over_pairs(e, distance)


def place_diversity(e: Explanation) -> FloatArray:
    """Return the mean Jaccard distance (1 − index) between the changed entries of each answer and the others.

    0 where they change the same entries, 1 where they share none. NaN as in :func:`diversity`.
    """
    changed = changed_within(e)

    def distance(one: IntArray, other: IntArray) -> FloatArray:
        return 1 - jaccard(changed[one], changed[other])

    return _mean_over_pairs(e, distance)


def jaccard(one: BoolArray, other: BoolArray) -> FloatArray:
    """Return the Jaccard index |A ∩ B| / |A ∪ B| of masks (answers, time, features); 1 where both are empty.

    Examples
    --------
    >>> masks = np.array([[[1], [1], [0]], [[0], [1], [1]]], dtype=bool)
    >>> jaccard(masks[:1], masks[1:]).round(2).tolist()
    [0.33]
    """
    both, either = (one & other).sum((1, 2)), (one | other).sum((1, 2))
    return np.asarray(np.divide(both, either, out=np.ones(len(one)), where=either > 0))


def _mean_over_pairs(e: Explanation, distance: Callable[[IntArray, IntArray], FloatArray]) -> FloatArray:
    """Return the mean of a symmetric ``distance(rows, others)`` over the pairs of each answer; NaN without a pair."""
    total, count = np.zeros(len(e)), np.zeros(len(e))
    step = max(1, _CHUNK // max(1, e.query[0].size if len(e) else 1))
    for one, other in _pairs(e):
        for start in range(0, len(one), step):
            rows, others = one[start : start + step], other[start : start + step]
            distances = distance(rows, others)
            for side in (rows, others):  # indices within one side are unique, so += adds every pair
                total[side] += distances
                count[side] += 1
    return np.asarray(np.divide(total, count, out=np.full(len(e), np.nan), where=count > 0))


def _pairs(e: Explanation) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield every pair of valid answers to one query once, as two arrays of rows."""
    valid = np.flatnonzero(e.valid)
    order = valid[np.argsort(e.query_index[valid], kind="stable")]
    queries = e.query_index[order]
    for offset in range(1, len(order)):
        same = queries[offset:] == queries[:-offset]
        if not same.any():
            return
        yield order[:-offset][same], order[offset:][same]
