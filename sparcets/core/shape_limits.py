"""Constraints on the shape of changes: whole numbers, monotone stretches, fixed sums, few features."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray


def rounded(query: FloatArray, result: FloatArray, integer: BoolArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Round the changed entries of integer features to the nearest whole number within the bounds (features,).

    >>> query, result = np.zeros((1, 3, 1)), np.array([[[0.4], [0.6], [2.7]]])
    >>> rounded(query, result, np.array([True]), low=np.zeros(1), high=np.full(1, 2.0)).ravel()
    array([0., 1., 2.])
    """
    whole = np.clip(np.rint(result), np.ceil(low), np.floor(high))
    return np.where(integer & (result != query), whole, result)


def straightened(query: FloatArray, result: FloatArray, trend: IntArray) -> FloatArray:
    """Make stretches of changed entries monotone, for features with a trend.

    The mean of the largest value so far and the smallest value still to come is monotone, and of all monotone series
    the one whose largest deviation is smallest.

    >>> straightened(np.zeros((1, 4, 1)), np.array([[[1.0], [3.0], [2.0], [0.0]]]), np.array([1])).ravel()
    array([1. , 2.5, 2.5, 0. ])
    """
    features = np.flatnonzero(trend)
    x = result[..., features] * trend[features].astype(result.dtype)
    changed = result[..., features] != query[..., features]
    so_far, to_come = x.copy(), x.copy()
    for t in range(1, x.shape[1]):
        follows = changed[:, t] & changed[:, t - 1]
        so_far[:, t] = np.where(follows, np.maximum(x[:, t], so_far[:, t - 1]), x[:, t])
    for t in range(x.shape[1] - 2, -1, -1):
        precedes = changed[:, t] & changed[:, t + 1]
        to_come[:, t] = np.where(precedes, np.minimum(x[:, t], to_come[:, t + 1]), x[:, t])
    middle = so_far / 2 + to_come / 2
    straight: FloatArray = result.copy()
    moved = np.where(so_far == to_come, x, middle) * trend[features].astype(result.dtype)
    straight[..., features] = np.where(changed, moved, result[..., features])
    return straight


def wrong_trend(query: FloatArray, result: FloatArray, trend: IntArray) -> BoolArray:
    """Mark changed entries that break the trend of the changed entry before them."""
    changed = result != query
    wrong = np.zeros(result.shape, dtype=bool)
    # Comparing, not subtracting: differences of close numbers may round to zero.
    falls, rises = result[:, 1:] < result[:, :-1], result[:, 1:] > result[:, :-1]
    against = ((trend > 0) & falls) | ((trend < 0) & rises)
    wrong[:, 1:] = against & changed[:, 1:] & changed[:, :-1]
    return wrong


def balance(
    query: FloatArray,
    result: FloatArray,
    free: BoolArray,
    members: IntArray,
    integer: BoolArray,
    tolerance: FloatArray,
    *,
    complete: bool,
) -> FloatArray:
    """Change features together so that their sum at every step is that of the query.

    Parameters
    ----------
    query, result, free
        Series, and which of their entries may change (batch, time, features).
    members
        Indices of the features.
    integer
        Which of them are whole numbers (members,).
    tolerance
        Differences of sums below this are none (members,).
    complete
        Whether members that did not change may be used, where a change has no counterpart among the changed ones.

    Examples
    --------
    >>> query, result = np.zeros((1, 1, 3)), np.array([[[2.0, 0.0, 0.0]]])
    >>> free = np.array([[[True, True, False]]])
    >>> members, integer = np.array([0, 1, 2]), np.zeros(3, dtype=bool)
    >>> balance(query, result, free, members, integer, np.full(3, 1e-6), complete=True).ravel().tolist()
    [2.0, -2.0, 0.0]
    """
    q = query[..., members].astype(np.float64)
    wrong = unbalanced(query[..., members], result[..., members], tolerance)[..., None]  # the others keep their bits
    delta = result[..., members] - q  # (batch, time, members)
    partners = (delta != 0) & wrong
    single = partners.sum(-1, keepdims=True) == 1
    if complete:  # the opposite change, in equal parts to the others
        others = single & ~partners & free[..., members]
        part = delta.sum(-1, keepdims=True) / np.maximum(others.sum(-1, keepdims=True), 1)
        delta = np.where(others, -part, delta)
        partners |= others
    surplus = delta.sum(-1, keepdims=True) / np.maximum(partners.sum(-1, keepdims=True), 1)
    delta = np.where(partners, delta - surplus, 0.0)
    delta = np.where(integer, np.rint(delta), delta)
    moved = np.where(partners, q + delta, q).astype(result.dtype)
    # What rounding left over goes to the partner with the largest change, one that is not whole if there is one.
    size = np.where(partners, np.abs(delta) + 1e300 * ~integer, -1.0)
    last = size.argmax(-1)[..., None]
    left = (moved.astype(np.float64) - q).sum(-1, keepdims=True)
    filled = np.take_along_axis(moved.astype(np.float64), last, -1) - left
    np.put_along_axis(moved, last, filled.astype(result.dtype), -1)
    balanced: FloatArray = result.copy()
    balanced[..., members] = np.where(partners, moved, result[..., members])
    return balanced


def unbalanced(query: FloatArray, result: FloatArray, tolerance: FloatArray) -> BoolArray:
    """Return at which steps (batch, time) the sum of features (batch, time, members) is not the query's.

    Sums may differ by rounding, of the sum and of its members, or by the tolerance of the features.
    """
    difference = np.abs(result.astype(np.float64).sum(-1) - query.astype(np.float64).sum(-1))
    with np.errstate(over="ignore", invalid="ignore"):
        unit = np.spacing(np.maximum(np.abs(result), np.abs(query)).max(-1)).astype(np.float64)
    return np.asarray(difference > np.maximum(tolerance.min(), 2 * len(tolerance) * unit))


def most_changed(
    query: FloatArray,
    result: FloatArray,
    at_most: int,
    tolerance: FloatArray,
    bound_together: tuple[np.ndarray[Any, Any], ...],
) -> BoolArray:
    """Return the features of each series (batch, features) that may stay changed: those that change most.

    Parameters
    ----------
    query, result
        Series (batch, time, features).
    at_most
        Largest number of features.
    tolerance
        Proportional to the range of each feature, so that changes of different features can be compared (features,).
    bound_together
        Features that change together or not at all.
    """
    scale = np.where(tolerance > 0, tolerance, 1.0)
    size = (np.abs(result.astype(np.float64) - query) / scale).sum(1)  # (batch, features)
    unit = np.arange(size.shape[1])  # features of one number are kept or reset together
    for members in bound_together:
        unit[np.isin(unit, unit[members])] = unit[members].min()
    kept = np.zeros(size.shape, dtype=bool)
    for row, sizes in enumerate(size):
        left = at_most
        totals = np.bincount(unit, sizes, minlength=len(unit))
        counts = np.bincount(unit, sizes > 0, minlength=len(unit))
        for one in np.argsort(-totals, kind="stable"):
            if 0 < counts[one] <= left:
                kept[row, unit == one] = True
                left -= int(counts[one])
    return kept
