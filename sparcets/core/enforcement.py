"""Enforcing constraints: a proposal is moved back towards its query until every constraint holds exactly.

The query itself satisfies every constraint, because constraints apply to changes and allow steps as large as the
query's own. Resetting every violating entry to the query therefore ends in a series that satisfies all of them.
Entries that the proposal left unchanged stay unchanged, and the number of changed entries does not grow, except where a
fixed sum or the user's own projection requires it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparcets.core.errors import ConstraintError
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series

ROUNDING = 4  # last digits by which results of the same computation may differ
Project = Callable[[Any, Any], Any]  # (counterfactuals, queries) -> counterfactuals, arrays (batch, time, features)


IMMUTABLE = "immutable features"


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundConstraints:
    """Constraints as arrays over (time, features), built by :meth:`sparcets.Constraints.bind`."""

    editable: BoolArray  # entries that answers change (time, features): allowed, and not constant in training
    mutable: BoolArray  # features that may change (features,)
    frozen: BoolArray  # entries of frozen windows (time, features)
    low: FloatArray  # bounds on changed entries (features,), infinite where unbounded
    high: FloatArray
    max_step: FloatArray  # largest difference between consecutive steps (features,), infinite where unbounded
    direction: IntArray  # 1 increase only, -1 decrease only, 0 both (features,)
    groups: tuple[np.ndarray[Any, Any], ...]  # indices of features that change together or not at all
    tolerance: FloatArray  # changes below this are set to zero (features,)
    max_features: int | None  # number of features that may change in one series
    integer: BoolArray  # features whose changed entries are whole numbers (features,)
    monotone: IntArray  # 1 where consecutive changed entries do not fall, -1 where they do not rise, else 0 (features,)
    fixed_sum: tuple[np.ndarray[Any, Any], ...]  # indices of features whose sum at a step does not change
    project: Project | None  # the user's own function, applied last
    n_side: int = 0  # number of side inputs among the features, the last ones, which are never mutable

    @property
    def allowed(self) -> BoolArray:
        """Entries that may change (time, features): what shares of changed entries are relative to."""
        frozen = self.frozen_if_any
        return self.mutable & ~(self.frozen if frozen is None else frozen)

    @property
    def frozen_if_any(self) -> BoolArray | None:
        """Entries (time, features) frozen by windows, directly or through a group; None if there are none."""
        if not self.frozen.any():
            return None
        return _of_groups(self.frozen, self.groups)

    def combine(self, other: BoundConstraints) -> BoundConstraints:
        """Return the conjunction of both."""
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        # Opposite directions, or ranges without a common value: the feature must not change.
        opposed = (self.direction * other.direction < 0) | (low > high) | (self.monotone * other.monotone < 0)
        groups = self.groups + other.groups
        mutable = ~_of_groups(~(self.mutable & other.mutable & ~opposed), groups)
        return replace(
            self,
            editable=self.editable & other.editable & mutable,
            mutable=mutable,
            frozen=self.frozen | other.frozen,
            low=low,
            high=high,
            max_step=np.minimum(self.max_step, other.max_step),
            direction=np.where(self.direction != 0, self.direction, other.direction),
            groups=groups,
            max_features=min((m for m in (self.max_features, other.max_features) if m is not None), default=None),
            integer=self.integer | other.integer,
            monotone=np.where(self.monotone != 0, self.monotone, other.monotone),
            fixed_sum=self.fixed_sum + other.fixed_sum,
            project=other.project or self.project,
        )

    def cut(self, n_steps: int) -> BoundConstraints:
        """Return the constraints of series that have the first ``n_steps`` steps only."""
        return replace(self, editable=self.editable[:n_steps], frozen=self.frozen[:n_steps])

    def active_kinds(self) -> list[str]:
        """Return the names of the kinds of constraints that are active."""
        kinds = {
            IMMUTABLE: not self.mutable[: len(self.mutable) - self.n_side].all(),
            "frozen steps": bool((self.frozen & self.mutable).any()),
            "ranges": bool(np.isfinite(self.low).any() or np.isfinite(self.high).any()),
            "largest steps": bool(np.isfinite(self.max_step).any()),
            "directions": bool((self.direction != 0).any()),
            "groups": len(self.groups) > 0,
            "the number of features": self.max_features is not None,
            "whole numbers": bool(self.integer.any()),
            "monotone features": bool((self.monotone != 0).any()),
            "fixed sums": len(self.fixed_sum) > 0,
            "the projection": self.project is not None,
        }
        return [kind for kind, active in kinds.items() if active]

    def enforce(self, series: Series, proposal: FloatArray, *, complete: bool = True) -> FloatArray:
        """Move proposals (batch, time, features) back towards their queries until every constraint holds.

        The result has the query's dtype, and its unchanged entries are bit-identical to the query's, as are padding and
        gaps. If ``complete``, entries that the proposal left unchanged may change to keep a fixed sum.
        """
        free, gaps = self.editable & series.measured, series.gaps  # (batch, time, features)
        whole = series.filled(otherwise=0.0)
        query = whole.values
        proposal = proposal if gaps is None else np.where(gaps, query, proposal)
        steps = self._step_limits(whole, gaps) if np.isfinite(self.max_step).any() else None
        result = self._settle(query, proposal, free, steps, complete)
        if self.max_features is not None:
            bound_together = self.groups + self.fixed_sum
            kept = most_changed(query, result, self.max_features, self.tolerance, bound_together)
            result = self._settle(query, result, free & kept[:, None], steps, complete=False)
        if self.project is not None:
            projected = result.copy()
            for rows, part in whole.by_length():  # without padding
                own = (rows, slice(0, part.n_steps))
                missing = None if gaps is None else gaps[own]
                projected[own] = self._project(self.project, part.values, result[own], free[own], missing)
            allowed = self._settle(query, projected, free, steps, complete=False)
            kept = (allowed == projected).all((1, 2))
            if self.max_features is not None:
                kept &= (projected != query).any(1).sum(1) <= self.max_features
            result = np.where(kept[:, None, None], projected, query)
        return result if gaps is None else np.where(gaps, series.values, result)

    def _project(
        self, project: Project, query: FloatArray, result: FloatArray, free: BoolArray, gaps: BoolArray | None
    ) -> FloatArray:
        """Return series projected by the user's function, or the query where the function changes a fixed entry.

        Unchanged series are not projected. Changes of filled gaps are ignored.
        """
        rows = np.flatnonzero((result != query).any((1, 2)))
        if not len(rows):
            return result
        once = self._call(project, result[rows], query[rows])
        twice = self._call(project, once, query[rows])
        same = np.maximum(self.tolerance, ROUNDING * np.spacing(np.maximum(np.abs(once), np.abs(query[rows]))))
        if (difference := (np.abs(twice - once) > same).any((0, 1))).any():
            raise ConstraintError(
                "project must give the same when it is applied twice, but its second application changed "
                f"{int(difference.sum())} of {len(difference)} features again. Return the final series at once."
            )
        if gaps is not None:
            once = np.where(gaps[rows], query[rows], once)
        negligible = np.abs(once - query[rows]) < self.tolerance
        allowed = np.where(free[rows] & ~negligible, once, query[rows])
        # The function changes an entry that may not change: the two constraints contradict each other.
        obeys = (np.abs(allowed - once) <= same).all((1, 2), keepdims=True)
        projected: FloatArray = result.copy()
        projected[rows] = np.where(obeys, allowed, query[rows])
        return projected

    def _call(self, project: Project, result: FloatArray, query: FloatArray) -> FloatArray:
        """Call the function on series without their side inputs, and return its result."""
        n_features = query.shape[2] - self.n_side
        result, query, beside = result[:, :, :n_features], query[:, :, :n_features], query[:, :, n_features:]
        try:
            returned = np.asarray(project(result.copy(), query.copy()), dtype=query.dtype)
        except (Exception, SystemExit) as error:  # a user's function may raise anything
            raise ConstraintError(f"project raised {type(error).__name__}: {error}.") from error
        if returned.shape != query.shape:
            raise ConstraintError(f"project must return an array of shape {query.shape}, got {returned.shape}.")
        if not np.isfinite(returned).all():
            raise ConstraintError("project returned values that are not finite.")
        return np.concatenate([returned, beside], axis=2)

    def _settle(
        self, query: FloatArray, proposal: FloatArray, free: BoolArray, steps: FloatArray | None, complete: bool
    ) -> FloatArray:
        """Enforce all but the number of features and the user's function."""
        free = free.copy()
        while True:
            result = self._move_back(query, proposal, free, steps, complete)
            violating = self._violations(query, result, steps)
            if not violating.any():
                return result
            free &= ~violating  # fewer free entries in each iteration, so the loop terminates

    def _move_back(
        self, query: FloatArray, proposal: FloatArray, free: BoolArray, steps: FloatArray | None, complete: bool
    ) -> FloatArray:
        low, high = _inward(self.low, self.high, query.dtype)
        with np.errstate(over="ignore"):  # values beyond the query's dtype become infinite and are ignored below
            proposal = proposal.astype(query.dtype, copy=False)
        clipped = np.clip(proposal, low, high)
        result = np.where(free & (proposal != query) & np.isfinite(clipped), clipped, query)
        result = np.where(self._negligible(query, result) | self._wrong_direction(query, result), query, result)
        if steps is not None:
            result = self._limit_steps(query, result, steps)
        if self.monotone.any():
            result = straightened(query, result, self.monotone)
        if self.integer.any():
            result = rounded(query, result, self.integer, low, high)
        for members in self.fixed_sum:
            integer, tolerance = self.integer[members], self.tolerance[members]
            result = balance(query, result, free, members, integer, tolerance, complete=complete)
        return np.where(result == query, query, result)  # 0.0 equals -0.0, but unchanged means bit-identical

    def _negligible(self, query: FloatArray, result: FloatArray) -> BoolArray:
        # In float64 the difference of two close float32 values is exact.
        return np.asarray(np.abs(result.astype(np.float64) - query) < self.tolerance)

    def _wrong_direction(self, query: FloatArray, result: FloatArray) -> BoolArray:
        return ((self.direction > 0) & (result < query)) | ((self.direction < 0) & (result > query))

    def _violations(self, query: FloatArray, result: FloatArray, steps: FloatArray | None) -> BoolArray:
        """Mark changed entries that have to be reset to the query."""
        changed = result != query
        outside = (result < self.low) | (result > self.high)
        violating = changed & (outside | self._wrong_direction(query, result) | self._negligible(query, result))
        for members in self.groups:
            of_group = changed[..., members]  # (batch, time, members)
            partial = of_group.any(-1) & ~of_group.all(-1)
            violating[..., members] |= of_group & partial[..., None]
        for members in self.fixed_sum:
            wrong = unbalanced(query[..., members], result[..., members], self.tolerance[members])
            violating[..., members] |= changed[..., members] & wrong[..., None]
        if self.integer.any():
            violating |= changed & self.integer & (result != np.rint(result))
        if self.monotone.any():
            violating |= wrong_trend(query, result, self.monotone)
        if steps is not None and (
            self.monotone.any() or self.integer.any() or self.fixed_sum
        ):  # these may enlarge a step
            too_large = np.abs(np.diff(result.astype(np.float64), axis=1)) > steps[:, 1:]
            violating[:, 1:] |= too_large & changed[:, 1:]
            violating[:, :-1] |= too_large & changed[:, :-1]
        return np.asarray(violating)

    def _step_limits(self, series: Series, gaps: BoolArray | None) -> FloatArray:
        """Return the largest step into each entry (batch, time, features): the limit, or the query's own if larger."""
        query = series.values.astype(np.float64)
        own = np.abs(np.diff(query, axis=1, prepend=query[:, :1]))
        steps = np.where(series.inside[..., None], np.maximum(self.max_step, own), np.inf)
        if gaps is not None:  # to and from an entry that is missing, no step is known
            steps[gaps] = np.inf
            steps[:, 1:][gaps[:, :-1]] = np.inf
        return steps

    def _limit_steps(self, query: FloatArray, result: FloatArray, steps: FloatArray) -> FloatArray:
        """Move entries back until no step exceeds its limit.

        The result is the maximum of two series that satisfy the limits, so it satisfies them too: the largest such
        series below the proposal, and the smallest such series above min(query, proposal). It lies between query and
        proposal.
        """
        features = np.flatnonzero(np.isfinite(self.max_step))
        q, x, limit = query[..., features], result[..., features], steps[..., features]
        too_large = np.abs(np.diff(x.astype(np.float64), axis=1)) > limit[:, 1:]
        series, feature = np.nonzero(too_large.any(1))  # the others stay bit-identical
        q, x, limit = (v[series, :, feature].T for v in (q, x, limit))  # (time, curves)
        below = -_lower_envelope(-np.minimum(q, x), -q, limit)
        moved = np.where(x == q, q, np.maximum(_lower_envelope(x, q, limit), below))
        final: FloatArray = result.copy()
        final[series, :, features[feature]] = moved.T
        return final


def _of_groups(fixed: BoolArray, groups: tuple[np.ndarray[Any, Any], ...]) -> BoolArray:
    """Extend a mask of fixed entries (…, features) to groups: a group is fixed if any of its members is."""
    fixed = fixed.copy()
    for _ in groups:  # one group may concern another that shares a member
        for members in groups:
            fixed[..., members] |= fixed[..., members].any(-1, keepdims=True)
    return fixed


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
    """Keep the ``at_most`` (batch,) largest changes of each series, measured in units of ``scale`` (features,).

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
    """Mark changed entries that violate the trend relative to the changed entry before them."""
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
    """Change the features ``members`` together so that their sum at every step is that of the query.

    ``integer`` (members,) marks whole numbers; differences of sums below ``tolerance`` (members,) are ignored. If
    ``complete``, members that did not change may be used where a change has no counterpart among the changed ones.

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
    # The remainder of rounding goes to the partner with the largest change, if possible one that is not whole.
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
    """Return the most changed features of each series (batch, features), which may stay changed.

    Changes of different features are compared by their ``tolerance``, which is proportional to their range. Features
    that are ``bound_together`` change together or not at all.
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
