"""Binding: constraints are checked against the series they are meant for, and become arrays."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import BoolArray, IntArray
from sparcets.constraints.enforcement import BoundConstraints
from sparcets.errors import ConstraintError, UnknownNameError
from sparcets.explanation.series_info import SeriesInfo

if TYPE_CHECKING:
    from sparcets.constraints.spec import Constraints

SIGNS = {"up": 1, "down": -1}


class Binder:
    """Resolves names and collects all problems, then raises once."""

    def __init__(self, constraints: Constraints, info: SeriesInfo) -> None:
        self.constraints = constraints
        self.info = info
        self.problems: list[str] = []

    def bind(self) -> BoundConstraints:
        """Return the arrays; raise ConstraintError with all problems at once."""
        info, n_features = self.info, self.info.n_features
        mutable = info.mutable.copy()
        mutable[self._features("immutable", self.constraints.immutable)] = False
        groups = self._groups()
        for members in groups:
            if not mutable[members].all():
                mutable[members] = False
        editable = np.repeat(mutable[None], info.n_steps, axis=0)  # (time, features)
        editable[self._frozen()] = False

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
        sign = self._signs("direction", self.constraints.direction)
        for feature in np.flatnonzero((sign != 0) & ~mutable):
            self.problems.append(
                f"{self._name(feature)} has a direction but may not change at all: it is immutable, "
                "or in a group with an immutable feature"
            )
        integer = info.binary.copy()
        low[integer], high[integer] = np.maximum(low[integer], 0), np.minimum(high[integer], 1)
        integer[self._features("integer", self.constraints.integer)] = True
        max_features: Any = self.constraints.max_features
        if max_features is not None and not (_is_whole(max_features) and max_features >= 1):
            self.problems.append(f"max_features must be a whole number >= 1, got {max_features!r}")
        trend = self._signs("monotone", self.constraints.monotone)
        sums = self._sums()
        project: Any = self.constraints.project
        if project is not None and not callable(project):
            self.problems.append(f"project must be a function (counterfactuals, queries), got {project!r}")
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
            max_features=max_features,
            integer=integer,
            trend=trend,
            sums=tuple(sums),
            project=project,
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

    def _signs(self, what: str, values: Any) -> IntArray:
        sign = np.zeros(self.info.n_features, dtype=np.int64)
        for feature, value in self._mapping(what, values):
            if value not in SIGNS:
                self.problems.append(f"{what} of {self._name(feature)} must be 'up' or 'down', got {value!r}")
            else:
                sign[feature] = SIGNS[value]
        return sign

    def _frozen(self) -> BoolArray:
        """Return the entries that are frozen (time, features)."""
        frozen: Any = self.constraints.frozen
        entries = np.zeros((self.info.n_steps, self.info.n_features), dtype=bool)
        if isinstance(frozen, Mapping):
            for feature, windows in self._mapping("frozen", frozen):
                for start, stop in self._windows(f"frozen of {self._name(feature)}", windows):
                    entries[start:stop, feature] = True
        else:
            for start, stop in self._windows("frozen", frozen):
                entries[start:stop] = True
        return entries

    def _windows(self, what: str, given: Any) -> list[tuple[int, int]]:
        if not isinstance(given, Iterable) or not all(isinstance(window, Iterable) for window in given):
            self.problems.append(f"{what} must be a list of windows [(start, stop), …], got {given!r}")
            return []
        windows = []
        for window in given:
            try:
                first, last = window
                start = 0 if first is None else operator.index(first)
                stop = self.info.n_steps if last is None else operator.index(last)
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

    def _sums(self) -> list[np.ndarray[Any, Any]]:
        given: Any = self.constraints.fixed_sum
        if not isinstance(given, Iterable) or isinstance(given, (str, Mapping)):
            self.problems.append(f"fixed_sum must be a list of tuples of features, got {given!r}")
            return []
        sums, seen = [], set[int]()
        for features in given:
            members = sorted(set(self._features("fixed_sum", features)))
            if len(members) < 2:
                self.problems.append(f"fixed_sum needs at least two different features, got {features!r}")
            elif seen.intersection(members):
                self.problems.append(f"a feature can be in one fixed_sum only, got {features!r} beside another one")
            else:
                sums.append(np.array(members))
            seen.update(members)
        return sums

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


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
