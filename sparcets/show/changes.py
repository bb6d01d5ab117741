"""Changes as they are described to readers: neighbouring segments merged, features grouped, largest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import ShapeError
from sparcets.core.evidence import find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.series import Series
from sparcets.motion.skeleton import coordinate_groups, split_axis

if TYPE_CHECKING:
    import pandas as pd

MINOR = 0.05  # share of a segment's weight: a change in the other direction below this does not affect the description
MAX_DIP = 0.15  # of a segment's steps: a longer dip is described by itself
SHORT_STEPS = 2  # rises and falls of at most this length are described as one oscillation
MIN_OVERLAP = 0.9  # of the longer of two segments that are told with one time; a step more or less does not matter

Direction = Literal["raise", "lower", "change"]


@dataclass(frozen=True)
class Segment:
    """Steps ``start`` to ``end`` (half-open) in which one feature is raised, lowered, or changed in both directions."""

    feature: int
    start: int
    end: int
    rise: float  # sums of the positive and of the negative changes, both as positive numbers, in the data's own units
    fall: float
    lowest: float  # the smallest and the largest change, signed
    highest: float
    n_changed: int  # steps; fewer than end - start where gaps were closed
    scale: float  # the feature's standard deviation

    @property
    def weight(self) -> float:
        """Size of the change: standard deviations times steps."""
        return (self.rise + self.fall) / self.scale

    @property
    def direction(self) -> Direction:
        """``raise`` or ``lower``, or ``change`` where both directions have considerable weight."""
        if min(self.rise, self.fall) > MINOR * max(self.rise, self.fall):
            return "change"
        return "raise" if self.rise > self.fall else "lower"

    @property
    def mean(self) -> float:
        """Absolute mean change over the changed steps."""
        return abs(self.rise - self.fall) / self.n_changed

    @property
    def peak(self) -> float:
        """Absolute value of the largest change in the segment's direction."""
        return self.highest if self.direction == "raise" else -self.lowest

    def join(self, later: Segment) -> Segment:
        """Return both as one segment that includes the gap between them."""
        sums = {name: getattr(self, name) + getattr(later, name) for name in ("rise", "fall", "n_changed")}
        lowest, highest = min(self.lowest, later.lowest), max(self.highest, later.highest)
        return replace(self, end=later.end, lowest=lowest, highest=highest, **sums)


@dataclass(frozen=True)
class Change:
    """Segments that are described together: of one feature, or of features of one group at about the same time."""

    group: str | None  # its name; None where it is a single feature's change
    segments: tuple[Segment, ...]  # at least one, the largest first

    @property
    def weight(self) -> float:
        """Size of the whole change."""
        return sum(segment.weight for segment in self.segments)

    @property
    def start(self) -> int:
        """First step."""
        return min(segment.start for segment in self.segments)

    @property
    def end(self) -> int:
        """One past the last step."""
        return max(segment.end for segment in self.segments)


def without_padding(answers: Explanation) -> Explanation:
    """Return the answers to one query without the padding of their series."""
    n_steps = int(Series(answers.query, answers.lengths).steps.max())
    if n_steps == answers.query.shape[1]:
        return answers
    cut = {name: getattr(answers, name)[:, :n_steps] for name in ("query", "counterfactual")}
    frozen = None if answers.frozen is None else answers.frozen[:n_steps]
    return replace(answers, **cut, frozen=frozen, lengths=None)


def only_answer(answer: Explanation) -> Explanation:
    """Return the explanation without padding if it holds exactly one answer, else raise an error."""
    if len(answer) != 1:
        raise ShapeError(f"this shows one answer, got {len(answer)}. Pass one of them, such as explanation[3].")
    return without_padding(answer)


def find_changes(answer: Explanation) -> list[Change]:
    """Return the changes of one answer, the largest (in standard deviations times steps) first.

    Segments of one feature that are a few steps apart and have the same direction are merged, as are successive short
    rises and falls. Features of a group that change at about the same time are described together.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.
    """
    answer = only_answer(answer)
    gap = closed_gap(answer.query.shape[1])
    groups = find_groups(answer)
    of_feature = {feature: name for name, members in groups.items() for feature in members}
    changes: dict[Any, list[list[Segment]]] = {}
    for segments in _by_feature(answer):
        for segment in _merged(segments, gap):
            key = of_feature.get(segment.feature, segment.feature)
            of_key = changes.setdefault(key, [])
            for group in of_key:
                if isinstance(key, str) and _overlaps_all(group, segment):
                    group.append(segment)
                    break
            else:
                of_key.append([segment])
    found = [
        Change(
            group=key if isinstance(key, str) and len({s.feature for s in group}) > 1 else None,
            segments=tuple(sorted(group, key=lambda s: -s.weight)),
        )
        for key, of_key in changes.items()
        for group in of_key
    ]
    return sorted(found, key=lambda change: (-change.weight, change.start))


def closed_gap(n_steps: int) -> int:
    """Return the largest number of unchanged steps between two segments that are merged into one.

    >>> [closed_gap(n) for n in (10, 60, 100)]
    [1, 2, 4]
    """
    return max(1, n_steps // 25)


def find_groups(answer: Explanation) -> dict[str, list[int]]:
    """Return the groups of features by name: those of the constraints, then coordinates of one object.

    ``LeftWrist_x`` and ``LeftWrist_y`` are a group, and so are ``gravity.x``, ``gravity.y`` and ``gravity.z``.
    """
    groups: dict[str, list[int]] = {}
    free = set(range(answer.info.n_features))
    for constraints in (answer.constraints.get("explain", {}), answer.constraints.get("fit", {})):
        for name, members in constraints.get("groups", {}).items():
            indices = [answer.info.feature_index(member) for member in members]
            if len(indices) > 1 and free.issuperset(indices):
                groups[str(name)] = sorted(indices)
                free.difference_update(indices)
    named = coordinate_groups(answer.feature_names)
    return groups | {name: m for name, m in named.items() if free.issuperset(m) and name not in groups}


def short_name(name: str, group: str) -> str:
    """Return the name of a feature within its group.

    >>> short_name("LeftWrist_x", "LeftWrist"), short_name("LeftWrist_x", "left arm")
    ('x', 'LeftWrist_x')
    """
    stem, axis = split_axis(name)
    return axis if axis and stem == group else name


def _by_feature(answer: Explanation) -> Iterator[list[Segment]]:
    """Yield the runs of steps that change in one direction, in order of time, for each feature."""
    delta: FloatArray = answer.counterfactual[0].astype(np.float64) - answer.query[0]  # (time, features)
    runs: dict[int, list[Segment]] = {}
    found = find_segments(np.where(answer.changed, np.sign(delta), 0.0))  # sorted by feature and start
    for feature, start, end in zip(found.feature.tolist(), found.start.tolist(), found.end.tolist(), strict=True):
        change = delta[start:end, feature]
        total, scale = float(np.abs(change).sum()), float(answer.info.scaler.scale[feature])
        both = (total, 0.0) if change[0] > 0 else (0.0, total)
        ends = float(change.min()), float(change.max())
        runs.setdefault(feature, []).append(Segment(feature, start, end, *both, *ends, end - start, scale))
    yield from runs.values()


def _merged(runs: Sequence[Segment], gap: int) -> list[Segment]:
    """Merge runs that belong together until none are left to merge."""
    merged: list[Segment] = []
    for run in runs:
        merged.append(run)
        while len(merged) > 1 and _belong_together(merged[-2], merged[-1], gap):
            later = merged.pop()
            merged[-1] = merged[-1].join(later)
        # A rise, a minor dip and another rise: the dip alone would keep the two rises apart.
        if len(merged) > 2 and _is_minor_dip(*merged[-3:], gap=gap):
            last, dip = merged.pop(), merged.pop()
            merged[-1] = merged[-1].join(dip).join(last)
    return merged


def _belong_together(a: Segment, b: Segment, gap: int) -> bool:
    if b.start - a.end > gap:
        return False
    if a.direction == b.direction:
        return True
    # Successive short rises and falls are one oscillation.
    short = [s.end - s.start <= SHORT_STEPS or s.direction == "change" for s in (a, b)]
    return all(short)


def _is_minor_dip(before: Segment, dip: Segment, after: Segment, *, gap: int) -> bool:
    near = dip.start - before.end <= gap and after.start - dip.end <= gap
    short = dip.end - dip.start <= MAX_DIP * (after.end - before.start)
    minor = dip.weight < MINOR * (before.weight + after.weight)
    return near and short and minor and before.direction == after.direction


def _overlaps_all(group: Sequence[Segment], other: Segment) -> bool:
    """Return whether a segment overlaps every segment of the group, and is of a feature that is not in it yet."""

    def overlap(segment: Segment) -> bool:
        shared = min(segment.end, other.end) - max(segment.start, other.start)
        longer = max(segment.end - segment.start, other.end - other.start)
        return longer - shared <= max(1, (1 - MIN_OVERLAP) * longer)

    return all(segment.feature != other.feature and overlap(segment) for segment in group)


def table_of_changes(e: Explanation) -> pd.DataFrame:
    """Return a row for every stretch of steps in which one feature rises, or falls; see ``Explanation.to_frame``."""
    import pandas as pd

    delta = np.where(e.changed, e.counterfactual.astype(np.float64) - e.query, 0.0)
    # By sign: a rise and the fall after it are two rows, as they are two phrases of the text; in one they would cancel.
    found = find_segments(np.sign(delta))
    # One sum per segment, without a loop: reduceat sums from each edge to the next.
    flat = np.append(delta.transpose(0, 2, 1).ravel(), 0.0)  # (answers * features * time + 1,)
    row = (found.series * e.info.n_features + found.feature) * e.query.shape[1]
    edges = np.stack([row + found.start, row + found.end], axis=1).ravel()
    change = np.add.reduceat(flat, edges)[::2] if len(found) else np.zeros(0)
    units = np.array(e.info.units or [""] * e.info.n_features, dtype=object)
    named = {"id": e.ids, "subject": e.subjects}
    frame: pd.DataFrame = pd.DataFrame(
        {
            "query": e.query_index[found.series],
            **{name: values[found.series] for name, values in named.items() if values is not None},
            "verdict": e.verdict[found.series],
            "feature": np.array(e.feature_names, dtype=object)[found.feature],
            "start": found.start,
            "end": found.end,
            "mean_change": change / (found.end - found.start),
            "units": units[found.feature],
            "answer": found.series,
            "valid": e.valid[found.series],
            "believed": e.believed[found.series],
        }
    )
    return frame
