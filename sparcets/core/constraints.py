"""Constraints: the user's specification of what a counterfactual may change.

A specification is checked once, against the series it is meant for, and all problems are reported in one message.
:mod:`sparcets.core.enforcement` applies it to proposed counterfactuals.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparcets.core.config import SignatureOfInit
from sparcets.core.enforcement import BoundConstraints, Project
from sparcets.core.errors import ConstraintError, UnknownNameError, quoted
from sparcets.core.info import SeriesInfo
from sparcets.core.registry import did_you_mean
from sparcets.core.series import LARGEST, BoolArray, IntArray, is_integer, is_number

SIGNS = {"up": 1, "down": -1}
Feature = int | str
Window = tuple[int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Constraints on counterfactuals; features are given by index or name.

    Attributes
    ----------
    immutable
        Features that must not change. Those that are constant in the training series do not change either, unless they
        are in a group or a fixed sum.
    frozen
        Half-open windows of time steps ``(start, stop)`` in which nothing may change; None is an open end. A mapping
        of features to such windows freezes those features only.
    ranges
        Feature to ``(lowest, highest)`` value that a changed entry may take; None is an open end, as in ``(50, None)``.
    max_step
        Feature to the largest difference between consecutive steps of the counterfactual; where the query's own
        difference is larger, the limit is the query's difference.
    direction
        Feature to ``"up"`` or ``"down"``: the only direction in which it may change.
    groups
        Name to features that at each time step change together or not at all. One immutable member makes the whole
        group immutable.
    max_features
        Largest number of features that one answer may change.
    integer
        Features whose changed entries are whole numbers. Features whose training values are 0 and 1 are detected
        automatically, and stay 0 or 1.
    monotone
        Feature to ``"up"`` or ``"down"``: where two consecutive entries change, the counterfactual does not fall, or
        does not rise, from one to the other. Unchanged entries are not affected.
    fixed_sum
        Tuples of features whose sum at every step stays that of the query, such as shares of a whole.
    project
        A function ``(counterfactuals, queries) -> counterfactuals`` of arrays (batch, time, features) in the units of
        the data, applied last: any other rule that answers must obey. Applying it twice must give the same as once.

    Examples
    --------
    >>> Constraints(immutable=["gravity.x"], frozen=[(0, 20)], direction={"userAcceleration.z": "up"}).immutable
    ['gravity.x']
    """

    immutable: Sequence[Feature] = ()
    frozen: Sequence[Window] | Mapping[Feature, Sequence[Window]] = ()
    ranges: Mapping[Feature, tuple[float | None, float | None]] = field(default_factory=dict)
    max_step: Mapping[Feature, float] = field(default_factory=dict)
    direction: Mapping[Feature, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[Feature]] = field(default_factory=dict)
    max_features: int | None = None
    integer: Sequence[Feature] = ()
    monotone: Mapping[Feature, str] = field(default_factory=dict)
    fixed_sum: Sequence[Sequence[Feature]] = ()
    project: Project | None = None

    __signature__ = SignatureOfInit()  # __new__ takes anything

    def __new__(cls, *args: Any, **given: Any) -> Constraints:
        """Reject unknown constraints with the list of known ones, which the TypeError of a dataclass does not have."""
        known = list(cls.__dataclass_fields__)
        problems = [f"constraints are given by name, got {quoted(args[0])}."] if args else []
        problems += [
            f"there is no constraint {name!r}.{did_you_mean(name, known)}" for name in given if name not in known
        ]
        if problems:
            raise ConstraintError(f"{' '.join(problems)} Known: {', '.join(known)}.")
        return object.__new__(cls)

    def bind(self, info: SeriesInfo) -> BoundConstraints:
        """Check the constraints against the series they are meant for, and convert them to arrays.

        Raises
        ------
        ConstraintError
            All problems in one message.
        """
        return _Binder(self, info).bind()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an open end of a range is None, and a function is stored as its name."""
        by_feature = isinstance(self.frozen, Mapping)
        return {
            "immutable": [_plain(f) for f in self.immutable],
            "frozen": [] if by_feature else _plain(self.frozen),
            "frozen_features": _plain(self.frozen) if by_feature else [],
            "ranges": [[_plain(f), [_finite(v) for v in open_ends(*ends)]] for f, ends in self.ranges.items()],
            "max_step": [[_plain(f), float(limit)] for f, limit in self.max_step.items()],
            "direction": _plain(self.direction),
            "groups": {name: _plain(members) for name, members in self.groups.items()},
            "max_features": _plain(self.max_features),
            "integer": [_plain(f) for f in self.integer],
            "monotone": _plain(self.monotone),
            "fixed_sum": _plain(self.fixed_sum),
            "project": None if self.project is None else _name_of(self.project),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Constraints:
        """Build from :meth:`to_dict`'s output."""
        if data["project"]:
            name = quoted(data["project"])
            raise ConstraintError(
                f"the function {name} of the constraints cannot be stored. Give it to explain, not to fit."
            )
        by_feature = {f: [tuple(window) for window in windows] for f, windows in data["frozen_features"]}
        return cls(
            immutable=list(data["immutable"]),
            frozen=by_feature or [tuple(window) for window in data["frozen"]],
            ranges={f: open_ends(*ends) for f, ends in data["ranges"]},
            max_step=dict(data["max_step"]),
            direction=dict(data["direction"]),
            groups={name: list(members) for name, members in data["groups"].items()},
            max_features=data["max_features"],
            integer=list(data["integer"]),
            monotone=dict(data["monotone"]),
            fixed_sum=[tuple(members) for members in data["fixed_sum"]],
        )


def open_ends(low: float | None, high: float | None) -> tuple[float, float]:
    """Return a range with infinite ends where they are open.

    >>> open_ends(50, None)
    (50.0, inf)
    """
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)


def _plain(value: Any) -> Any:
    """Return features, and lists or mappings of them, as plain values for JSON; mappings as pairs."""
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(of_key)] for key, of_key in value.items()]
    if value is None or isinstance(value, str):
        return value
    return [_plain(one) for one in value] if isinstance(value, Iterable) else int(value)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


class _Binder:
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
        frozen = self._frozen()
        editable[frozen] = False
        fixed_sum = self._fixed_sum()
        # No training series shows how a constant feature could change, unless the user ties it to other features.
        alone = info.constant & ~np.isin(np.arange(n_features), np.concatenate([[], *groups, *fixed_sum]))
        if not alone.all():
            editable[:, alone] = False

        low, high = np.full(n_features, -np.inf), np.full(n_features, np.inf)
        for feature, value in self._mapping("ranges", self.constraints.ranges):
            if (pair := self._range(feature, value)) is not None:
                low[feature], high[feature] = pair
        max_step = np.full(n_features, np.inf)
        for feature, value in self._mapping("max_step", self.constraints.max_step):
            if is_number(value) and 0 <= value < np.inf:
                max_step[feature] = value if value < LARGEST / 4 else np.inf  # no step exceeds it; sums stay finite
            else:
                self.problems.append(f"max_step of {self._name(feature)} must be a number >= 0, got {quoted(value)}")
        direction = self._signs("direction", self.constraints.direction)
        for feature in np.flatnonzero((direction != 0) & ~mutable):
            self.problems.append(
                f"{self._name(feature)} has a direction but may not change at all: it is immutable, "
                "or in a group with an immutable feature"
            )
        integer = info.binary.copy()
        low[integer], high[integer] = np.maximum(low[integer], 0), np.minimum(high[integer], 1)
        integer[self._features("integer", self.constraints.integer)] = True
        max_features: Any = self.constraints.max_features
        if max_features is not None and not (is_integer(max_features) and max_features >= 1):
            self.problems.append(f"max_features must be a whole number >= 1, got {quoted(max_features)}")
        monotone = self._signs("monotone", self.constraints.monotone)
        project: Any = self.constraints.project
        if project is not None and not callable(project):
            self.problems.append(f"project must be a function (counterfactuals, queries), got {quoted(project)}")
        if not self.problems and not editable.any():
            self.problems.append(
                "together they leave nothing that may change; free at least one feature and step "
                "(features that are constant in the training series do not change)"
            )
        if self.problems:
            plural = "s" if len(self.problems) > 1 else ""
            raise ConstraintError(
                f"{len(self.problems)} problem{plural} in the constraints: {'; '.join(self.problems)}."
            )
        return BoundConstraints(
            editable=editable,
            mutable=mutable,
            frozen=frozen,
            low=low,
            high=high,
            max_step=max_step,
            direction=direction,
            groups=tuple(groups),
            tolerance=1e-6 * info.span,
            max_features=None if max_features is None else min(int(max_features), n_features),
            integer=integer,
            monotone=monotone,
            fixed_sum=tuple(fixed_sum),
            project=project,
            n_side=0 if info.side is None else info.side.n_columns,
        )

    def _name(self, feature: int) -> str:
        return repr(self.info.feature_names[feature])

    def _features(self, what: str, features: Any) -> list[int]:
        if isinstance(features, str) or not _is_list(features):
            self.problems.append(f"{what} must be a list of features, got {quoted(features)}")
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
            self.problems.append(f"{what} must map features to values, got {quoted(values)}")
            return []
        result: dict[int, Any] = {}
        for feature, value in values.items():
            for index in self._features(what, [feature]):
                if index in result and not np.array_equal(result[index], value):
                    self.problems.append(
                        f"{what} gives {self._name(index)} twice, as {quoted(result[index])} and {quoted(value)}"
                    )
                result[index] = value
        return list(result.items())

    def _signs(self, what: str, values: Any) -> IntArray:
        sign = np.zeros(self.info.n_features, dtype=np.int64)
        for feature, value in self._mapping(what, values):
            if not isinstance(value, str) or value not in SIGNS:
                self.problems.append(f"{what} of {self._name(feature)} must be 'up' or 'down', got {quoted(value)}")
            else:
                sign[feature] = SIGNS[value]
        return sign

    def _frozen(self) -> BoolArray:
        """Return the entries that are frozen (time, features)."""
        frozen: Any = self.constraints.frozen
        entries = np.zeros((self.info.n_steps, self.info.n_features), dtype=bool)
        by_feature = isinstance(frozen, Mapping)
        given: list[tuple[Any, Any]] = [*self._mapping("frozen", frozen)] if by_feature else [(slice(None), frozen)]
        for feature, windows in given:
            what = f"frozen of {self._name(feature)}" if by_feature else "frozen"
            for start, stop in self._windows(what, windows):
                entries[start:stop, feature] = True
        return entries

    def _windows(self, what: str, given: Any) -> list[tuple[int, int]]:
        if not _is_list(given) or not all(isinstance(window, Iterable) for window in given):
            self.problems.append(f"{what} must be a list of windows [(start, stop), …], got {quoted(given)}")
            return []
        windows = []
        for window in given:
            try:
                first, last = window
                start = 0 if first is None else operator.index(first)
                stop = self.info.n_steps if last is None else operator.index(last)
            except (TypeError, ValueError):
                self.problems.append(f"a frozen window must be (start, stop) in whole steps, got {quoted(window)}")
                continue
            if not 0 <= start < stop <= self.info.n_steps:
                limits = f"0 <= start < stop <= {self.info.n_steps}"
                self.problems.append(f"frozen window {quoted((start, stop))} must satisfy {limits} (steps)")
                continue
            windows.append((start, stop))
        return windows

    def _fixed_sum(self) -> list[np.ndarray[Any, Any]]:
        given: Any = self.constraints.fixed_sum
        if not _is_list(given) or isinstance(given, (str, Mapping)):
            self.problems.append(f"fixed_sum must be a list of tuples of features, got {quoted(given)}")
            return []
        sums, seen = [], set[int]()
        for features in given:
            members = sorted(set(self._features("fixed_sum", features)))
            if len(members) < 2:
                self.problems.append(f"fixed_sum needs at least two different features, got {quoted(features)}")
            elif seen.intersection(members):
                self.problems.append(
                    f"a feature can be in one fixed_sum only, got {quoted(features)} beside another one"
                )
            else:
                sums.append(np.array(members))
            seen.update(members)
        return sums

    def _range(self, feature: int, value: Any) -> tuple[float, float] | None:
        ends = value.tolist() if isinstance(value, np.ndarray) else value
        if not isinstance(ends, Sequence) or len(ends) != 2 or not all(v is None or is_number(v) for v in ends):
            problem = "must be (lowest, highest), None for an open end"
            self.problems.append(f"ranges of {self._name(feature)} {problem}, got {quoted(value)}")
            return None
        low, high = open_ends(*ends)
        if low > high:
            self.problems.append(
                f"ranges of {self._name(feature)} must have lowest <= highest: {quoted(ends[0])} > {quoted(ends[1])}"
            )
            return None
        return low, high

    def _groups(self) -> list[np.ndarray[Any, Any]]:
        groups: Any = self.constraints.groups
        if not isinstance(groups, Mapping):
            self.problems.append(f"groups must map names to lists of features, got {quoted(groups)}")
            return []
        group_of: dict[int, str] = {}
        indices = []
        for name, features in groups.items():
            members = sorted(set(self._features(f"groups[{quoted(name)}]", features)))
            for member in members:
                if member in group_of:
                    self.problems.append(
                        f"{self._name(member)} is in two groups, {quoted(group_of[member])} and {quoted(name)}"
                    )
                group_of[member] = name
            if members:
                indices.append(np.array(members))
        return indices


def _is_list(values: Any) -> bool:
    """Return whether values can be iterated more than once."""
    return isinstance(values, Iterable) and not isinstance(values, Iterator) and getattr(values, "ndim", 1) > 0


def _name_of(function: Any) -> str:
    """Return the name of a function; NumPy's functions before version 2 have no qualified name."""
    return str(getattr(function, "__qualname__", getattr(function, "__name__", repr(function))))
