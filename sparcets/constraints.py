"""Constraints: what a counterfactual may not do, in the user's words.

This file holds what the user says and checks it once, against the series it is meant for, with one message for all
problems. :mod:`sparcets.enforcement` makes answers obey it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparcets.enforcement import BoundConstraints
from sparcets.errors import ConstraintError, UnknownNameError
from sparcets.series_info import SeriesInfo


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """What a counterfactual may not do; features by index or name.

    Attributes
    ----------
    immutable
        Features that stay as they are.
    frozen
        Half-open windows of time steps ``(start, stop)`` in which nothing changes.
    ranges
        Feature to ``(lowest, highest)`` value that a changed entry may take.
    max_step
        Feature to the largest change of the counterfactual from one time step to the next; where the query itself
        steps further, the query's own step is the limit.
    direction
        Feature to ``"up"`` or ``"down"``: the only way in which it may change.
    groups
        Name to features that change together at a time step, or not at all. One immutable member freezes its group.

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
        """Check everything against the series it is meant for, and turn names into arrays.

        Raises
        ------
        ConstraintError
            All problems in one message.
        """
        return _Binder(self, info).bind()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an end of a range that is open is None."""
        return {
            "immutable": [_plain(f) for f in self.immutable],
            "frozen": [[int(start), int(stop)] for start, stop in self.frozen],
            "ranges": [[_plain(f), [_finite(v) for v in ends]] for f, ends in self.ranges.items()],
            "max_step": [[_plain(f), float(limit)] for f, limit in self.max_step.items()],
            "direction": [[_plain(f), way] for f, way in self.direction.items()],
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
    """Resolves names and collects every problem before it raises once."""

    def __init__(self, constraints: Constraints, info: SeriesInfo) -> None:
        self.asked = constraints
        self.info = info
        self.problems: list[str] = []

    def bind(self) -> BoundConstraints:
        info, n_features = self.info, self.info.n_features
        mutable = info.mutable.copy()
        mutable[self._features("immutable", self.asked.immutable)] = False
        groups = self._groups()
        for members in groups:
            if not mutable[members].all():
                mutable[members] = False
        editable = np.repeat(mutable[None], info.n_steps, axis=0)  # (time, features)
        for start, stop in self._windows():
            editable[start:stop] = False

        low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
        for feature, value in self._mapping("ranges", self.asked.ranges):
            if (pair := self._range(feature, value)) is not None:
                low[feature], high[feature] = pair
        limit = np.full(n_features, np.inf)
        for feature, value in self._mapping("max_step", self.asked.max_step):
            if _is_number(value) and value >= 0:
                limit[feature] = value
            else:
                self.problems.append(f"max_step of {self._name(feature)} must be a number >= 0, got {value!r}")
        sign = np.zeros(n_features, dtype=np.int64)
        for feature, value in self._mapping("direction", self.asked.direction):
            if value not in ("up", "down"):
                self.problems.append(f"direction of {self._name(feature)} must be 'up' or 'down', got {value!r}")
                continue
            sign[feature] = 1 if value == "up" else -1
            if not mutable[feature]:
                self.problems.append(
                    f"{self._name(feature)} has a direction but may not change at all: it is immutable, "
                    "or stands in a group with an immutable feature"
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
        asked: Any = self.asked.frozen
        if not isinstance(asked, Iterable) or not all(isinstance(window, Iterable) for window in asked):
            self.problems.append(f"frozen must be a list of windows [(start, stop), …], got {asked!r}")
            return []
        windows = []
        for window in asked:
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
            self.problems.append(f"ranges of {self._name(feature)} contradict themselves: {ends[0]} > {ends[1]}")
            return None
        return float(ends[0]), float(ends[1])

    def _groups(self) -> list[np.ndarray[Any, Any]]:
        asked: Any = self.asked.groups
        if not isinstance(asked, Mapping):
            self.problems.append(f"groups must map names to lists of features, got {asked!r}")
            return []
        owner: dict[int, str] = {}
        groups = []
        for name, features in asked.items():
            members = sorted(set(self._features(f"groups[{name!r}]", features)))
            for member in members:
                if member in owner:
                    self.problems.append(f"{self._name(member)} stands in two groups, {owner[member]!r} and {name!r}")
                owner[member] = name
            if members:
                groups.append(np.array(members))
        return groups


def _is_number(value: Any, *, infinite: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    return not np.isnan(value) and (infinite or bool(np.isfinite(value)))
