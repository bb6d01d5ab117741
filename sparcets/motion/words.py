"""Points of one limb that move the same way at about the same time, told in one sentence with the range of amounts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparcets.core.explanation import Explanation
from sparcets.core.words import amount
from sparcets.motion.skeleton import body_part, find_skeleton
from sparcets.show.changes import Change, Segment
from sparcets.show.operation_fits import ROOTS
from sparcets.show.operations import MIN_TOGETHER, Described
from sparcets.show.phrases import at_most, further, listed, unit_of, when_phrase

# Of stretches that are told together:
MIN_SHARED = 0.5  # of the longer: what they share in time
MIN_ALIKE = 0.2  # of the largest mean change: the smallest


@dataclass(frozen=True)
class Move:
    """One point of a body, further in one direction during steps ``start`` to ``end`` (half-open).

    Attributes
    ----------
    feature, start, end
        Position.
    up
        Whether the coordinate gets larger.
    mean, peak
        Mean and largest change, positive, in the data's own units.
    weight
        Size of the change: standard deviations times steps.
    """

    feature: int
    start: int
    end: int
    up: bool
    mean: float
    peak: float
    weight: float


@dataclass(frozen=True)
class LimbMove:
    """Moves of several points of one limb in the same direction, at about the same time."""

    moves: tuple[Move, ...]

    @property
    def weight(self) -> float:
        """Size of the whole change."""
        return sum(move.weight for move in self.moves)

    @property
    def start(self) -> int:
        """First step."""
        return min(move.start for move in self.moves)

    @property
    def end(self) -> int:
        """One past the last step."""
        return max(move.end for move in self.moves)


Item = Change | Described | LimbMove


def join_limbs(answer: Explanation, changes: Iterable[Change | Described]) -> list[Item]:
    """Replace moves of several points of one limb by one :class:`LimbMove`; everything else stays as it is.

    Parameters
    ----------
    answer
        An explanation of length 1.
    changes
        Its changes.
    """
    given = list(changes)
    if find_skeleton(answer.feature_names, answer.info.units) is None:
        return [*given]
    parts = [body_part(name) for name in answer.feature_names]
    places: dict[tuple[str, str, str, bool], list[tuple[Move, int]]] = {}  # moves, and which change they are from
    for k, change in enumerate(given):
        for move in _moves(answer, change):
            part = parts[move.feature]
            if part.limb and part.axis in ("x", "y", "z"):
                places.setdefault((part.side, part.limb, part.axis, move.up), []).append((move, k))
    joined: list[Item] = []
    taken: dict[int, set[tuple[int, int]]] = {}
    for found in places.values():
        for cluster in _clusters(found):
            if len({move.feature for move, _ in cluster}) > 1:
                joined.append(LimbMove(tuple(move for move, _ in cluster)))
                for move, k in cluster:
                    taken.setdefault(k, set()).add((move.feature, move.start))
    for k, change in enumerate(given):
        if k not in taken:
            joined.append(change)
        elif isinstance(change, Change):
            left = tuple(s for s in change.segments if (s.feature, s.start) not in taken[k])
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
    means = [_mean(moves) for moves in of_feature.values()]
    low, high, unit = amount(min(means)), amount(max(means)), unit_of(answer, features[0])
    much = f"{low}{unit}" if low == high else f"{low} to {high}{unit}"
    most = at_most(max(move.peak for move in limb.moves), max(means), unit)
    shortest = min(sum(move.end - move.start for move in moves) for moves in of_feature.values())
    throughout = shortest >= MIN_TOGETHER * (limb.end - limb.start)
    when = when_phrase(limb.start, limb.end, answer.info.sampling_rate, throughout=throughout)
    return f"{who} {verb} {much}{most and f' on average{most}'} {further(answer, features[0], limb.moves[0].up)} {when}"


def _mean(moves: Sequence[Move]) -> float:
    """Return the mean change of one feature over all its steps."""
    lengths = [move.end - move.start for move in moves]
    return sum(move.mean * n for move, n in zip(moves, lengths, strict=True)) / sum(lengths)


def _moves(answer: Explanation, change: Change | Described) -> list[Move]:
    """Return what of a change is one coordinate, further in one direction."""
    if isinstance(change, Change):
        return [_move(s) for s in change.segments if s.direction != "change"]
    done = change.operation
    if done.kind not in ("higher", "lower") or len(done.features) != 1:
        return []
    feature = answer.info.feature_index(done.features[0])
    peak = float(abs(answer.delta[0, done.start : done.end, feature]).max())
    return [Move(feature, done.start, done.end, done.kind == "higher", done.amount, peak, change.weight)]


def _move(s: Segment) -> Move:
    return Move(s.feature, s.start, s.end, s.direction == "raise", s.mean, s.peak, s.weight)


def _clusters(found: Sequence[tuple[Move, int]]) -> list[list[tuple[Move, int]]]:
    """Return moves of about the same time and size as the largest of them."""
    clusters: list[list[tuple[Move, int]]] = []
    for move, k in sorted(found, key=lambda item: -item[0].weight):
        for cluster in clusters:
            largest = cluster[0][0]
            shared = min(largest.end, move.end) - max(largest.start, move.start)
            longer = max(largest.end - largest.start, move.end - move.start)
            alike = MIN_ALIKE <= move.mean / largest.mean <= 1 / MIN_ALIKE
            if shared >= MIN_SHARED * longer and alike:
                cluster.append((move, k))
                break
        else:
            clusters.append([(move, k)])
    return clusters
