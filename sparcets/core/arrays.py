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


def measured_entries(X: FloatArray, lengths: IntArray | None, allowed: BoolArray, gaps: BoolArray | None) -> BoolArray:
    """Return which of the allowed entries (batch, time, features) are no padding and not missing.

    With what the constraints allow, these are the entries that may change: what every share of changed entries is
    relative to, and what ``sparsity=`` is a share of.

    Parameters
    ----------
    X, lengths
        Series (batch, time, features), and their true lengths or None.
    allowed
        Features (features,), or entries (time, features).
    gaps
        Entries that are missing (batch, time, features), or None.

    Examples
    --------
    >>> X = np.array([[[1.0, 2.0], [np.nan, 3.0]]])
    >>> measured_entries(X, None, np.array([True, False]), missing_entries(X)).tolist()
    [[[True, False], [False, False]]]
    """
    entries: BoolArray = length_mask(lengths, *X.shape[:2])[..., None] & allowed
    return entries if gaps is None else entries & ~gaps


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


def is_stream(X: Any) -> bool:
    """Return whether ``X`` can only be iterated over: a generator, an iterator, a data loader.

    >>> is_stream(iter([[[1.0]]])), is_stream([[[1.0]]]), is_stream(np.zeros((1, 1, 1)))
    (True, False, False)
    """
    return hasattr(X, "__iter__") and not hasattr(X, "__getitem__") and not hasattr(X, "__array__")


# Digits of the shortest decimal number that identifies a float32: all with 6 digits are distinct, and 9 always suffice.
_DIGITS = range(6, 10)
_POWERS = 10.0 ** np.arange(23)


def as_stored(values: FloatArray) -> FloatArray:
    """Return numbers of a binary file as float32 if that changes none of them, otherwise as float64.

    >>> as_stored(np.array([0.5, 3.0])).dtype, as_stored(np.array([0.1, 3.0])).dtype
    (dtype('float32'), dtype('float64'))
    """
    single = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else values


def as_written(values: FloatArray) -> FloatArray:
    """Return numbers of a text file as float32 if that keeps every digit of the text, otherwise as float64.

    The digits are kept if the shortest decimal number that identifies the float32 is the one in the text. All numbers
    of at most six digits are kept, and of most ranges those of seven.

    Parameters
    ----------
    values
        Numbers of the text, rounded to float64, none beyond :data:`LARGEST`; NaN where one is missing.

    Examples
    --------
    >>> as_written(np.array([0.1, 3.14159])).dtype
    dtype('float32')
    >>> as_written(np.array([1e9, 1e9 + 1])).dtype
    dtype('float64')
    """
    single = as_stored(values)
    if single.dtype == np.float32:
        return single
    single = values.astype(np.float32)
    known = ~np.isnan(values)
    return single if np.array_equal(_shortest(single[known]), values[known]) else values


def _shortest(single: FloatArray) -> FloatArray:
    """Return the shortest decimal numbers that identify float32 numbers, as float64.

    Rounding is much faster than a conversion to text and back, which is left for very small and very large numbers:
    there, powers of ten are not exact.
    """
    exact = single.astype(np.float64).ravel()
    with np.errstate(divide="ignore"):
        exponent = np.where(exact == 0, 0.0, np.floor(np.log10(np.abs(exact)))).astype(np.int64)
    shortest = exact.copy()
    extreme = (exponent < -13) | (exponent > 22)
    shortest[extreme] = single.ravel()[extreme].astype(str).astype(np.float64)
    left = np.flatnonzero(~extreme)
    for digits in _DIGITS:
        decimals = digits - 1 - exponent[left]
        # Both powers are whole numbers, and one of them is 1: only the last division or product rounds.
        up, down = _POWERS[np.maximum(decimals, 0)], _POWERS[np.maximum(-decimals, 0)]
        rounded = np.rint(exact[left] * up / down) / up * down
        same = rounded.astype(np.float32) == exact[left]
        shortest[left[same]] = rounded[same]
        left = left[~same]
    return np.asarray(shortest.reshape(single.shape))
