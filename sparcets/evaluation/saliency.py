"""ROC of |δ| against the known salient entries (section 6 of the paper); higher is better.

Examples
--------
>>> from dataclasses import replace
>>> import sparcets as sp
>>> from sparcets.testing.mocks import mean_proba
>>> ds = sp.load_dataset("moving_box", n_per_combination=20)
>>> salient = ds.salient_test[:3]
>>> e = sp.Nearest(sp.wrap(lambda X: mean_proba(X, 2))).fit(ds).explain(ds.X_test[:3], target=1)
>>> perfect = replace(e, counterfactual=np.where(salient, e.query + 2, e.query))
>>> salient_auc(perfect, salient).tolist(), pooled_auc(perfect, salient)
([1.0, 1.0, 1.0], 1.0)
>>> fpr, tpr = roc(e, salient, grid=3)
>>> fpr.tolist(), tpr.shape
([0.0, 0.5, 1.0], (3,))
"""

from __future__ import annotations

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray
from sparcets.evaluation.measures import queries_of, standardised_delta

_CHUNK = 1_000_000  # entries ranked per chunk, bounding memory


def salient_auc(e: Explanation, salient: BoolArray) -> FloatArray:
    """Return the area under the ROC curve of |δ| (standardised) against the salient entries, per answer.

    This is the probability that a salient entry changes more than a non-salient one, with ties counting half: 1 where
    all changes are in salient entries, 0.5 where nothing changes, NaN where all entries are salient or none is. The
    mask (answers, time, features) has the entries that determine the class of each answer's query; padding does not
    count.
    """
    from scipy.stats import rankdata

    area = np.full(len(e), np.nan)
    rows = max(1, _CHUNK // max(1, e.query[0].size if len(e) else 1))
    for start in range(0, len(e), rows):
        part = slice(start, start + rows)
        size, inside = _sizes(e[part])  # (answers, entries)
        positive = salient[part].reshape(size.shape) & inside
        # Padding ranks below everything else, so subtracting its count gives the ranks within the series.
        ranks = rankdata(np.where(inside, size, -1.0), axis=1) - (~inside).sum(1, keepdims=True)
        n = positive.sum(1).astype(np.float64)
        pairs = n * (inside.sum(1) - n)
        # Mann-Whitney U: the rank sum of the salient entries minus its minimum.
        u = (ranks * positive).sum(1) - n * (n + 1) / 2
        np.divide(u, pairs, out=area[part], where=pairs > 0)
    return area


def pooled_auc(e: Explanation, salient: BoolArray) -> float:
    """Return the area under the ROC curve of the entries of all answers together; NaN where all or none are salient."""
    high, low = _pooled(e, salient)
    if not len(high) or not len(low):
        return float("nan")
    below = np.searchsorted(low, high, side="left").sum() + np.searchsorted(low, high, side="right").sum()
    return float(below / 2 / len(high) / len(low))


def roc(e: Explanation, salient: BoolArray, grid: int = 101) -> tuple[FloatArray, FloatArray]:
    """Return the ROC curve of the entries of all answers together, at ``grid`` even false positive rates from 0 to 1.

    False and true positive rates are the shares of the non-salient and of the salient entries that change more than a
    threshold (grid,). Where the curve is vertical, the true one is its upper end; NaN where all entries are salient or
    none is.
    """
    high, low = _pooled(e, salient)
    fpr = np.linspace(0.0, 1.0, grid)
    if not len(high) or not len(low):
        return fpr, np.full(grid, np.nan)
    # Integer arithmetic, because a rounded rate may miss a corner of the curve.
    rank, rest = np.divmod(np.arange(grid) * len(low), grid - 1)
    threshold = low[::-1][np.minimum(rank, len(low) - 1)]
    fewer = [len(x) - np.searchsorted(x, threshold, side="right") for x in (low, high)]  # entries above the threshold
    more = [len(x) - np.searchsorted(x, threshold, side="left") for x in (low, high)]  # … or equal to it
    share = (rank + rest / (grid - 1) - fewer[0]) / (more[0] - fewer[0])  # position on the line between the corners
    tpr = (fewer[1] + share * (more[1] - fewer[1])) / len(high)
    tpr[-1] = 1.0  # the end of the curve includes the entries below the lowest threshold
    return fpr, np.asarray(tpr)


def _sizes(e: Explanation) -> tuple[FloatArray, BoolArray]:
    """Return |δ| in standard deviations and the mask of entries that count, both (answers, time · features)."""
    size = np.abs(standardised_delta(e)).reshape(len(e), e.query.shape[1] * e.query.shape[2])
    return size, queries_of(e).measured.reshape(size.shape)


def _pooled(e: Explanation, salient: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return |δ| of all salient and of all non-salient entries, each sorted."""
    salient = salient.reshape(len(e), e.query.shape[1] * e.query.shape[2])
    size, inside = _sizes(e)
    high, low = size[salient & inside], size[~salient & inside]
    high.sort()
    low.sort()
    return high, low
