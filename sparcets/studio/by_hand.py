"""Curves drawn by hand: a stroke pulls a feature up or down around one step, and falls off to both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparcets.arrays import BoolArray, FloatArray
from sparcets.errors import ConstraintError
from sparcets.registry import unknown_name
from sparcets.studio.models import Stroke


def bump(n_steps: int, at: int, width: int) -> FloatArray:
    """Return a smooth bump of height 1 over ``width`` steps on both sides of one step; 0 elsewhere.

    >>> bump(7, 3, 1).round(2).tolist()
    [0.0, 0.0, 0.5, 1.0, 0.5, 0.0, 0.0]
    """
    away = np.arange(n_steps) - at
    return np.where(np.abs(away) <= width, 0.5 * (1 + np.cos(np.pi * away / (width + 1))), 0.0)


def draw(
    series: FloatArray, strokes: Sequence[Stroke], feature_names: Sequence[str], mutable: BoolArray, length: int
) -> tuple[FloatArray, dict[str, list[tuple[int, int]]]]:
    """Return a series (time, features) with strokes added, and the windows of each feature that they change.

    Parameters
    ----------
    series
        The recording.
    strokes
        What was drawn, in this order.
    feature_names, mutable
        Names of the features, and which of them may change.
    length
        Number of steps without padding.

    Examples
    --------
    >>> pulled = Stroke(feature="b", at=2, width=1, by=4.0)
    >>> made, windows = draw(np.zeros((5, 2)), [pulled], ["a", "b"], np.array([True, True]), 5)
    >>> made[:, 1].tolist(), windows
    ([0.0, 2.0, 4.0, 2.0, 0.0], {'b': [(1, 4)]})
    """
    made, names = series.astype(np.float64), list(feature_names)
    touched = np.zeros(series.shape, dtype=bool)
    for stroke in strokes:
        if stroke.feature not in names:
            raise unknown_name("feature", stroke.feature, names)
        feature = names.index(stroke.feature)
        if not mutable[feature]:
            raise ConstraintError(f"{stroke.feature} may not change, so that nothing can be drawn there.")
        shape = bump(length, stroke.at, stroke.width)
        made[:length, feature] += stroke.by * shape  # NaN, a missing entry, stays NaN
        touched[:length, feature] |= shape > 0
    windows = {names[f]: _runs(touched[:, f]) for f in np.flatnonzero(touched.any(0)).tolist()}
    return np.where(touched, made, series).astype(series.dtype), windows


def _runs(mask: BoolArray) -> list[tuple[int, int]]:
    """Return the half-open runs in which a mask is true.

    >>> _runs(np.array([True, False, True, True]))
    [(0, 1), (2, 4)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(int)))
    return [(int(start), int(stop)) for start, stop in edges.reshape(-1, 2)]
