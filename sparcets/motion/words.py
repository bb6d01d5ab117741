"""Points of one limb that move the same way at about the same time, told in one sentence with the range of amounts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sparcets.core.explanation import Explanation
from sparcets.core.words import amount
from sparcets.motion.skeleton import ROOTS, body_part, find_skeleton
from sparcets.show.changes import Change
from sparcets.show.phrases import at_most, further, listed, unit_of, when_phrase

# Of stretches that are told together:
MIN_SHARED = 0.5  # of the longer: what they share in time
MIN_ALIKE = 0.2  # of the largest mean change: the smallest
MIN_TOGETHER = 0.9  # of the time that is told: what each of them moves, or it is "at times"


class Move(NamedTuple):
    """One point of a body, further in one direction during steps ``start`` to ``end`` (half-open)."""

    feature: int
    start: int
    end: int
    up: bool  # whether the coordinate gets larger
    mean: float  # positive, as the largest change, in the data's own units
    peak: float
    weight: float  # standard deviations times steps


@dataclass(frozen=True)
class LimbMove:
    """Moves of several points of one limb in the same direction, at about the same time."""

    moves: tuple[Move, ...]

    @property
    def weight(self) -> float:
        """Size of the whole change."""
        return sum(move.weight for move in self.moves)


Item = Change | LimbMove


def join_limbs(answer: Explanation, changes: Sequence[Change]) -> list[Item]:
    """Replace moves of several points of one limb by one :class:`LimbMove`; all other changes stay as they are."""
    if find_skeleton(answer.feature_names, answer.info.units) is None:
        return [*changes]
    parts = [body_part(name) for name in answer.feature_names]
    alike: dict[tuple[str, str, str, bool], list[Move]] = {}  # moves of one limb along one axis in one direction
    for move in (move for change in changes for move in _moves(change)):
        part = parts[move.feature]
        if part.limb and part.axis in ("x", "y", "z"):
            alike.setdefault((part.side, part.limb, part.axis, move.up), []).append(move)
    clusters = [cluster for moves in alike.values() for cluster in _clusters(moves)]
    joined: list[Item] = [LimbMove(tuple(c)) for c in clusters if len({move.feature for move in c}) > 1]
    taken = {(move.feature, move.start) for limb in joined if isinstance(limb, LimbMove) for move in limb.moves}
    for change in changes:
        if not taken.intersection((move.feature, move.start) for move in _moves(change)):
            joined.append(change)
        else:
            left = tuple(s for s in change.segments if (s.feature, s.start) not in taken)
            if left:
                joined.append(Change(change.group if len(left) > 1 else None, left))
    return joined


def limb_phrase(answer: Explanation, limb: LimbMove) -> str:
    """Return who moves, by how much, in which direction and when."""
    features = sorted({move.feature for move in limb.moves})
    of_feature = {f: [move for move in limb.moves if move.feature == f] for f in features}
    parts = [body_part(answer.feature_names[f]) for f in features]
    points, side = [part.point for part in parts], f"{parts[0].side} " if parts[0].side else ""
    if len([point for point in points if point not in ROOTS]) > 1 and {"elbow", "knee"}.intersection(points):
        who, verb = f"the {side}{parts[0].limb} ({listed(points)})", "is"
    else:
        who, verb = f"the {side}{listed(points)}", "are"
    steps = {f: sum(move.end - move.start for move in moves) for f, moves in of_feature.items()}
    means = [sum(m.mean * (m.end - m.start) for m in moves) / steps[f] for f, moves in of_feature.items()]
    low, high, unit = amount(min(means)), amount(max(means)), unit_of(answer, features[0])
    much = f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
    most = at_most(max(move.peak for move in limb.moves), max(means), unit)
    start, end = min(move.start for move in limb.moves), max(move.end for move in limb.moves)
    throughout = min(steps.values()) >= MIN_TOGETHER * (end - start)
    when = when_phrase(start, end, answer.info.sampling_rate, throughout=throughout)
    return f"{who} {verb} {much}{most and f' on average{most}'} {further(answer, features[0], limb.moves[0].up)} {when}"


def _moves(change: Change) -> list[Move]:
    """Return what of a change is one coordinate, further in one direction."""
    one_way = (s for s in change.segments if s.direction != "change")
    return [Move(s.feature, s.start, s.end, s.direction == "raise", s.mean, s.peak, s.weight) for s in one_way]


def _clusters(moves: Sequence[Move]) -> list[list[Move]]:
    """Return moves of about the same time and size as the largest of them."""
    clusters: list[list[Move]] = []
    for move in sorted(moves, key=lambda move: -move.weight):
        for cluster in clusters:
            largest = cluster[0]
            shared = min(largest.end, move.end) - max(largest.start, move.start)
            longer = max(largest.end - largest.start, move.end - move.start)
            if shared >= MIN_SHARED * longer and MIN_ALIKE <= move.mean / largest.mean <= 1 / MIN_ALIKE:
                cluster.append(move)
                break
        else:
            clusters.append([move])
    return clusters
