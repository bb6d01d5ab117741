"""Groups of features that may do one thing together: both sides of a limb, a limb, a joint on both sides, a joint."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from sparcets.explanation.result import Explanation
from sparcets.narrate.changes import find_groups
from sparcets.skeletons import BodyPart, body_part

PLURALS = {"foot": "feet"}
ROOTS = ("shoulder", "hip")  # points at which a limb may turn without moving them


@dataclass(frozen=True)
class Group:
    """Features that may do one thing together.

    Attributes
    ----------
    name
        What they are called.
    features
        Their indices.
    plural
        Whether the name is a plural.
    sides
        Sets of features of which each must have a change, or the name would say too much.
    points
        The same, of the points of a limb: of a still elbow, no arm is moved.
    """

    name: str
    features: frozenset[int]
    plural: bool
    sides: tuple[frozenset[int], ...] = ()
    points: tuple[frozenset[int], ...] = ()

    def is_met(self, changed: Collection[int]) -> bool:
        """Return whether changes of these features are changes of this group."""
        enough = len(set(changed)) >= min(2, len(self.features))
        return enough and all(part.intersection(changed) for part in (*self.sides, *self.points))


def feature_groups(answer: Explanation) -> Iterator[Group]:
    """Yield the groups of an explanation's features, the largest first, then every feature alone."""
    names = answer.feature_names
    parts = [body_part(name) for name in names]
    yield from _limbs(parts)
    named = find_groups(answer)
    yield from _both_sides(parts)
    for name, members in sorted(named.items(), key=lambda item: -len(item[1])):
        yield Group(name, frozenset(members), plural=False)
    for i, name in enumerate(names):
        yield Group(name, frozenset([i]), plural=False)


def _limbs(parts: Sequence[BodyPart]) -> Iterator[Group]:
    """Yield both arms, both legs, then each alone."""
    for limb in ("arm", "leg"):
        of_side = {side: _of(parts, limb=limb, side=side) for side in ("left", "right", "")}
        named = dict.fromkeys(part.point for part in parts if part.limb == limb and part.point not in ROOTS)
        points = tuple(_of(parts, limb=limb, point=point) for point in named)
        left, right = of_side["left"], of_side["right"]
        if left and right:
            yield Group(f"both {limb}s", left | right, plural=True, sides=(left, right), points=points)
        for side, members in of_side.items():
            if members:
                yield Group(f"the {side} {limb}" if side else f"the {limb}", members, plural=False, points=points)


def _both_sides(parts: Sequence[BodyPart]) -> Iterator[Group]:
    """Yield what is there on the left and on the right: ``both wrists``."""
    for point in dict.fromkeys(part.point for part in parts if part.side):
        left, right = (_of(parts, point=point, side=side) for side in ("left", "right"))
        if left and right:
            plural = PLURALS.get(point, f"{point}s") if " " not in point else ""
            name = f"both {plural}" if plural else f"{point} on both sides"
            yield Group(name, left | right, plural=bool(plural), sides=(left, right))


def _of(parts: Sequence[BodyPart], **wanted: str) -> frozenset[int]:
    return frozenset(
        i for i, part in enumerate(parts) if all(getattr(part, name) == value for name, value in wanted.items())
    )
