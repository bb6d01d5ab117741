"""Lengths of limbs and angles of joints: how much answers change them, and constraints that keep them.

Measures are those of section 6 of the paper. Padding does not count; where the query is missing, nothing changes.

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

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sparcets.core.arrays import FloatArray, length_mask
from sparcets.core.constraints import Constraints, open_ends
from sparcets.core.enforcement import Project
from sparcets.core.errors import CapabilityError, DataError, NotFittedError, OutOfRangeError, quoted
from sparcets.core.evidence import MARGIN, limb_length
from sparcets.core.explanation import Explanation
from sparcets.core.info import SPANS, SeriesInfo
from sparcets.core.series import without_gaps
from sparcets.motion.skeleton import Skeleton, find_skeleton


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
    inside, distances = _inside(e), {}
    for name, (before, after) in _before_and_after(e, skeleton, limb_lengths).items():
        mean = float(before[inside].sum()) / max(int(inside.sum()), 1)
        distances[name] = _wasserstein(before[inside], after[inside]) / mean if mean > 0 else float("nan")
    return distances


def joint_distance(e: Explanation, skeleton: Skeleton) -> dict[str, float]:
    """Return the distance between the distributions of each joint's angle in counterfactuals and in queries.

    1-Wasserstein distance over all answers and steps, in degrees; NaN where there are no answers.
    """
    inside, angles = _inside(e), _before_and_after(e, skeleton, joint_angles)
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


def _inside(e: Explanation) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return length_mask(e.lengths, *e.query.shape[:2])


def _mean_over_steps(e: Explanation, values: FloatArray) -> FloatArray:
    """Return the mean of (answers, time) over the steps within each series."""
    inside = _inside(e)
    return np.asarray(np.where(inside, values, 0.0).sum(1) / np.maximum(inside.sum(1), 1))


def _wasserstein(a: FloatArray, b: FloatArray) -> float:
    """Return the 1-Wasserstein distance of two equally large samples: the mean difference of their sorted values."""
    return float(np.abs(np.sort(a) - np.sort(b)).mean()) if a.size else float("nan")


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
        Of the data, which must have points that form limbs; see :func:`~sparcets.motion.skeleton.find_skeleton`.
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


def like_real(info: SeriesInfo | None, constraints: Constraints | None = None) -> Constraints:
    """Return the limits of a believed answer as constraints: values, steps between them, and lengths of limbs.

    Without them, an answer that leaves these limits is found and called doubtful; with them, it is not looked for. More
    values change then, since the points of a limb move together.

    Parameters
    ----------
    info
        Of the training series: ``info_`` of a fitted explainer, or ``info`` of an explanation.
    constraints
        Others that hold as well; where both limit a feature, the tighter limit holds. A ``project`` among them replaces
        that of the limbs.

    Returns
    -------
    Constraints
        ``ranges`` and ``max_step`` as in the training series, so that several steps in a row are no larger move either;
        and :func:`~sparcets.motion.limbs.keep_limbs` where the features form a skeleton.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> ex.explain(X[y == 0][:2], target=1, constraints=like_real(ex.info_)).plausibility["jumps"].tolist()
    [0.0, 0.0]
    """
    if info is None:
        raise NotFittedError("like_real needs what a fit has seen of the training series: call fit first.")
    if not isinstance(info, SeriesInfo):
        raise DataError(f"like_real takes what a fit has seen, ex.info_, got {quoted(info)}.")
    given = constraints or Constraints()
    moving = [f for f in range(info.n_features) if info.high[f] > info.low[f] and info.max_step[f] > 0]
    ranges: dict[int | str, tuple[float | None, float | None]] = {
        f: (float(info.low[f]), float(info.high[f])) for f in moving
    }
    for feature, ends in given.ranges.items():
        f, (low, high) = info.feature_index(feature), open_ends(*ends)
        least, most = open_ends(*ranges.get(f, (None, None)))
        # A range that real series never reach is the user's decision.
        ranges[f] = (low, high) if low > most or high < least else (max(low, least), min(high, most))
    # Several such steps in a row are then no larger move than real series make.
    steps = np.minimum(info.max_step, (MARGIN * info.max_moves / np.array(SPANS)[:, None]).min(0))
    max_step: dict[int | str, float] = {f: float(steps[f]) for f in moving}
    for feature, limit in given.max_step.items():
        f = info.feature_index(feature)
        max_step[f] = min(limit, max_step.get(f, math.inf))
    has_limbs = find_skeleton(info.feature_names, info.units) is not None
    limbs = keep_limbs(info.feature_names, info.units) if has_limbs else None
    return replace(given, ranges=ranges, max_step=max_step, project=given.project or limbs)
