"""Type aliases, masks and indices, which entries count, and what a number is.

Series are always ``(batch, time, features)``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparcets.errors import OutOfRangeError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
StrArray: TypeAlias = NDArray[np.str_]


def is_integer(value: Any) -> bool:
    """Return whether a value is a whole number of Python or NumPy; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy other than NaN; True and False are none.

    >>> [is_number(value) for value in (1, np.float32(0.5), np.inf, np.nan, True, "1")]
    [True, True, True, False, False, False]
    """
    return is_integer(value) or (isinstance(value, (float, np.floating)) and not np.isnan(value))


def length_mask(lengths: IntArray | None, n_samples: int, n_steps: int) -> BoolArray:
    """Return a mask ``(batch, time)`` of the steps within each series; all true without padding.

    >>> length_mask(np.array([1, 3]), 2, 3).astype(int).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    if lengths is None:
        return np.ones((n_samples, n_steps), dtype=bool)
    return np.asarray(np.arange(n_steps)[None] < lengths[:, None])


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


def count_measured(X: FloatArray, lengths: IntArray | None, features: BoolArray, gaps: BoolArray | None) -> IntArray:
    """Return the number of entries of some features (features,) in each series that are no padding and not missing.

    >>> X = np.array([[[1.0, 2.0], [np.nan, 3.0]]])
    >>> count_measured(X, None, np.array([True, False]), missing_entries(X)).tolist()
    [1]
    """
    inside = length_mask(lengths, *X.shape[:2])
    if gaps is None:
        return np.asarray(inside.sum(1) * int(features.sum()), dtype=np.int64)
    return np.asarray((inside[..., None] & ~gaps & features).sum((1, 2)), dtype=np.int64)


def differs(made: FloatArray, query: FloatArray) -> BoolArray:
    """Return which entries are not those of the query; a missing entry does not differ."""
    return np.asarray((made != query) & ~np.isnan(query))


def check_rows(rows: Any, n: int) -> Any:
    """Check an index into ``n`` answers and return it as a slice, a mask or an array of indices."""
    if isinstance(rows, slice):
        return rows
    chosen = np.atleast_1d(rows)
    if chosen.size == 0:
        chosen = chosen.astype(bool if chosen.dtype == bool else np.int64)  # np.atleast_1d makes an empty list float
    if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
        raise OutOfRangeError(f"answers are selected by index, slice, mask or list of indices, got {rows!r}.")
    if chosen.dtype == bool:
        if len(chosen) != n:
            raise OutOfRangeError(f"a mask over {n} answers must have {n} flags, got {len(chosen)}.")
        return chosen
    bad = chosen[(chosen < -n) | (chosen >= n)]
    if len(bad):
        raise OutOfRangeError(f"no answer {bad[0]}: this explanation holds {n}, numbered from 0.")
    return chosen


def is_stream(X: Any) -> bool:
    """Return whether ``X`` can only be iterated over: a generator, an iterator, a data loader.

    >>> is_stream(iter([[[1.0]]])), is_stream([[[1.0]]]), is_stream(np.zeros((1, 1, 1)))
    (True, False, False)
    """
    return hasattr(X, "__iter__") and not hasattr(X, "__getitem__") and not hasattr(X, "__array__")
