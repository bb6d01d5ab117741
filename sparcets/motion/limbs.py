"""Counterfactuals whose limbs keep their lengths: a projection for :class:`~sparcets.Constraints`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.constraints import Constraints, open_ends
from sparcets.core.enforcement import Project
from sparcets.core.errors import CapabilityError, DataError, NotFittedError, OutOfRangeError, quoted
from sparcets.core.info import SPANS, SeriesInfo
from sparcets.core.shape import MARGIN
from sparcets.motion.skeleton import find_skeleton

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
    if info.low is None or info.high is None or info.max_step is None:
        raise DataError(
            "the ranges of the training series are not known: this was saved by an earlier version. Fit again."
        )
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
    steps = info.max_step
    if info.max_moves is not None:
        # Several such steps in a row are then no larger move than real series make.
        steps = np.minimum(steps, (MARGIN * info.max_moves / np.array(SPANS)[:, None]).min(0))
    max_step: dict[int | str, float] = {f: float(steps[f]) for f in moving}
    for feature, limit in given.max_step.items():
        f = info.feature_index(feature)
        max_step[f] = min(limit, max_step.get(f, math.inf))
    has_limbs = find_skeleton(info.feature_names, info.units) is not None
    limbs = keep_limbs(info.feature_names, info.units) if has_limbs else None
    return replace(given, ranges=ranges, max_step=max_step, project=given.project or limbs)
