"""Constraints: the user's specification of what a counterfactual may change.

A specification is checked once, against the series it is meant for, and all problems are reported in one message.
:mod:`sparcets.constraints.enforcement` applies it to proposed counterfactuals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sparcets.constraints.binding import Binder
from sparcets.constraints.enforcement import BoundConstraints
from sparcets.constraints.projecting import Project
from sparcets.errors import ConstraintError
from sparcets.explanation.series_info import SeriesInfo

Feature = int | str
Window = tuple[int | None, int | None]


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Constraints on counterfactuals; features are given by index or name.

    Attributes
    ----------
    immutable
        Features that must not change.
    frozen
        Half-open windows of time steps ``(start, stop)`` in which nothing may change; None is an open end. A mapping
        of features to such windows freezes those features only.
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
    max_features
        Largest number of features that one answer may change.
    integer
        Features whose changed entries are whole numbers. Features whose training values are 0 and 1 are found without
        being named, and stay 0 or 1.
    monotone
        Feature to ``"up"`` or ``"down"``: where two consecutive entries change, the counterfactual does not fall, or
        does not rise, from one to the other. Entries that do not change are as they were.
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
    ranges: Mapping[Feature, tuple[float, float]] = field(default_factory=dict)
    max_step: Mapping[Feature, float] = field(default_factory=dict)
    direction: Mapping[Feature, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[Feature]] = field(default_factory=dict)
    max_features: int | None = None
    integer: Sequence[Feature] = ()
    monotone: Mapping[Feature, str] = field(default_factory=dict)
    fixed_sum: Sequence[Sequence[Feature]] = ()
    project: Project | None = None

    def bind(self, info: SeriesInfo) -> BoundConstraints:
        """Check the constraints against the series they are meant for, and convert them to arrays.

        Raises
        ------
        ConstraintError
            All problems in one message.
        """
        return Binder(self, info).bind()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; an open end of a range is None, and of a function only its name is kept."""
        return {
            "immutable": [_plain(f) for f in self.immutable],
            **_plain_frozen(self.frozen),
            "ranges": [[_plain(f), [_finite(v) for v in ends]] for f, ends in self.ranges.items()],
            "max_step": [[_plain(f), float(limit)] for f, limit in self.max_step.items()],
            "direction": [[_plain(f), direction] for f, direction in self.direction.items()],
            "groups": {name: [_plain(f) for f in members] for name, members in self.groups.items()},
            "max_features": None if self.max_features is None else int(self.max_features),
            "integer": [_plain(f) for f in self.integer],
            "monotone": [[_plain(f), direction] for f, direction in self.monotone.items()],
            "fixed_sum": [[_plain(f) for f in members] for members in self.fixed_sum],
            "project": None if self.project is None else getattr(self.project, "__qualname__", repr(self.project)),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Constraints:
        """Build from :meth:`to_dict`'s output, also of versions that had fewer kinds of constraints."""
        if data.get("project"):
            raise ConstraintError(
                f"the function {data['project']!r} of the constraints cannot be stored. Give it to explain, not to fit."
            )
        by_feature = {f: [tuple(window) for window in windows] for f, windows in data.get("frozen_features", [])}
        return cls(
            immutable=list(data["immutable"]),
            frozen=by_feature or [tuple(window) for window in data["frozen"]],
            ranges={
                f: (-np.inf if low is None else low, np.inf if high is None else high)
                for f, (low, high) in data["ranges"]
            },
            max_step=dict(data["max_step"]),
            direction=dict(data["direction"]),
            groups={name: list(members) for name, members in data["groups"].items()},
            max_features=data.get("max_features"),
            integer=list(data.get("integer", [])),
            monotone=dict(data.get("monotone", [])),
            fixed_sum=[tuple(members) for members in data.get("fixed_sum", [])],
        )


def _plain(feature: int | str) -> int | str:
    return feature if isinstance(feature, str) else int(feature)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain_frozen(frozen: Sequence[Window] | Mapping[Feature, Sequence[Window]]) -> dict[str, Any]:
    if isinstance(frozen, Mapping):
        return {"frozen": [], "frozen_features": [[_plain(f), _plain_windows(w)] for f, w in frozen.items()]}
    return {"frozen": _plain_windows(frozen), "frozen_features": []}


def _plain_windows(windows: Sequence[Window]) -> list[list[int | None]]:
    return [[None if end is None else int(end) for end in window] for window in windows]
