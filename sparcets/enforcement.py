"""Making answers obey: a proposal is moved back towards its query until every constraint holds exactly.

The query itself always satisfies every constraint (they speak of changes, and of steps no larger than its own), so
moving entries back towards it, and only ever back, ends in an answer that holds. No entry is changed that the proposal
left alone; the number of changed entries never grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, steps_within

IMMUTABLE = "immutable features"


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundConstraints:
    """Constraints as arrays over (time, features), made by :meth:`sparcets.Constraints.bind`.

    Attributes
    ----------
    editable
        Entries that may change (time, features).
    mutable
        Features that may change anywhere (features,).
    low, high
        Range of changed entries (features,), infinite where free.
    limit
        Largest step per time step (features,), infinite where free.
    sign
        1 up only, -1 down only, 0 free (features,).
    groups
        Indices of features that change together or not at all.
    tolerance
        Changes below this are no changes (features,).
    """

    editable: BoolArray
    mutable: BoolArray
    low: FloatArray
    high: FloatArray
    limit: FloatArray
    sign: IntArray
    groups: tuple[np.ndarray[Any, Any], ...]
    tolerance: FloatArray

    def and_also(self, other: BoundConstraints) -> BoundConstraints:
        """Return both at once: what either forbids is forbidden."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        # Up and down, or ranges without a common value: nothing is left but to stay.
        opposed = (self.sign * other.sign < 0) | (low > high)
        mutable = self.mutable & other.mutable & ~opposed
        groups = self.groups + other.groups
        for _ in groups:  # a group that one of the two freezes may freeze another that shares a member
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

    def kinds(self) -> list[str]:
        """Name the kinds of constraints that are in force."""
        kinds = {
            IMMUTABLE: not self.mutable.all(),
            "frozen steps": not self.editable[:, self.mutable].all(),
            "ranges": bool(np.isfinite(self.low).any() or np.isfinite(self.high).any()),
            "largest steps": bool(np.isfinite(self.limit).any()),
            "directions": bool((self.sign != 0).any()),
            "groups": len(self.groups) > 0,
        }
        return [kind for kind, there in kinds.items() if there]

    def enforce(self, query: FloatArray, proposal: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Return the proposal moved back towards the query until everything holds.

        Parameters
        ----------
        query, proposal
            Series (batch, time, features).
        lengths
            True lengths; nothing beyond them changes.

        Returns
        -------
        counterfactual
            (batch, time, features) in the query's type; unchanged entries are the query's own bits.
        """
        inside = steps_within(lengths, len(query), query.shape[1])  # (batch, time)
        free = self.editable[None] & inside[..., None]  # (batch, time, features)
        steps = self._step_limits(query, inside) if np.isfinite(self.limit).any() else None
        while True:
            result = self._move_back(query, proposal, free, steps)
            broken = self._broken(query, result)
            if not broken.any():
                return result
            free &= ~broken  # fewer entries each time, so this ends

    def _move_back(
        self, query: FloatArray, proposal: FloatArray, free: BoolArray, steps: FloatArray | None
    ) -> FloatArray:
        low, high = _inward(self.low, self.high, query.dtype)
        with np.errstate(over="ignore"):  # what does not fit the query's type is infinite, and so no proposal
            proposal = proposal.astype(query.dtype, copy=False)
        wanted = np.clip(proposal, low, high)
        result = np.where(free & (proposal != query) & np.isfinite(wanted), wanted, query)
        result = np.where(self._negligible(query, result) | self._wrong_way(query, result), query, result)
        if steps is not None:
            result = self._limit_steps(query, result, steps)
        return np.where(result == query, query, result)  # 0.0 equals -0.0, but unchanged means the query's own bits

    def _negligible(self, query: FloatArray, result: FloatArray) -> BoolArray:
        # In float64: the difference of two close float32 values is exact there.
        return np.asarray(np.abs(result.astype(np.float64) - query) < self.tolerance)

    def _wrong_way(self, query: FloatArray, result: FloatArray) -> BoolArray:
        return ((self.sign > 0) & (result < query)) | ((self.sign < 0) & (result > query))

    def _broken(self, query: FloatArray, result: FloatArray) -> BoolArray:
        """Mark changed entries that must go back to the query altogether."""
        changed = result != query
        outside = (result < self.low) | (result > self.high)
        broken = changed & (outside | self._wrong_way(query, result) | self._negligible(query, result))
        for members in self.groups:
            of_group = changed[..., members]  # (batch, time, members)
            partial = of_group.any(-1) & ~of_group.all(-1)
            broken[..., members] |= of_group & partial[..., None]
        return np.asarray(broken)

    def _step_limits(self, query: FloatArray, inside: BoolArray) -> FloatArray:
        """Return the largest step into each entry (batch, time, features): the limit, or the query's own step."""
        own = np.abs(np.diff(query.astype(np.float64), axis=1, prepend=query[:, :1].astype(np.float64)))
        return np.where(inside[..., None], np.maximum(self.limit, own), np.inf)

    def _limit_steps(self, query: FloatArray, result: FloatArray, steps: FloatArray) -> FloatArray:
        """Move entries back until no step is too large.

        The largest series below the proposal whose steps keep the limits, but nowhere below the smallest such series
        above min(query, proposal): both keep the limits, so their maximum does, and it lies between query and proposal.
        """
        features = np.flatnonzero(np.isfinite(self.limit))
        q, x, limit = query[..., features], result[..., features], steps[..., features]
        too_far = np.abs(np.diff(x.astype(np.float64), axis=1)) > limit[:, 1:]
        series, feature = np.nonzero(too_far.any(1))  # the others stay as they are, to the bit
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
        result[t] = np.minimum(result[t], _furthest_up(result[t - 1], limit[t], query[t - 1], query[t]))
    for t in range(len(x) - 2, -1, -1):
        result[t] = np.minimum(result[t], _furthest_up(result[t + 1], limit[t + 1], query[t + 1], query[t]))
    return result


def _furthest_up(start: FloatArray, limit: FloatArray, query_start: FloatArray, query_end: FloatArray) -> FloatArray:
    """Return the largest value within ``limit`` of ``start``, rounded so that the difference keeps the limit exactly.

    The query keeps it too, so from above the query one can always reach the query: rounding must not forbid that.
    """
    from_start = start.astype(np.float64)
    with np.errstate(over="ignore"):
        end = (from_start + limit).astype(start.dtype)
        end = np.where(end - from_start > limit, np.nextafter(end, start), end)  # rounded up: one bit back
    return np.where(start >= query_start, np.maximum(end, query_end), end)


def _inward(low: FloatArray, high: FloatArray, dtype: np.dtype[Any]) -> tuple[FloatArray, FloatArray]:
    """Round bounds to the series' type without stepping over them."""
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
