"""Shape of counterfactuals, judged by the ranges of the training series alone: values, steps and limb lengths."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, differs, length_mask
from sparcets.core.info import SPANS, SeriesInfo, move_over
from sparcets.motion.skeleton import Limb, Skeleton, find_skeleton

SHAPE = ("outside", "jumps", "stretch")
TOLERANCE = 1e-6  # of a feature's span: differences below it are rounding
MARGIN = 1.25  # of the largest real move over several steps: more is a jump
CHUNK = 1024  # answers at a time, bounding memory


class Changed(Protocol):
    """The parts of an Explanation that are used here."""

    @property
    def query(self) -> FloatArray:
        """Queries (answers, time, features)."""

    @property
    def counterfactual(self) -> FloatArray:
        """Counterfactuals (answers, time, features)."""

    @property
    def lengths(self) -> IntArray | None:
        """True lengths of padded series, or None."""


def shape_of(answers: Changed, info: SeriesInfo) -> dict[str, FloatArray]:
    """Return three measures of each counterfactual; padding and missing entries do not count.

    Parameters
    ----------
    answers
        Answers of any status.
    info
        Ranges of the training series, and the names of the features.

    Returns
    -------
    dict
        An array (answers,) each, NaN where unknown:

        - ``outside``: number of changed entries outside the range of their feature in the training series
        - ``jumps``: number of steps, from or to a changed entry, in which a feature changes more than in any training
          series; and of moves over two to six steps that are larger by a quarter than any in the training series, and
          larger than the query's
        - ``stretch``: largest relative change of a limb's length against the query's at the same step; NaN if the
          features form no limb
    """
    query, made, skeleton = answers.query, answers.counterfactual, find_skeleton(info.feature_names, info.units)
    inside = length_mask(answers.lengths, len(query), query.shape[1])
    rows = [slice(i, i + CHUNK) for i in range(0, max(len(query), 1), CHUNK)]
    parts = [_measure(query[r], made[r], inside[r], info, skeleton) for r in rows]
    return {name: np.concatenate([part[name] for part in parts]) for name in SHAPE}


def _measure(
    query: FloatArray, made: FloatArray, inside: BoolArray, info: SeriesInfo, skeleton: Skeleton | None
) -> dict[str, FloatArray]:
    changed = differs(made, query) & inside[..., None]
    measured = dict.fromkeys(SHAPE, np.full(len(made), np.nan))
    if info.low is not None and info.high is not None and info.max_step is not None:
        tolerance = TOLERANCE * info.span
        beyond = (made < info.low - tolerance) | (made > info.high + tolerance)
        steep = np.abs(np.diff(made, axis=1)) > info.max_step + tolerance  # (answers, time - 1, features)
        steep &= (changed[:, 1:] | changed[:, :-1]) & inside[:, 1:, None]
        measured["outside"] = (beyond & changed).sum((1, 2)).astype(np.float64)
        measured["jumps"] = steep.sum((1, 2)).astype(np.float64)
        if info.max_moves is not None:
            measured["jumps"] += fast_moves(query, made, changed, inside, info).any(0).sum((1, 2))
    if skeleton is not None:
        stretch = [relative_change(*(limb_length(X, skeleton, limb) for X in (query, made))) for limb in skeleton.limbs]
        measured["stretch"] = np.where(inside, np.maximum.reduce(stretch), 0.0).max(1)
    return measured


def fast_moves(
    query: FloatArray, made: FloatArray, changed: BoolArray, inside: BoolArray, info: SeriesInfo
) -> BoolArray:
    """Return where a move over several steps is larger than in real series (spans, answers, time, features).

    A limit on single steps alone allows several large ones in a row, as no real series has them.

    Parameters
    ----------
    query, made, changed
        Series, counterfactuals and where they differ (answers, time, features).
    inside
        False in padding (answers, time).
    info
        Of the training series, with ``max_moves``.
    """
    assert info.max_moves is not None
    found = np.zeros((len(SPANS), *made.shape), dtype=bool)
    for k, span in enumerate(SPANS):
        if span >= made.shape[1]:
            continue
        limit = np.maximum(MARGIN * info.max_moves[k] + TOLERANCE * info.span, move_over(query, span))
        either = changed[:, span:] | changed[:, :-span]
        found[k, :, span:] = (move_over(made, span) > limit) & either & inside[:, span:, None]
    return found


def limb_length(X: FloatArray, skeleton: Skeleton, limb: Limb) -> FloatArray:
    """Return the length of a limb at every step (batch, time) of series (batch, time, features)."""
    start, end = (list(skeleton.points[point]) for point in limb)
    return np.asarray(np.linalg.norm(X[..., end].astype(np.float64) - X[..., start], axis=-1))


def relative_change(before: FloatArray, after: FloatArray) -> FloatArray:
    """Return how much lengths change, relative to what they were; infinite from 0, and 0 where they are missing.

    >>> relative_change(np.array([2.0, 0.0, np.nan]), np.array([3.0, 1.0, np.nan])).tolist()
    [0.5, inf, 0.0]
    """
    change = np.where(np.isnan(before), 0.0, np.abs(after - before))
    return np.asarray(np.divide(change, before, out=np.where(change > 0, np.inf, 0.0), where=before > 0))
