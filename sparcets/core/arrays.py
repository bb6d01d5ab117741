"""Type aliases, masks and indices, which entries count, and what a number is.

Series are always ``(batch, time, features)``.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparcets.core.errors import OutOfRangeError, quoted

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
StrArray: TypeAlias = NDArray[np.str_]

LARGEST = float(np.finfo(np.float32).max)  # of any series: standardised ones are float32 in most networks


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number of Python or NumPy; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy other than NaN; True and False are none.

    An integer beyond all floats is none either.

    >>> [is_number(value) for value in (1, np.float32(0.5), np.inf, np.nan, True, "1", 10**400)]
    [True, True, True, False, False, False, False]
    """
    if is_integer(value):
        return bool(abs(int(value)) <= sys.float_info.max)
    return isinstance(value, (float, np.floating)) and not np.isnan(value)


def missing_entries(X: FloatArray) -> BoolArray | None:
    """Return which entries of series are missing (batch, time, features); None if none is.

    >>> missing_entries(np.ones((1, 2, 1))), missing_entries(np.array([[[1.0], [np.nan]]])).ravel().tolist()
    (None, [False, True])
    """
    with np.errstate(all="ignore"):
        if not np.isnan(X.sum()):  # a sum is fast, and NaN if any entry is
            return None
    gaps = np.isnan(X)
    return gaps if gaps.any() else None


def differs(made: FloatArray, query: FloatArray) -> BoolArray:
    """Return which entries are not those of the query; a missing entry does not differ."""
    return np.asarray((made != query) & ~np.isnan(query))


def check_rows(rows: Any, n: int) -> Any:
    """Check an index into ``n`` answers and return it as a slice, a mask or an array of indices."""
    if isinstance(rows, slice):
        return rows
    try:
        chosen = np.atleast_1d(rows)
    except (TypeError, ValueError):  # a nested list, for example
        chosen = np.empty((0, 0))
    if chosen.size == 0 and chosen.ndim == 1:
        chosen = chosen.astype(bool if chosen.dtype == bool else np.int64)  # np.atleast_1d makes an empty list float
    if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
        raise OutOfRangeError(f"answers are selected by index, slice, mask or list of indices, got {quoted(rows)}.")
    if chosen.dtype == bool:
        if len(chosen) != n:
            raise OutOfRangeError(f"a mask over {n} answers must have {n} flags, got {len(chosen)}.")
        return chosen
    bad = chosen[(chosen < -n) | (chosen >= n)]
    if len(bad):
        raise OutOfRangeError(f"no answer {bad[0]}: this explanation holds {n}, numbered from 0.")
    return chosen
