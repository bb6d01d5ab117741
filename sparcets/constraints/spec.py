"""Constraints: the user's specification of what a counterfactual may change.

A specification is checked once, against the series it is meant for, and all problems are reported in one message.
:mod:`sparcets.constraints.enforcement` applies it to proposed counterfactuals.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparcets.constraints.enforcement import BoundConstraints
from sparcets.errors import ConstraintError, UnknownNameError
from sparcets.explanation.series_info import SeriesInfo


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Constraints on counterfactuals; features are given by index or name.

    Attributes
    ----------
    immutable
        Features that must not change.
    frozen
        Half-open windows of time steps ``(start, stop)`` in which nothing may change.
    ranges
        Feature to ``(lowest, highest)`` value that a changed entry may take.
    max_step
        Feature to the largest difference between consecutive steps of the counterfactual; where the query's own
        difference is larger, that one is the limit.
    direction
        Feature to ``"up"`` or ``"down"``: the only direction in which it may change.
    groups
        Name to features that at each time step change together or not at all. One immutable member makes the whole
        group immutable.

    Examples
    --------
    >>> Constraints(immutable=["gravity.x"], frozen=[(0, 20)], direction={"userAcceleration.z": "up"}).immutable
    ['gravity.x']
    """

    immutable: Sequence[int | str] = ()
    frozen: Sequence[tuple[int, int]] = ()
    ranges: Mapping[int | str, tuple[float, float]] = field(default_factory=dict)
    max_step: Mapping[int | str, float] = field(default_factory=dict)
    direction: Mapping[int | str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[int | str]] = field(default_factory=dict)

    def bind(self, info: SeriesInfo) -> BoundConstraints:
        """Check the constraints against the series they are meant for, and convert them to arrays.

        Raises
        ------
        ConstraintError
            All problems in one message.
        """
        return _Binder(self, info).bind()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an open end of a range is None."""
        return {
            "immutable": [_plain(f) for f in self.immutable],
            "frozen": [[int(start), int(stop)] for start, stop in self.frozen],
            "ranges": [[_plain(f), [_finite(v) for v in ends]] for f, ends in self.ranges.items()],
            "max_step": [[_plain(f), float(limit)] for f, limit in self.max_step.items()],
            "direction": [[_plain(f), direction] for f, direction in self.direction.items()],
            "groups": {name: [_plain(f) for f in members] for name, members in self.groups.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Constraints:
        """Build from :meth:`to_dict`'s output."""
        return cls(
            immutable=list(data["immutable"]),
            frozen=[(start, stop) for start, stop in data["frozen"]],
            ranges={
                f: (-np.inf if low is None else low, np.inf if high is None else high)
                for f, (low, high) in data["ranges"]
            },
            max_step=dict(data["max_step"]),
            direction=dict(data["direction"]),
            groups={name: list(members) for name, members in data["groups"].items()},
        )


def _plain(feature: int | str) -> int | str:
    return feature if isinstance(feature, str) else int(feature)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


class _Binder:
    """Resolves names and collects all problems, then raises once."""

    def __init__(self, constraints: Constraints, info: SeriesInfo) -> None:
        self.constraints = constraints
        self.info = info
        self.problems: list[str] = []

    def bind(self) -> BoundConstraints:
        info, n_features = self.info, self.info.n_features
        mutable = info.mutable.copy()
        mutable[self._features("immutable", self.constraints.immutable)] = False
        groups = self._groups()
        for members in groups:
            if not mutable[members].all():
                mutable[members] = False
        editable = np.repeat(mutable[None], info.n_steps, axis=0)  # (time, features)
        for start, stop in self._windows():
            editable[start:stop] = False

        low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
        for feature, value in self._mapping("ranges", self.constraints.ranges):
            if (pair := self._range(feature, value)) is not None:
                low[feature], high[feature] = pair
        limit = np.full(n_features, np.inf)
        for feature, value in self._mapping("max_step", self.constraints.max_step):
            if _is_number(value) and value >= 0:
                limit[feature] = value
            else:
                self.problems.append(f"max_step of {self._name(feature)} must be a number >= 0, got {value!r}")
        sign = np.zeros(n_features, dtype=np.int64)
        for feature, value in self._mapping("direction", self.constraints.direction):
            if value not in ("up", "down"):
                self.problems.append(f"direction of {self._name(feature)} must be 'up' or 'down', got {value!r}")
                continue
            sign[feature] = 1 if value == "up" else -1
            if not mutable[feature]:
                self.problems.append(
                    f"{self._name(feature)} has a direction but may not change at all: it is immutable, "
                    "or in a group with an immutable feature"
                )
        if not self.problems and not editable.any():
            self.problems.append("together they leave nothing that may change; free at least one feature and step")
        if self.problems:
            plural = "s" if len(self.problems) > 1 else ""
            raise ConstraintError(
                f"{len(self.problems)} problem{plural} in the constraints: {'; '.join(self.problems)}."
            )
        return BoundConstraints(
            editable=editable,
            mutable=mutable,
            low=low,
            high=high,
            limit=limit,
            sign=sign,
            groups=tuple(groups),
            tolerance=1e-6 * info.span,
        )

    def _name(self, feature: int) -> str:
        return repr(self.info.feature_names[feature])

    def _features(self, what: str, features: Any) -> list[int]:
        if isinstance(features, str) or not isinstance(features, Iterable):
            self.problems.append(f"{what} must be a list of features, got {features!r}")
            return []
        found = []
        for feature in features:
            try:
                found.append(self.info.feature_index(feature))
            except UnknownNameError as error:
                self.problems.append(f"{what}: {str(error).rstrip('.')}")
        return found

    def _mapping(self, what: str, values: Any) -> list[tuple[int, Any]]:
        if not isinstance(values, Mapping):
            self.problems.append(f"{what} must map features to values, got {values!r}")
            return []
        result: dict[int, Any] = {}
        for feature, value in values.items():
            for index in self._features(what, [feature]):
                if index in result and not np.array_equal(result[index], value):
                    self.problems.append(f"{what} gives {self._name(index)} twice, as {result[index]!r} and {value!r}")
                result[index] = value
        return list(result.items())

    def _windows(self) -> list[tuple[int, int]]:
        frozen: Any = self.constraints.frozen
        if not isinstance(frozen, Iterable) or not all(isinstance(window, Iterable) for window in frozen):
            self.problems.append(f"frozen must be a list of windows [(start, stop), …], got {frozen!r}")
            return []
        windows = []
        for window in frozen:
            try:
                start, stop = (operator.index(v) for v in window)
            except (TypeError, ValueError):
                self.problems.append(f"a frozen window must be (start, stop) in whole steps, got {window!r}")
                continue
            if not 0 <= start < stop <= self.info.n_steps:
                self.problems.append(
                    f"frozen window ({start}, {stop}) must satisfy 0 <= start < stop <= {self.info.n_steps} (steps)"
                )
                continue
            windows.append((start, stop))
        return windows

    def _range(self, feature: int, value: Any) -> tuple[float, float] | None:
        ends = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(ends, Sequence) or len(ends) != 2 or not all(_is_number(v, infinite=True) for v in ends):
            self.problems.append(f"ranges of {self._name(feature)} must be (lowest, highest), got {value!r}")
            return None
        if ends[0] > ends[1]:
            self.problems.append(f"ranges of {self._name(feature)} must have lowest <= highest: {ends[0]} > {ends[1]}")
            return None
        return float(ends[0]), float(ends[1])

    def _groups(self) -> list[np.ndarray[Any, Any]]:
        groups: Any = self.constraints.groups
        if not isinstance(groups, Mapping):
            self.problems.append(f"groups must map names to lists of features, got {groups!r}")
            return []
        group_of: dict[int, str] = {}
        indices = []
        for name, features in groups.items():
            members = sorted(set(self._features(f"groups[{name!r}]", features)))
            for member in members:
                if member in group_of:
                    self.problems.append(f"{self._name(member)} is in two groups, {group_of[member]!r} and {name!r}")
                group_of[member] = name
            if members:
                indices.append(np.array(members))
        return indices


def _is_number(value: Any, *, infinite: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return not np.isnan(value) and (infinite or bool(np.isfinite(value)))
