"""Enforcing constraints: a proposal is moved back towards its query until every constraint holds exactly.

The query itself satisfies every constraint, because constraints apply to changes and allow steps as large as the
query's own. Moving entries towards the query, and never away from it, therefore ends in a series that satisfies all of
them. Entries that the proposal left unchanged stay unchanged; the number of changed entries never grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, length_mask

IMMUTABLE = "immutable features"


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundConstraints:
    """Constraints as arrays over (time, features), built by :meth:`sparcets.Constraints.bind`.

    Attributes
    ----------
    editable
        Entries that may change (time, features).
    mutable
        Features that may change (features,).
    low, high
        Bounds on changed entries (features,), infinite where unbounded.
    limit
        Largest difference between consecutive steps (features,), infinite where unbounded.
    sign
        1 increase only, -1 decrease only, 0 both (features,).
    groups
        Indices of features that change together or not at all.
    tolerance
        Changes below this are set to zero (features,).
    """

    editable: BoolArray
    mutable: BoolArray
    low: FloatArray
    high: FloatArray
    limit: FloatArray
    sign: IntArray
    groups: tuple[np.ndarray[Any, Any], ...]
    tolerance: FloatArray

    def combine(self, other: BoundConstraints) -> BoundConstraints:
        """Return the conjunction of both: what either forbids is forbidden."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        # Opposite directions, or ranges without a common value: the feature must not change.
        opposed = (self.sign * other.sign < 0) | (low > high)
        mutable = self.mutable & other.mutable & ~opposed
        groups = self.groups + other.groups
        for _ in groups:  # freezing one group may freeze another that shares a member
            for members in groups:
                mutable[members] &= mutable[members].all()
        return BoundConstraints(
            editable=self.editable & other.editable & mutable,
            mutable=mutable,
            low=low,
            high=high,
            limit=np.minimum(self.limit, other.limit),
            sign=np.where(self.sign != 0, self.sign, other.sign),
            groups=groups,
            tolerance=self.tolerance,
        )

    def active_kinds(self) -> list[str]:
        """Return the names of the kinds of constraints that are active."""
        kinds = {
            IMMUTABLE: not self.mutable.all(),
            "frozen steps": not self.editable[:, self.mutable].all(),
            "ranges": bool(np.isfinite(self.low).any() or np.isfinite(self.high).any()),
            "largest steps": bool(np.isfinite(self.limit).any()),
            "directions": bool((self.sign != 0).any()),
            "groups": len(self.groups) > 0,
        }
        return [kind for kind, active in kinds.items() if active]

    def enforce(self, query: FloatArray, proposal: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Move the proposal back towards the query until every constraint holds.

        Parameters
        ----------
        query, proposal
            Series (batch, time, features).
        lengths
            True lengths of padded series; padding is never changed.

        Returns
        -------
        counterfactual
            (batch, time, features) in the query's dtype; unchanged entries are bit-identical to the query.
        """
        inside = length_mask(lengths, len(query), query.shape[1])  # (batch, time)
        free = self.editable[None] & inside[..., None]  # (batch, time, features)
        steps = self._step_limits(query, inside) if np.isfinite(self.limit).any() else None
        while True:
            result = self._move_back(query, proposal, free, steps)
            violating = self._violations(query, result)
            if not violating.any():
                return result
            free &= ~violating  # fewer free entries in each iteration, so the loop terminates

    def _move_back(
        self, query: FloatArray, proposal: FloatArray, free: BoolArray, steps: FloatArray | None
    ) -> FloatArray:
        low, high = _inward(self.low, self.high, query.dtype)
        with np.errstate(over="ignore"):  # values beyond the query's dtype become infinite and are ignored below
            proposal = proposal.astype(query.dtype, copy=False)
        clipped = np.clip(proposal, low, high)
        result = np.where(free & (proposal != query) & np.isfinite(clipped), clipped, query)
        result = np.where(self._negligible(query, result) | self._wrong_direction(query, result), query, result)
        if steps is not None:
            result = self._limit_steps(query, result, steps)
        return np.where(result == query, query, result)  # 0.0 equals -0.0, but unchanged means bit-identical

    def _negligible(self, query: FloatArray, result: FloatArray) -> BoolArray:
        # In float64 the difference of two close float32 values is exact.
        return np.asarray(np.abs(result.astype(np.float64) - query) < self.tolerance)

    def _wrong_direction(self, query: FloatArray, result: FloatArray) -> BoolArray:
        return ((self.sign > 0) & (result < query)) | ((self.sign < 0) & (result > query))

    def _violations(self, query: FloatArray, result: FloatArray) -> BoolArray:
        """Mark changed entries that have to be reset to the query."""
        changed = result != query
        outside = (result < self.low) | (result > self.high)
        violating = changed & (outside | self._wrong_direction(query, result) | self._negligible(query, result))
        for members in self.groups:
            of_group = changed[..., members]  # (batch, time, members)
            partial = of_group.any(-1) & ~of_group.all(-1)
            violating[..., members] |= of_group & partial[..., None]
        return np.asarray(violating)

    def _step_limits(self, query: FloatArray, inside: BoolArray) -> FloatArray:
        """Return the largest step into each entry (batch, time, features): the limit or the query's own, if larger."""
        own = np.abs(np.diff(query.astype(np.float64), axis=1, prepend=query[:, :1].astype(np.float64)))
        return np.where(inside[..., None], np.maximum(self.limit, own), np.inf)

    def _limit_steps(self, query: FloatArray, result: FloatArray, steps: FloatArray) -> FloatArray:
        """Move entries back until no step exceeds its limit.

        The result is the maximum of two series that satisfy the limits, so it satisfies them too: the largest such
        series below the proposal, and the smallest such series above min(query, proposal). It lies between query and
        proposal.
        """
        features = np.flatnonzero(np.isfinite(self.limit))
        q, x, limit = query[..., features], result[..., features], steps[..., features]
        too_large = np.abs(np.diff(x.astype(np.float64), axis=1)) > limit[:, 1:]
        series, feature = np.nonzero(too_large.any(1))  # the others stay bit-identical
        q, x, limit = (v[series, :, feature].T for v in (q, x, limit))  # (time, curves)
        below = -_lower_envelope(-np.minimum(q, x), -q, limit)
        moved = np.where(x == q, q, np.maximum(_lower_envelope(x, q, limit), below))
        final: FloatArray = result.copy()
        final[series, :, features[feature]] = moved.T
        return final


def _lower_envelope(x: FloatArray, query: FloatArray, limit: FloatArray) -> FloatArray:
    """Return the largest series below ``x`` (time, curves) whose step into t is at most ``limit[t]``."""
    result: FloatArray = x.copy()
    for t in range(1, len(x)):
        result[t] = np.minimum(result[t], _largest_reachable(result[t - 1], limit[t], query[t - 1], query[t]))
    for t in range(len(x) - 2, -1, -1):
        result[t] = np.minimum(result[t], _largest_reachable(result[t + 1], limit[t + 1], query[t + 1], query[t]))
    return result


def _largest_reachable(
    start: FloatArray, limit: FloatArray, query_start: FloatArray, query_end: FloatArray
) -> FloatArray:
    """Return the largest value within ``limit`` of ``start``, rounded so that the difference is at most the limit.

    The query's own step is within the limit, so from a start above the query the query's end can always be reached;
    rounding must not exclude it.
    """
    from_start = start.astype(np.float64)
    with np.errstate(over="ignore"):
        end = (from_start + limit).astype(start.dtype)
        end = np.where(end - from_start > limit, np.nextafter(end, start), end)  # rounded up: one bit down
    return np.where(start >= query_start, np.maximum(end, query_end), end)


def _inward(low: FloatArray, high: FloatArray, dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """Round bounds to the dtype of the series, inwards."""
    with np.errstate(over="ignore"):
        low_t, high_t = low.astype(dtype), high.astype(dtype)
    low_t = np.where(low_t < low, np.nextafter(low_t, dtype.type(np.inf)), low_t)
    high_t = np.where(high_t > high, np.nextafter(high_t, dtype.type(-np.inf)), high_t)
    return low_t, high_t


def keep_largest(query: FloatArray, proposal: FloatArray, *, at_most: IntArray, scale: FloatArray) -> FloatArray:
    """Keep only the largest changes of each series.

    Parameters
    ----------
    query, proposal
        Series (batch, time, features).
    at_most
        Number of entries that may change in each series (batch,).
    scale
        Standard deviation of each feature, to compare changes of different features.

    Examples
    --------
    >>> proposal = np.array([[[1.0], [3.0], [2.0]]])
    >>> keep_largest(np.zeros((1, 3, 1)), proposal, at_most=np.array([1]), scale=np.ones(1)).ravel()
    array([0., 3., 0.])
    """
    size = np.abs((proposal.astype(np.float64) - query) / scale).reshape(len(query), -1)  # (batch, time * features)
    order = np.argsort(-size, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(size.shape[1])[None], axis=1)
    kept = (rank < at_most[:, None]).reshape(query.shape)
    return np.where(kept, proposal, query)
