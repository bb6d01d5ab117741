"""Geometric plausibility of body movements: changes of limb lengths and joint angles (section 6 of the paper).

Examples
--------
>>> from dataclasses import replace
>>> import sparcets as sp
>>> from sparcets.motion.skeleton import find_skeleton
>>> from sparcets.testing.mocks import mean_proba
>>> ds = sp.load_dataset("catching")
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(ds).explain(ds.X_test[:2], target="Control")
>>> larger = replace(e, counterfactual=1.5 * e.query)
>>> arms = find_skeleton(ds.feature_names)
>>> limb_deviation(larger, arms).round(3).tolist(), joint_deviation(larger, arms).round(3).tolist()
([0.5, 0.5], [0.0, 0.0])
>>> round(limb_distance(larger, arms)["LeftElbow–LeftWrist"], 3)
0.5
>>> round(joint_distance(larger, arms)["LeftShoulder–LeftElbow–LeftWrist"], 3)
0.0
"""

from __future__ import annotations

import numpy as np

from sparcets.core.arrays import FloatArray, length_mask
from sparcets.core.explanation import Explanation
from sparcets.evaluation.measures import without_gaps
from sparcets.motion.skeleton import Skeleton


def limb_lengths(X: FloatArray, skeleton: Skeleton) -> dict[str, FloatArray]:
    """Return the length of each limb (batch, time), in the data's own units.

    Parameters
    ----------
    X
        Series (batch, time, features).
    skeleton
        Indices of the features that are coordinates of each body point.

    Examples
    --------
    >>> from sparcets.motion.skeleton import Skeleton
    >>> arm = Skeleton({"elbow": (0, 1), "wrist": (2, 3)}, limbs=(("elbow", "wrist"),), joints=())
    >>> limb_lengths(np.array([[[0.0, 0.0, 3.0, 4.0]]]), arm)
    {'elbow–wrist': array([[5.]])}
    """
    return {f"{a}–{b}": np.linalg.norm(_between(X, skeleton, a, b), axis=-1) for a, b in skeleton.limbs}


def joint_angles(X: FloatArray, skeleton: Skeleton) -> dict[str, FloatArray]:
    """Return the angle of each joint (batch, time) in degrees, from 0 (folded) to 180 (stretched).

    0 where one of the two limbs has length 0, so that the angle is undefined.

    Parameters
    ----------
    X
        Series (batch, time, features).
    skeleton
        Indices of the features that are coordinates of each body point.

    Examples
    --------
    >>> from sparcets.motion.skeleton import Skeleton
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
    """Return the mean absolute change of limb length over limbs and steps; lower is better.

    It is relative to the limb's mean length in the query, and 0 where the body moves as a whole.

    Parameters
    ----------
    e
        Answers; padding does not count.
    skeleton
        Indices of the features that are coordinates of each body point.

    Returns
    -------
    FloatArray
        (answers,), NaN where a limb has length 0 in the query, or where there are no limbs.
    """
    before, after = (limb_lengths(X, skeleton) for X in without_gaps(e.query, e.counterfactual))
    deviations = []
    for name, lengths in before.items():
        mean = _mean_over_steps(e, lengths)
        change = _mean_over_steps(e, np.abs(after[name] - lengths))
        deviations.append(np.divide(change, mean, out=np.full(len(e), np.nan), where=mean > 0))
    return np.mean(deviations, axis=0) if deviations else np.full(len(e), np.nan)


def joint_deviation(e: Explanation, skeleton: Skeleton) -> FloatArray:
    """Return the mean absolute change of joint angle over joints and steps, in degrees; lower is better.

    Parameters
    ----------
    e
        Answers; padding does not count.
    skeleton
        Indices of the features that are coordinates of each body point.

    Returns
    -------
    FloatArray
        (answers,), NaN where there are no joints.
    """
    before, after = (joint_angles(X, skeleton) for X in without_gaps(e.query, e.counterfactual))
    changes = [_mean_over_steps(e, np.abs(after[name] - angles)) for name, angles in before.items()]
    return np.mean(changes, axis=0) if changes else np.full(len(e), np.nan)


def limb_distance(e: Explanation, skeleton: Skeleton) -> dict[str, float]:
    """Return the distance between the distributions of each limb's length in counterfactuals and in queries.

    1-Wasserstein distance over all answers and steps, divided by the limb's mean length in the queries; NaN where that
    is 0 or there are no answers.

    Parameters
    ----------
    e
        Answers; padding does not count.
    skeleton
        Indices of the features that are coordinates of each body point.
    """
    before, after = (limb_lengths(X, skeleton) for X in without_gaps(e.query, e.counterfactual))
    inside = length_mask(e.lengths, len(e), e.query.shape[1])
    distances = {}
    for name, lengths in before.items():
        mean = float(lengths[inside].sum()) / max(int(inside.sum()), 1)
        distance = _wasserstein(lengths[inside], after[name][inside])
        distances[name] = distance / mean if mean > 0 else float("nan")
    return distances


def joint_distance(e: Explanation, skeleton: Skeleton) -> dict[str, float]:
    """Return the distance between the distributions of each joint's angle in counterfactuals and in queries.

    1-Wasserstein distance over all answers and steps, in degrees; NaN where there are no answers.

    Parameters
    ----------
    e
        Answers; padding does not count.
    skeleton
        Indices of the features that are coordinates of each body point.
    """
    before, after = (joint_angles(X, skeleton) for X in without_gaps(e.query, e.counterfactual))
    inside = length_mask(e.lengths, len(e), e.query.shape[1])
    return {name: _wasserstein(angles[inside], after[name][inside]) for name, angles in before.items()}


def _between(X: FloatArray, skeleton: Skeleton, a: str, b: str) -> FloatArray:
    """Return the vectors from point ``a`` to point ``b`` (batch, time, coordinates)."""
    start, end = (list(skeleton.points[point]) for point in (a, b))
    return np.asarray(X[..., end].astype(np.float64) - X[..., start])


def _mean_over_steps(e: Explanation, values: FloatArray) -> FloatArray:
    """Return the mean of (answers, time) over the steps within each series."""
    inside = length_mask(e.lengths, *values.shape)
    return np.asarray(np.where(inside, values, 0.0).sum(1) / np.maximum(inside.sum(1), 1))


def _wasserstein(a: FloatArray, b: FloatArray) -> float:
    """Return the 1-Wasserstein distance of two equally large samples: the mean difference of their sorted values."""
    return float(np.abs(np.sort(a) - np.sort(b)).mean()) if a.size else float("nan")
