"""Numbers and times of files: the type that keeps every digit, and the grid that times lie on."""

from __future__ import annotations

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray

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


IRREGULAR = 0.02  # largest deviation of a time from a regular grid, in steps


def grid_of(times: FloatArray, series: IntArray) -> tuple[IntArray, float | None]:
    """Return the place of each row among the steps of its series, from 0, and how long a step is.

    Times lie on a grid if all between two rows of a series are whole multiples of the shortest. Where rows are missing,
    places are left out. If there is no such grid, or if most of its steps had no row, rows are counted instead, and the
    length of a step is None.

    Parameters
    ----------
    times, series
        Time and series of each row (rows,), sorted by both; no series has two rows of the same time.

    Examples
    --------
    >>> grid_of(np.array([0.0, 0.5, 2.0, 7.0, 7.5]), np.array([0, 0, 0, 1, 1]))
    (array([0, 1, 4, 0, 1]), 0.5)
    >>> grid_of(np.array([0.0, 0.5, 1.7]), np.array([0, 0, 0]))
    (array([0, 1, 2]), None)
    """
    first = np.flatnonzero(np.r_[True, np.diff(series) != 0])
    counts = np.diff(np.r_[first, len(series)])
    order = np.arange(len(series)) - np.repeat(first, counts)
    apart = np.diff(times)[order[1:] > 0]
    if not len(apart):
        return order, None
    with np.errstate(all="ignore"):  # times that are equal as floating-point numbers, or very far apart
        multiples = np.round(apart / np.median(apart[apart < 1.5 * apart.min()]))
        step = float(apart.sum() / multiples.sum())
        if not (np.abs(apart / step - multiples) <= IRREGULAR).all():
            return order, None
    passed = np.zeros(len(series))
    passed[order > 0] = multiples
    places = np.cumsum(passed)
    places = np.minimum(places - np.repeat(places[first], counts), 2.0**53)
    last = places[first + counts - 1]
    if np.median((counts / (last + 1))[counts > 1]) < 0.5:
        return order, None
    return places.astype(np.int64), step
