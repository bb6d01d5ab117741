"""Skeletons: which features belong to points of a body, by their names; and the limbs and joints between the points."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from sparcets.core.registry import unknown_name

Limb: TypeAlias = tuple[str, str]
Joint: TypeAlias = tuple[str, str, str]  # the angle is measured at the middle point

CATCHING_ARMS: tuple[Limb, ...] = (
    ("LeftShoulder", "LeftElbow"),
    ("LeftElbow", "LeftWrist"),
    ("RightShoulder", "RightElbow"),
    ("RightElbow", "RightWrist"),
)

# Consecutive points along a limb: two neighbours form a limb, three in a row form a joint.
CHAINS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "arm": (("shoulder",), ("elbow",), ("wrist",), ("hand", "finger")),
    "leg": (("hip",), ("knee",), ("ankle",), ("foot", "toe")),
}
LIMBS: Mapping[str, str] = {  # words in names of features
    **dict.fromkeys(("shoulder", "elbow", "wrist", "hand", "finger", "thumb", "forearm", "humerus", "arm"), "arm"),
    **dict.fromkeys(("hip", "thigh", "knee", "shank", "ankle", "heel", "foot", "toe", "leg"), "leg"),
}
LENGTHS = ("", "m", "mm", "cm", "dm", "km", "in", "inch", "ft", "px", "pixel", "pixels")
SIDES: Mapping[str, str] = {"left": "left", "l": "left", "right": "right", "r": "right"}
AXES = ("x", "y", "z", "w", "roll", "pitch", "yaw")  # suffixes of the coordinates of one object
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@dataclass(frozen=True)
class BodyPart:
    """What the name of a feature says; empty where it says nothing."""

    point: str  # its words without side and axis, in lower case: ``wrist``, ``hip flexion``
    side: str  # ``left`` or ``right``
    axis: str  # such as ``x``
    limb: str  # ``arm`` or ``leg``


@dataclass(frozen=True)
class Skeleton:
    """Body points among the features, with the limbs and joints between them."""

    points: Mapping[str, tuple[int, ...]]  # indices of the features that hold x, y and, if present, z of each point
    limbs: tuple[Limb, ...]  # pairs of points whose distance is the length of a bone
    joints: tuple[Joint, ...]  # triples of points; the angle is measured at the middle point


def find_skeleton(feature_names: Sequence[str], units: Sequence[str] | None = None) -> Skeleton | None:
    """Recognise the points of arms and legs by the names of the features; None if they form no limb.

    A point ``LeftElbow`` has ``LeftElbow_x``, ``LeftElbow_y`` and optionally ``LeftElbow_z``. Other writings are read
    as well, such as ``elbow_l.x``; see :func:`body_part`. What is measured in anything but a length, such as degrees or
    m/s, is no position.

    >>> find_skeleton(["wrist_x", "wrist_y", "elbow_x", "elbow_y", "ball_x", "ball_y"])
    Skeleton(points={'elbow': (2, 3), 'wrist': (0, 1)}, limbs=(('elbow', 'wrist'),), joints=())
    >>> find_skeleton(["gravity_x", "gravity_y"]) is None
    True
    """
    places: dict[tuple[str, str], tuple[str, tuple[int, ...]]] = {}  # side and point: its name, and its coordinates
    for stem, members in coordinate_groups(feature_names).items():
        part = body_part(stem)
        by_axis = {split_axis(feature_names[f])[1].lower(): f for f in members}
        is_place = units is None or all(units[f] in LENGTHS for f in members)
        if part.limb and is_place and sorted(by_axis) in (["x", "y"], ["x", "y", "z"]):
            places.setdefault((part.side, part.point), (stem, tuple(by_axis[axis] for axis in sorted(by_axis))))
    limbs: list[Limb] = []
    joints: list[Joint] = []
    used: dict[str, tuple[int, ...]] = {}
    for side, chain in product(("left", "right", ""), CHAINS.values()):
        slots = [[places[side, point] for point in points if (side, point) in places][:1] for points in chain]
        # A distance needs the same two or three coordinates of both points.
        for run in _runs([slot[0] if slot else None for slot in slots]):
            names = [name for name, _ in run]
            limbs += zip(names, names[1:], strict=False)
            joints += zip(names, names[1:], names[2:], strict=False)
            used |= dict(run)
    return Skeleton(used, tuple(limbs), tuple(joints)) if limbs else None


def _runs(slots: Sequence[tuple[str, tuple[int, ...]] | None]) -> list[list[tuple[str, tuple[int, ...]]]]:
    """Return the runs of at least two neighbouring points with the same number of coordinates."""
    runs: list[list[tuple[str, tuple[int, ...]]]] = [[]]
    for slot in slots:
        if slot is not None and runs[-1] and len(runs[-1][-1][1]) == len(slot[1]):
            runs[-1].append(slot)
        else:
            runs.append([] if slot is None else [slot])
    return [run for run in runs if len(run) > 1]


def body_part(name: str) -> BodyPart:
    """Read the name of a feature, or of a point.

    >>> body_part("LeftWrist_x")
    BodyPart(point='wrist', side='left', axis='x', limb='arm')
    >>> body_part("hip_flexion_r"), body_part("gravity.x").limb
    (BodyPart(point='hip flexion', side='right', axis='', limb='leg'), '')
    """
    stem, axis = split_axis(name)
    words = [word.lower() for word in _WORDS.findall(stem)]
    side = next((SIDES[word] for word in words if word in SIDES), "")
    rest = [word for word in words if word not in SIDES] or words
    return BodyPart(" ".join(rest), side, axis.lower(), next((LIMBS[word] for word in rest if word in LIMBS), ""))


def coordinate_groups(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of features that are coordinates of one object, by the object's name.

    >>> coordinate_groups(["Wrist_x", "Wrist_y", "gravity.x", "f_1", "f_2"])
    {'Wrist': [0, 1]}
    """
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        stem, axis = split_axis(name)
        if axis:
            groups.setdefault(stem, []).append(i)
    return {stem: members for stem, members in groups.items() if len(members) > 1 and stem not in names}


def split_axis(name: str) -> tuple[str, str]:
    """Split ``LeftWrist_x`` into the object's name and its axis; the axis is empty where there is none.

    >>> split_axis("attitude.roll"), split_axis("f0")
    (('attitude', 'roll'), ('f0', ''))
    """
    end = max(name.rfind("_"), name.rfind("."))
    stem, axis = name[:end], name[end + 1 :]
    return (stem, axis) if end > 0 and axis.lower() in AXES else (name, "")


def coordinates(point: str, feature_names: Sequence[str]) -> tuple[int, ...]:
    """Return the feature indices of ``<point>_x``, ``<point>_y`` and ``<point>_z``, as far as they exist.

    >>> coordinates("Elbow", ["Elbow_y", "Elbow_x", "Wrist_x"])
    (1, 0)
    """
    names = list(feature_names)
    found = tuple(names.index(name) for axis in "xyz" if (name := f"{point}_{axis}") in names)
    if not found:
        raise unknown_name("point", point, sorted({name.rsplit("_", 1)[0] for name in names}))
    return found


NAMED = 3  # things that a name lists
ROOTS = ("shoulder", "hip")  # points at which a limb may turn without moving them
PLURALS = {"foot": "feet"}
_NUMBERED = re.compile(r"(.*[_. -])(\d+)")


def group_name(features: Sequence[str], among: Sequence[str] = ()) -> str:
    """Return a name for features that move together, by the names of all features ``among`` which they are.

    >>> group_name(["LeftWrist_x", "LeftElbow_x", "RightWrist_x", "RightElbow_x"])
    'both arms'
    >>> group_name(["LeftWrist_x", "LeftWrist_y"], ["LeftElbow_x", "LeftElbow_y", "LeftWrist_x", "LeftWrist_y"])
    'the left wrist'
    >>> group_name(["acc_x", "acc_z"], ["acc_x", "acc_y", "acc_z"]), group_name(["xmeas_7", "xmeas_13"])
    ('acc_x and acc_z', 'xmeas_7 and 13')
    """
    among = among or features
    if len(features) == 1:
        return features[0]
    by_limb: dict[str, list[str]] = {}
    for name in features:
        by_limb.setdefault(body_part(name).limb, []).append(name)
    others = by_limb.pop("", [])
    told = [text for limb, members in by_limb.items() for text in _limb_names(limb, members, among)]
    told += _object_names(others, among)
    if len(told) <= NAMED:
        return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return f"{', '.join(told[:NAMED])} and {len(told) - NAMED} more"


def _limb_names(limb: str, members: Sequence[str], among: Sequence[str]) -> list[str]:
    """Return what features of arms, or of legs, are called."""
    parts, of_limb = [body_part(name) for name in members], [one for one in map(body_part, among) if one.limb == limb]
    sides = {part.side: [p.point for p in parts if p.side == part.side] for part in parts}
    points = list(dict.fromkeys(part.point for part in parts))
    if any(set(of_side) != set(points) for of_side in sides.values()):
        return _object_names(members, among)
    moving = {part.point for part in of_limb} - {*ROOTS}
    axes = {part.axis for part in parts}
    some = axes < {part.axis for part in of_limb if part.point in points} and len(axes) == 1
    only = f" ({axes.pop()})" if some else ""
    both = len(sides) == 2
    if len(moving) > 1 and moving <= set(points):
        name = f"both {limb}s" if both else " ".join(filter(None, ("the", *sides, limb)))
        return [f"{name}{only}"]
    words = [PLURALS.get(point, f"{point}s") for point in points] if both else points
    listed = words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
    return [f"both {listed}{only}" if both else " ".join(filter(None, ("the", *sides, listed))) + only]


def _object_names(features: Sequence[str], among: Sequence[str]) -> list[str]:
    """Return objects all of whose coordinates are there, features one by one, and numbers of one series of names."""
    told: list[str] = []
    for name in features:
        stem = split_axis(name)[0]
        whole = [other for other in among if split_axis(other)[0] == stem]
        told.append(stem if len(whole) > 1 and set(whole) <= set(features) else name)
    told = list(dict.fromkeys(told))
    numbered = [_NUMBERED.fullmatch(name) for name in told]
    if len({match.group(1) if match else name for match, name in zip(numbered, told, strict=True)}) == 1:
        return [told[0], *(match.group(2) for match in numbered[1:] if match)]
    return told
