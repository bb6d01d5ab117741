"""Counterfactuals whose limbs keep their lengths: a projection for :class:`~sparcets.Constraints`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.constraints.projecting import Project
from sparcets.errors import CapabilityError, OutOfRangeError
from sparcets.skeletons import find_skeleton

TOLERANCE = 0.09  # below the tenth by which the limbs of a believed answer may differ


def keep_limbs(
    feature_names: Sequence[str], units: Sequence[str] | None = None, *, tolerance: float = TOLERANCE
) -> Project:
    """Return a function that keeps the limbs of a body about as long as in the query, for ``Constraints(project=…)``.

    Every limb keeps its direction. From the shoulder to the hand, and from the hip to the foot, each point is moved
    along it until the limb's length is within the tolerance, and takes the points behind it along.

    Parameters
    ----------
    feature_names, units
        Of the data, which must have points that form limbs; see :func:`~sparcets.skeletons.find_skeleton`.
    tolerance
        Largest relative change of a limb's length at any step, at least 0 and below 1.

    Raises
    ------
    CapabilityError
        If the features form no limb.

    Examples
    --------
    >>> keep = keep_limbs(["elbow_x", "elbow_y", "wrist_x", "wrist_y"], tolerance=0.0)
    >>> query = np.array([[[0.0, 0.0, 1.0, 0.0]]])
    >>> keep(np.array([[[0.0, 0.0, 3.0, 4.0]]]), query).round(6).tolist()  # the direction of the change, the old length
    [[[0.0, 0.0, 0.6, 0.8]]]
    """
    if not 0 <= tolerance < 1:
        raise OutOfRangeError(f"tolerance must be at least 0 and below 1, got {tolerance}.")
    skeleton = find_skeleton(feature_names, units)
    if skeleton is None:
        raise CapabilityError(
            "the features form no limb: they need the coordinates of neighbouring points of an arm or a leg in a unit "
            f"of length, such as LeftElbow_x and LeftElbow_y; got {', '.join(feature_names[:6])}."
        )
    limbs = [(list(skeleton.points[start]), list(skeleton.points[end])) for start, end in skeleton.limbs]

    def project(made: FloatArray, query: FloatArray) -> FloatArray:
        kept = made.astype(np.float64)
        for start, end in limbs:
            limb, real = (np.asarray(X[..., end] - X[..., start], dtype=np.float64) for X in (made, query))
            length, real_length = (np.linalg.norm(x, axis=-1, keepdims=True) for x in (limb, real))
            wanted = np.clip(length, (1 - tolerance) * real_length, (1 + tolerance) * real_length)
            # Differences, so that what need not move keeps its bits. Without a length, a limb has no direction.
            factor = np.divide(wanted, length, out=np.ones_like(length), where=length > 0) - 1
            moved = np.where(length > 0, limb * factor, (1 - tolerance) * real)
            kept[..., end] = made[..., end] + (kept[..., start] - made[..., start]) + moved
        return kept.astype(made.dtype)

    project.__qualname__ = "keep_limbs"
    return project
