"""What a reader is told of a change: neighbouring stretches merged, features of one group together, largest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explanation import Explanation
from sparcets.segments import find_segments

AXES = ("x", "y", "z", "w", "roll", "pitch", "yaw")  # what names of one thing's coordinates end in
SLIGHT = 0.15  # of a stretch's weight: what goes the other way by less does not change what is said of it
SHORT = 2  # steps: ups and downs that are no longer are one unrest, not a rise and a fall
TOGETHER = 0.5  # of the longer stretch: features of a group that overlap by more are told in one breath

Way = Literal["raise", "lower", "change"]


@dataclass(frozen=True)
class Stretch:
    """Steps ``start`` to ``end`` (half-open) in which one feature is raised, lowered, or moved both ways.

    Attributes
    ----------
    feature, start, end
        Where.
    rise, fall
        Sums of what goes up and of what goes down, both positive, in the data's own units.
    lowest, highest
        The smallest and the largest change, signed.
    n_changed
        Steps that change; fewer than ``end - start`` where gaps were closed.
    scale
        The feature's standard deviation.
    """

    feature: int
    start: int
    end: int
    rise: float
    fall: float
    lowest: float
    highest: float
    n_changed: int
    scale: float

    @property
    def weight(self) -> float:
        """Size of the change: standard deviations times steps."""
        return (self.rise + self.fall) / self.scale

    @property
    def way(self) -> Way:
        """``raise`` or ``lower``, or ``change`` where much of it goes either way."""
        if min(self.rise, self.fall) > SLIGHT * max(self.rise, self.fall):
            return "change"
        return "raise" if self.rise > self.fall else "lower"

    @property
    def mean(self) -> float:
        """Mean change over the steps that change, without its sign."""
        return abs(self.rise - self.fall) / self.n_changed

    @property
    def most(self) -> float:
        """The largest change in the direction it goes, without its sign."""
        return self.highest if self.way == "raise" else -self.lowest

    def join(self, later: Stretch) -> Stretch:
        """Return both as one, with the gap between them."""
        return Stretch(
            feature=self.feature,
            start=self.start,
            end=later.end,
            rise=self.rise + later.rise,
            fall=self.fall + later.fall,
            lowest=min(self.lowest, later.lowest),
            highest=max(self.highest, later.highest),
            n_changed=self.n_changed + later.n_changed,
            scale=self.scale,
        )


@dataclass(frozen=True)
class Change:
    """Stretches that are told together: of one feature, or of features of one group at about the same time.

    Attributes
    ----------
    group
        Name of the group, or None where it is a single feature's change.
    stretches
        At least one, the largest first.
    """

    group: str | None
    stretches: tuple[Stretch, ...]

    @property
    def weight(self) -> float:
        """Size of the whole change."""
        return sum(stretch.weight for stretch in self.stretches)

    @property
    def start(self) -> int:
        """First step."""
        return min(stretch.start for stretch in self.stretches)

    @property
    def end(self) -> int:
        """One past the last step."""
        return max(stretch.end for stretch in self.stretches)


def find_changes(answer: Explanation) -> list[Change]:
    """Return the changes of one answer, the largest (in standard deviations times steps) first.

    Stretches of one feature that are only a few steps apart and go the same way are one; so are short ups and downs
    that follow one another. Features of a group that change at about the same time are told together.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.
    """
    gap = closed_gap(int(answer.query.shape[1] if answer.lengths is None else answer.lengths[0]))
    groups = find_groups(answer)
    of_feature = {feature: name for name, members in groups.items() for feature in members}
    changes: dict[Any, list[list[Stretch]]] = {}
    for stretches in _by_feature(answer):
        for stretch in _merged(stretches, gap):
            key = of_feature.get(stretch.feature, stretch.feature)
            told = changes.setdefault(key, [])
            for together in told:
                if isinstance(key, str) and _at_once(together, stretch):
                    together.append(stretch)
                    break
            else:
                told.append([stretch])
    found = [
        Change(
            group=key if isinstance(key, str) and len({s.feature for s in together}) > 1 else None,
            stretches=tuple(sorted(together, key=lambda s: -s.weight)),
        )
        for key, told in changes.items()
        for together in told
    ]
    return sorted(found, key=lambda change: (-change.weight, change.start))


def closed_gap(n_steps: int) -> int:
    """Return how many unchanged steps between two stretches are told as part of one.

    >>> [closed_gap(n) for n in (10, 60, 100)]
    [1, 2, 4]
    """
    return max(1, n_steps // 25)


def find_groups(answer: Explanation) -> dict[str, list[int]]:
    """Return the groups of features by name: those of the constraints, then coordinates of one thing.

    ``LeftWrist_x`` and ``LeftWrist_y`` are a group, and so are ``gravity.x``, ``gravity.y`` and ``gravity.z``.
    """
    groups: dict[str, list[int]] = {}
    free = set(range(answer.info.n_features))
    for said in (answer.constraints.get("explain", {}), answer.constraints.get("fit", {})):
        for name, members in said.get("groups", {}).items():
            places = [answer.info.feature_index(member) for member in members]
            if len(places) > 1 and free.issuperset(places):
                groups[str(name)] = sorted(places)
                free.difference_update(places)
    named = coordinate_groups(answer.feature_names)
    return groups | {name: m for name, m in named.items() if free.issuperset(m) and name not in groups}


def coordinate_groups(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the features that are coordinates of one thing, by the thing's name.

    >>> coordinate_groups(["Wrist_x", "Wrist_y", "gravity.x", "f_1", "f_2"])
    {'Wrist': [0, 1]}
    """
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        thing, axis = split_axis(name)
        if axis:
            groups.setdefault(thing, []).append(i)
    return {thing: members for thing, members in groups.items() if len(members) > 1 and thing not in names}


def split_axis(name: str) -> tuple[str, str]:
    """Split ``LeftWrist_x`` into the thing and its axis; the axis is empty where there is none.

    >>> split_axis("attitude.roll"), split_axis("f0")
    (('attitude', 'roll'), ('f0', ''))
    """
    place = max(name.rfind("_"), name.rfind("."))
    thing, axis = name[:place], name[place + 1 :]
    return (thing, axis) if place > 0 and axis.lower() in AXES else (name, "")


def short_name(name: str, group: str) -> str:
    """Return what a feature is called inside its group.

    >>> short_name("LeftWrist_x", "LeftWrist"), short_name("LeftWrist_x", "left arm")
    ('x', 'LeftWrist_x')
    """
    thing, axis = split_axis(name)
    return axis if axis and thing == group else name


def _by_feature(answer: Explanation) -> Iterator[list[Stretch]]:
    """Yield the runs of steps that go one way, in the order of time, feature by feature."""
    delta: FloatArray = answer.counterfactual[0].astype(np.float64) - answer.query[0]  # (time, features)
    runs: dict[int, list[Stretch]] = {}
    for rising in (True, False):
        found = find_segments(answer.changed[:1] & ((delta > 0) == rising)[None])
        for feature, start, end in zip(found.feature.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
            change = delta[start:end, feature]
            total = float(np.abs(change).sum())
            runs.setdefault(feature, []).append(
                Stretch(
                    feature=feature,
                    start=start,
                    end=end,
                    rise=total if rising else 0.0,
                    fall=0.0 if rising else total,
                    lowest=float(change.min()),
                    highest=float(change.max()),
                    n_changed=end - start,
                    scale=float(answer.info.scaler.scale[feature]),
                )
            )
    for feature in sorted(runs):
        yield sorted(runs[feature], key=lambda run: run.start)


def _merged(runs: Sequence[Stretch], gap: int) -> list[Stretch]:
    """Join runs that belong together, until no more do."""
    merged: list[Stretch] = []
    for run in runs:
        merged.append(run)
        while len(merged) > 1 and _belong(merged[-2], merged[-1], gap):
            later = merged.pop()
            merged[-1] = merged[-1].join(later)
        # A rise, a slight dip and a rise again: the dip alone would keep the two apart.
        if len(merged) > 2 and _only_a_dip(*merged[-3:], gap=gap):
            last, dip = merged.pop(), merged.pop()
            merged[-1] = merged[-1].join(dip).join(last)
    return merged


def _belong(a: Stretch, b: Stretch, gap: int) -> bool:
    if b.start - a.end > gap:
        return False
    if a.way == b.way:
        return True
    # Short ups and downs make one unrest; so does one that goes on.
    short = [s.end - s.start <= SHORT or s.way == "change" for s in (a, b)]
    return all(short)


def _only_a_dip(before: Stretch, dip: Stretch, after: Stretch, *, gap: int) -> bool:
    near = dip.start - before.end <= gap and after.start - dip.end <= gap
    return near and before.way == after.way and dip.weight < SLIGHT * (before.weight + after.weight)


def _at_once(told: Sequence[Stretch], other: Stretch) -> bool:
    """Return whether a stretch overlaps all of those that are told together, and is none of their features again."""

    def overlap(stretch: Stretch) -> bool:
        shared = min(stretch.end, other.end) - max(stretch.start, other.start)
        return shared > TOGETHER * max(stretch.end - stretch.start, other.end - other.start)

    return all(stretch.feature != other.feature and overlap(stretch) for stretch in told)
