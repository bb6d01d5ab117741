"""How different the answers to one query are, where several were asked for (``explain(X, n=3)``); higher is better.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y != 1][:2], target=1, n=3)
>>> bool((diversity(e) > 0).all())  # three neighbours
True
>>> place_diversity(e).tolist()  # which all differ from the query everywhere
[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, steps_within
from sparcets.explanation import Explanation
from sparcets.metrics.proximity import n_entries
from sparcets.metrics.sparsity import changed_within

_CHUNK = 2**20  # entries compared at once, bounding memory


def diversity(e: Explanation) -> FloatArray:
    """Return the mean distance of each counterfactual to the other valid ones of the same query.

    The distance is that of :func:`~sparcets.metrics.proximity.similarity`, ‖c − c'‖₁ / (T·F) in standardised units.
    NaN for answers that are not valid, and where there is no other valid one.
    """
    inside = steps_within(e.lengths, len(e), e.query.shape[1])
    entries = n_entries(e)

    def distance(one: IntArray, other: IntArray) -> FloatArray:
        apart = e.counterfactual[one].astype(np.float64)
        apart -= e.counterfactual[other]
        apart /= e.info.scaler.scale
        return np.asarray((np.abs(apart, out=apart).sum(2) * inside[one]).sum(1) / entries[one])

    return _mean_over_pairs(e, distance)


def place_diversity(e: Explanation) -> FloatArray:
    """Return how differently placed the changes of the answers to one query are: the mean of 1 − Jaccard.

    0 where they change the same entries, 1 where they share none. NaN as in :func:`diversity`.
    """
    changed = changed_within(e)

    def distance(one: IntArray, other: IntArray) -> FloatArray:
        return 1 - jaccard(changed[one], changed[other])

    return _mean_over_pairs(e, distance)


def jaccard(one: BoolArray, other: BoolArray) -> FloatArray:
    """Return the overlap |A ∩ B| / |A ∪ B| of masks (answers, time, features); 1 where both are empty.

    Examples
    --------
    >>> masks = np.array([[[1], [1], [0]], [[0], [1], [1]]], dtype=bool)
    >>> jaccard(masks[:1], masks[1:]).round(2).tolist()
    [0.33]
    """
    both, either = (one & other).sum((1, 2)), (one | other).sum((1, 2))
    return np.asarray(np.divide(both, either, out=np.ones(len(one)), where=either > 0))


def _mean_over_pairs(e: Explanation, distance: Callable[[IntArray, IntArray], FloatArray]) -> FloatArray:
    """Return for each answer the mean of a symmetric ``distance(rows, rows)`` over its pairs; NaN where it has none."""
    total, count = np.zeros(len(e)), np.zeros(len(e))
    step = max(1, _CHUNK // max(1, e.query[0].size if len(e) else 1))
    for one, other in _pairs(e):
        for start in range(0, len(one), step):
            rows, others = one[start : start + step], other[start : start + step]
            apart = distance(rows, others)
            for of in (rows, others):  # no answer stands twice on the same side
                total[of] += apart
                count[of] += 1
    return np.asarray(np.divide(total, count, out=np.full(len(e), np.nan), where=count > 0))


def _pairs(e: Explanation) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield every pair of valid answers to one query once, as rows: neighbours first, then those two apart, …"""
    valid = np.flatnonzero(e.valid)
    order = valid[np.argsort(e.query_index[valid], kind="stable")]
    queries = e.query_index[order]
    for apart in range(1, len(order)):
        same = queries[apart:] == queries[:-apart]
        if not same.any():
            return
        yield order[:-apart][same], order[apart:][same]
