"""The user's own projection: called, and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, FloatArray
from sparcets.errors import ConstraintError

ROUNDING = 4  # last digits by which results of the same computation may differ
Project = Callable[[Any, Any], Any]  # (counterfactuals, queries) -> counterfactuals, arrays (batch, time, features)


def apply_project(
    project: Project,
    result: FloatArray,
    query: FloatArray,
    free: BoolArray,
    tolerance: FloatArray,
    gaps: BoolArray | None = None,
    *,
    n_side: int = 0,
) -> FloatArray:
    """Return the projected series, or the query where the projection changes what may not change.

    Series that did not change are left alone.

    Parameters
    ----------
    project
        The user's function.
    result, query
        Series (batch, time, features).
    free
        Entries that may change (batch, time, features); the others are set to the query's.
    tolerance
        Changes below this are none (features,).
    gaps
        Entries that were missing and are filled here (batch, time, features); what the function makes of them does not
        matter.
    n_side
        Number of side inputs among the features, the last ones, which the function is not given.

    Raises
    ------
    ConstraintError
        If the function fails, returns something else than series of the same shape, or is not idempotent.
    """
    rows = np.flatnonzero((result != query).any((1, 2)))
    if not len(rows):
        return result
    once = _call(project, result[rows], query[rows], n_side)
    twice = _call(project, once, query[rows], n_side)
    same = np.maximum(tolerance, ROUNDING * np.spacing(np.maximum(np.abs(once), np.abs(query[rows]))))
    if (difference := (np.abs(twice - once) > same).any((0, 1))).any():
        raise ConstraintError(
            "project must give the same when it is applied twice, but its second application changed "
            f"{int(difference.sum())} of {len(difference)} features again. Return the final series at once."
        )
    if gaps is not None:
        once = np.where(gaps[rows], query[rows], once)
    negligible = np.abs(once - query[rows]) < tolerance
    allowed = np.where(free[rows] & ~negligible, once, query[rows])
    # Where the function changes what may not change, the two cannot both hold.
    obeys = (np.abs(allowed - once) <= same).all((1, 2), keepdims=True)
    projected: FloatArray = result.copy()
    projected[rows] = np.where(obeys, allowed, query[rows])
    return projected


def _call(project: Project, result: FloatArray, query: FloatArray, n_side: int) -> FloatArray:
    n_features = query.shape[2] - n_side
    result, query, beside = result[:, :, :n_features], query[:, :, :n_features], query[:, :, n_features:]
    try:
        returned = np.asarray(project(result.copy(), query.copy()), dtype=query.dtype)
    except Exception as error:  # a user's function may raise anything
        raise ConstraintError(f"project raised {type(error).__name__}: {error}.") from error
    if returned.shape != query.shape:
        raise ConstraintError(f"project must return an array of shape {query.shape}, got {returned.shape}.")
    if not np.isfinite(returned).all():
        raise ConstraintError("project returned values that are not finite.")
    return np.concatenate([returned, beside], axis=2) if n_side else returned
