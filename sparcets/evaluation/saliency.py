"""ROC of |δ| against the known salient entries (section 6 of the paper); higher is better.

In every function, the mask (answers, time, features) has the entries that determine the class of each answer's query;
padding does not count.
"""

from __future__ import annotations

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray
from sparcets.evaluation.measures import queries_of, standardised_delta


def salient_auc(e: Explanation, salient: BoolArray) -> FloatArray:
    """Return the area under the ROC curve of |δ| (standardised) against the salient entries, per answer.

    This is the probability that a salient entry changes more than a non-salient one, with ties counting half: 1 where
    all changes are in salient entries, 0.5 where nothing changes, NaN where all entries are salient or none is.
    """
    area = np.full(len(e), np.nan)
    for i, (size, measured, of_class) in enumerate(zip(*_sizes(e), salient, strict=True)):
        high, low = _sorted(size, of_class & measured), _sorted(size, ~of_class & measured)
        if len(high) and len(low):
            area[i] = _pairs(high, low) / (len(high) * len(low))
    return area


def pooled_auc(e: Explanation, salient: BoolArray) -> float:
    """Return the area under the ROC curve of the entries of all answers together; NaN where all or none are salient."""
    high, low = _pooled(e, salient)
    if not len(high) or not len(low):
        return float("nan")
    return float(_pairs(high, low) / len(high) / len(low))


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
    """Return |δ| in standard deviations and the mask of entries that count, both (answers, time, features)."""
    return np.abs(standardised_delta(e)), queries_of(e).measured


def _pooled(e: Explanation, salient: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return |δ| of all salient and of all non-salient entries, each sorted."""
    size, measured = _sizes(e)
    return _sorted(size, salient & measured), _sorted(size, ~salient & measured)


def _sorted(size: FloatArray, chosen: BoolArray) -> FloatArray:
    return np.sort(size[chosen])


def _pairs(high: FloatArray, low: FloatArray) -> float:
    """Return the number of pairs whose first is larger, of sorted sizes; those that are equal count half."""
    return float(np.searchsorted(low, high, side="left").sum() + np.searchsorted(low, high, side="right").sum()) / 2
