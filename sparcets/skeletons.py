"""Skeletons: which features are coordinates of body points, and the limbs and joints between the points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sparcets.registry import unknown_name

Limb: TypeAlias = tuple[str, str]
Joint: TypeAlias = tuple[str, str, str]  # the angle is measured at the middle point

CATCHING_ARMS: tuple[Limb, ...] = (
    ("LeftShoulder", "LeftElbow"),
    ("LeftElbow", "LeftWrist"),
    ("RightShoulder", "RightElbow"),
    ("RightElbow", "RightWrist"),
)

# Consecutive points along an arm: two neighbours form a limb, three in a row form a joint.
CHAINS: tuple[tuple[str, ...], ...] = (
    ("LeftShoulder", "LeftElbow", "LeftWrist", "LeftHand"),  # catching
    ("RightShoulder", "RightElbow", "RightWrist", "RightHand"),
    ("shoulder", "elbow", "wrist", "finger"),  # ui_prmd
)


@dataclass(frozen=True)
class Skeleton:
    """Body points among the features, with the limbs and joints between them.

    Attributes
    ----------
    points
        Indices of the features that hold x, y and, if present, z of each point.
    limbs
        Pairs of points whose distance is the length of a bone.
    joints
        Triples of points; the angle is measured at the middle point.
    """

    points: Mapping[str, tuple[int, ...]]
    limbs: tuple[Limb, ...]
    joints: tuple[Joint, ...]


def find_skeleton(feature_names: Sequence[str]) -> Skeleton | None:
    """Recognise the arms of the catching and ui_prmd data sets by the names of the features.

    Parameters
    ----------
    feature_names
        Names of the features; a point ``LeftElbow`` has ``LeftElbow_x``, ``LeftElbow_y`` and optionally
        ``LeftElbow_z``.

    Returns
    -------
    Skeleton or None
        The known points that are present, with the limbs and joints they form; None if they form no limb.

    Examples
    --------
    >>> find_skeleton(["wrist_x", "wrist_y", "elbow_x", "elbow_y", "ball_x", "ball_y"])
    Skeleton(points={'elbow': (2, 3), 'wrist': (0, 1)}, limbs=(('elbow', 'wrist'),), joints=())
    >>> find_skeleton(["gravity_x", "gravity_y"]) is None
    True
    """
    names = set(feature_names)
    axes = {p: _axes(p, names) for chain in CHAINS for p in chain}

    def comparable(*points: str) -> bool:
        # A distance needs the same two or three coordinates of every point.
        first = axes[points[0]]
        return first in ("xy", "xyz") and all(axes[point] == first for point in points)

    limbs = tuple(pair for chain in CHAINS for pair in zip(chain, chain[1:], strict=False) if comparable(*pair))
    joints = tuple(
        triple for chain in CHAINS for triple in zip(chain, chain[1:], chain[2:], strict=False) if comparable(*triple)
    )
    if not limbs:
        return None
    points = dict.fromkeys(point for limb in limbs for point in limb)
    return Skeleton({point: coordinates(point, feature_names) for point in points}, limbs, joints)


def coordinates(point: str, feature_names: Sequence[str]) -> tuple[int, ...]:
    """Return the feature indices of ``<point>_x``, ``<point>_y`` and ``<point>_z``, as far as they exist.

    >>> coordinates("Elbow", ["Elbow_y", "Elbow_x", "Wrist_x"])
    (1, 0)
    """
    names = list(feature_names)
    found = tuple(names.index(f"{point}_{axis}") for axis in _axes(point, set(names)))
    if not found:
        raise unknown_name("point", point, sorted({name.rsplit("_", 1)[0] for name in names}))
    return found


def _axes(point: str, names: set[str]) -> str:
    return "".join(axis for axis in "xyz" if f"{point}_{axis}" in names)
