"""Lengths of limbs and angles of joints, and how much answers change them.

Measures are those of section 6 of the paper. Padding does not count; where the query is missing, nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparcets.core.evidence import limb_length
from sparcets.core.explanation import Explanation
from sparcets.core.series import FloatArray, Series, without_gaps
from sparcets.motion.skeleton import Skeleton


def limb_lengths(X: FloatArray, skeleton: Skeleton) -> dict[str, FloatArray]:
    """Return the length of each limb (batch, time) of series (batch, time, features), in the data's own units.

    >>> arm = Skeleton({"elbow": (0, 1), "wrist": (2, 3)}, limbs=(("elbow", "wrist"),), joints=())
    >>> limb_lengths(np.array([[[0.0, 0.0, 3.0, 4.0]]]), arm)
    {'elbow–wrist': array([[5.]])}
    """
    return {f"{a}–{b}": limb_length(X, skeleton, (a, b)) for a, b in skeleton.limbs}


def joint_angles(X: FloatArray, skeleton: Skeleton) -> dict[str, FloatArray]:
    """Return the angle of each joint (batch, time) in degrees, from 0 (folded) to 180 (stretched).

    0 where one of the two limbs has length 0, so that the angle is undefined.

    >>> points = {"shoulder": (0, 1), "elbow": (2, 3), "wrist": (4, 5)}
    >>> arm = Skeleton(points, limbs=(), joints=(("shoulder", "elbow", "wrist"),))
    >>> joint_angles(np.array([[[0.0, 2.0, 0.0, 0.0, 7.0, 0.0]]]), arm)
    {'shoulder–elbow–wrist': array([[90.]])}
    """
    angles = {}
    for a, b, c in skeleton.joints:
        u, v = _between(X, skeleton, b, a), _between(X, skeleton, b, c)
        # Scaled to equal length, their difference and sum are the diagonals of a rhombus. Unlike the arc cosine, this
        # is exact near 0 and 180 degrees and needs no division.
        u, v = u * np.linalg.norm(v, axis=-1, keepdims=True), v * np.linalg.norm(u, axis=-1, keepdims=True)
        half = np.arctan2(np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1))
        angles[f"{a}–{b}–{c}"] = np.asarray(np.rad2deg(2 * half))
    return angles


def limb_deviation(e: Explanation, skeleton: Skeleton) -> FloatArray:
    """Return the mean absolute change of limb length over limbs and steps (answers,); lower is better.

    It is relative to the limb's mean length in the query, and 0 where the body moves as a whole. NaN where a limb has
    length 0 in the query, or where there are no limbs.
    """
    deviations = []
    for before, after in _before_and_after(e, skeleton, limb_lengths).values():
        mean, change = _mean_over_steps(e, before), _mean_over_steps(e, np.abs(after - before))
        deviations.append(np.divide(change, mean, out=np.full(len(e), np.nan), where=mean > 0))
    return np.mean(deviations, axis=0) if deviations else np.full(len(e), np.nan)


def joint_deviation(e: Explanation, skeleton: Skeleton) -> FloatArray:
    """Return the mean absolute change of joint angle over joints and steps (answers,), in degrees; lower is better.

    NaN where there are no joints.
    """
    angles = _before_and_after(e, skeleton, joint_angles).values()
    changes = [_mean_over_steps(e, np.abs(after - before)) for before, after in angles]
    return np.mean(changes, axis=0) if changes else np.full(len(e), np.nan)


def limb_distance(e: Explanation, skeleton: Skeleton) -> dict[str, float]:
    """Return the distance between the distributions of each limb's length in counterfactuals and in queries.

    1-Wasserstein distance over all answers and steps, divided by the limb's mean length in the queries; NaN where that
    is 0 or there are no answers.
    """
    inside, distances = Series(e.query, e.lengths).inside, {}
    for name, (before, after) in _before_and_after(e, skeleton, limb_lengths).items():
        mean = float(before[inside].sum()) / max(int(inside.sum()), 1)
        distances[name] = _wasserstein(before[inside], after[inside]) / mean if mean > 0 else float("nan")
    return distances


def joint_distance(e: Explanation, skeleton: Skeleton) -> dict[str, float]:
    """Return the distance between the distributions of each joint's angle in counterfactuals and in queries.

    1-Wasserstein distance over all answers and steps, in degrees; NaN where there are no answers.
    """
    inside, angles = Series(e.query, e.lengths).inside, _before_and_after(e, skeleton, joint_angles)
    return {name: _wasserstein(before[inside], after[inside]) for name, (before, after) in angles.items()}


def _before_and_after(
    e: Explanation, skeleton: Skeleton, measure: Callable[[FloatArray, Skeleton], dict[str, FloatArray]]
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the lengths or angles (answers, time) of queries and of counterfactuals, by name."""
    before, after = (measure(X, skeleton) for X in without_gaps(e.query, e.counterfactual))
    return {name: (values, after[name]) for name, values in before.items()}


def _between(X: FloatArray, skeleton: Skeleton, a: str, b: str) -> FloatArray:
    """Return the vectors from point ``a`` to point ``b`` (batch, time, coordinates)."""
    start, end = (list(skeleton.points[point]) for point in (a, b))
    return np.asarray(X[..., end].astype(np.float64) - X[..., start])


def _mean_over_steps(e: Explanation, values: FloatArray) -> FloatArray:
    """Return the mean of (answers, time) over the steps within each series."""
    inside = Series(e.query, e.lengths).inside
    return np.asarray(np.where(inside, values, 0.0).sum(1) / np.maximum(inside.sum(1), 1))


def _wasserstein(a: FloatArray, b: FloatArray) -> float:
    """Return the 1-Wasserstein distance of two equally large samples: the mean difference of their sorted values."""
    return float(np.abs(np.sort(a) - np.sort(b)).mean()) if a.size else float("nan")
