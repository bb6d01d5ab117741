"""Series, always ``(batch, time, features)``: of one or several lengths, in which values may be missing; their types.

Also what a number is, and which rows an index chooses.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparcets.core.errors import OutOfRangeError, quoted

if TYPE_CHECKING:
    from sparcets.core.info import Scaler

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
StrArray: TypeAlias = NDArray[np.str_]

LARGEST = float(np.finfo(np.float32).max)  # of any series: standardised ones are float32 in most networks


@dataclass(frozen=True, eq=False)
class Series:
    """Checked series in one array: padded to the longest of them, and NaN where a value is missing.

    Attributes
    ----------
    values
        Array (batch, time, features); zero beyond the length of each series, NaN where nothing was measured.
    lengths
        Length of each series (batch,); None where all are as long as the array. Only models, which take series
        of one length by a shorter way, need to see the difference: everything else asks :attr:`inside`,
        :attr:`measured` or :meth:`by_length`.

    Examples
    --------
    >>> some = Series(np.array([[[1.0], [0.0]], [[2.0], [3.0]]]), np.array([1, 2]))
    >>> len(some), some[1:].values.ravel().tolist(), some.measured[..., 0].tolist()
    (2, [2.0, 3.0], [[True, False], [True, True]])
    >>> [(rows.tolist(), part.values.shape) for rows, part in some.by_length()]
    [([0], (1, 1, 1)), ([1], (1, 2, 1))]
    """

    values: FloatArray
    lengths: IntArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Series:
        """Select series by slice, mask or indices."""
        return Series(self.values[rows], self.steps[rows] if self.unequal else None)

    @property
    def n_steps(self) -> int:
        """Number of steps of the array, at least the length of the longest series."""
        return int(self.values.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.values.shape[2])

    @property
    def unequal(self) -> bool:
        """Whether the series have lengths of their own."""
        return self.lengths is not None

    @property
    def steps(self) -> IntArray:
        """Length of each series (batch,)."""
        return np.full(len(self), self.n_steps, dtype=np.int64) if self.lengths is None else self.lengths

    @cached_property
    def gaps(self) -> BoolArray | None:
        """Which entries are missing (batch, time, features); None if none is."""
        return missing_entries(self.values)

    @property
    def inside(self) -> BoolArray:
        """Which steps lie within each series (batch, time)."""
        return np.asarray(np.arange(self.n_steps) < self.steps[:, None])

    @property
    def measured(self) -> BoolArray:
        """Which entries are neither padding nor missing (batch, time, features)."""
        inside = np.broadcast_to(self.inside[..., None], self.values.shape)
        return inside if self.gaps is None else inside & ~self.gaps

    @property
    def flat(self) -> FloatArray:
        """All steps of all series (steps, features), without padding; a view if there is none."""
        flat = self.values.reshape(-1, self.n_features)
        return flat[self.inside.ravel()] if self.unequal else flat

    def with_values(self, values: FloatArray) -> Series:
        """Return other series of the same lengths."""
        return Series(values, self.lengths)

    def cut(self, n_steps: int) -> Series:
        """Return the first steps of all series, none of which may be shorter."""
        return Series(np.ascontiguousarray(self.values[:, :n_steps]))

    def by_length(self) -> Iterator[tuple[IntArray, Series]]:
        """Yield the series of each length that occurs, in rising order, without padding, and their rows."""
        if not self.unequal:
            yield np.arange(len(self)), self
            return
        for n_steps in np.unique(self.steps).tolist():
            rows = np.flatnonzero(self.steps == n_steps)
            yield rows, self[rows].cut(n_steps)

    def batches(self, size: int) -> Iterator[Series]:
        """Yield the series in parts of at most ``size``."""
        return (self[start : start + size] for start in range(0, len(self), size))

    def blank(self, n_steps: int | None = None) -> Series:
        """Return the series with zeros beyond their lengths, whatever is there, in an array of ``n_steps`` steps.

        >>> Series(np.array([[[1.0], [np.nan]]]), np.array([1])).blank(3).values.ravel()
        array([1., 0., 0.])
        """
        X, n_steps = self.values, self.n_steps if n_steps is None else n_steps
        if n_steps > self.n_steps:
            more = np.zeros((len(X), n_steps - self.n_steps, self.n_features), dtype=X.dtype)
            X = np.concatenate([X, more], axis=1)
        X = X[:, :n_steps]
        inside = np.arange(n_steps) < self.steps[:, None]
        # A copy only if it is needed.
        X = X if (X[~inside] == 0).all() else np.where(inside[..., None], X, X.dtype.type(0))
        return Series(X, self.lengths)

    def padded(self, n_steps: int) -> Series:
        """Return the series in an array of ``n_steps`` steps, with zeros after each."""
        return Series(self.blank(n_steps).values, self.steps)

    def resampled(self, n_steps: int | IntArray) -> FloatArray:
        """Return each series' own part, interpolated linearly to other numbers of steps.

        So a series of another length can stand beside a query step by step, from its beginning to its end. To cut it
        would lose its end, and could not fill a longer query.

        Parameters
        ----------
        n_steps
            New length: one for all, or one each (batch,).

        Returns
        -------
        series
            (batch, largest of n_steps, features); beyond a series' own ``n_steps`` its last step is repeated.

        Examples
        --------
        >>> Series(np.array([[[0.0], [2.0], [9.0]]]), np.array([2])).resampled(3).ravel()
        array([0., 1., 2.])
        """
        X, old = self.values, self.steps[:, None]
        new = np.broadcast_to(np.asarray(n_steps), len(X))[:, None]  # (batch, 1)
        steps = np.arange(int(new.max()) if len(X) else 0)
        # Equal lengths give whole numbers exactly, and with them the series' own bits.
        where = np.minimum(steps * (old - 1) / np.maximum(new - 1, 1), old - 1)  # (batch, new time)
        before = where.astype(np.int64)
        after, rows = np.minimum(before + 1, old - 1), np.arange(len(X))[:, None]
        share = (where - before)[..., None].astype(X.dtype)
        low = X[rows, before]
        resampled: FloatArray = low + share * (X[rows, after] - low)
        return resampled

    def standardised(self, scaler: Scaler) -> Series:
        """Return the series in standardised units, still zero in padding."""
        return self.with_values(scaler.transform(self.values)).blank()

    @property
    def unmeasured(self) -> BoolArray:
        """Of which features each series has no value (batch, features)."""
        empty = np.isnan(self.values[:, 0])
        suspects = np.flatnonzero(empty.any(1))  # few, where most series start with a value
        empty[suspects] = ~self[suspects].measured.any(1)
        return empty

    def filled(self, rule: str = "forward", *, otherwise: float = np.nan) -> Series:
        """Return the series without gaps.

        Parameters
        ----------
        rule
            ``"forward"``: the last value before; for the first entries, the next one. ``"mean"``: the mean of the
            feature in the same series.
        otherwise
            Value of a feature that the series has no value of.

        Examples
        --------
        >>> some = Series(np.array([[[np.nan], [1.0], [np.nan], [3.0]]]))
        >>> some.filled().values.ravel().tolist(), some.filled("mean").values.ravel().tolist()
        ([1.0, 1.0, 1.0, 3.0], [2.0, 1.0, 2.0, 3.0])
        """
        if self.gaps is None:
            return self
        X, known = self.values, self.measured
        if rule == "mean":
            total = np.where(known, X, 0.0).sum(1, keepdims=True, dtype=np.float64)
            value = total / np.maximum(known.sum(1, keepdims=True), 1)  # (batch, 1, features)
        else:
            last = np.maximum.accumulate(np.where(known, np.arange(X.shape[1])[:, None], -1), axis=1)
            value = np.take_along_axis(X, np.where(last < 0, known.argmax(1)[:, None], last), axis=1)
        value = np.where(known.any(1, keepdims=True), value, otherwise)
        return self.with_values(np.where(self.gaps, value, X).astype(X.dtype, copy=False))

    @classmethod
    def stack(cls, series: Sequence[FloatArray]) -> Series:
        """Return arrays (time, features) of any lengths in one, with zeros after each.

        >>> Series.stack([np.ones((1, 1)), np.ones((2, 1))]).values[..., 0]
        array([[1., 0.],
               [1., 1.]])
        """
        steps = np.array([len(one) for one in series], dtype=np.int64)
        dtype = np.result_type(*{one.dtype for one in series})
        padded = np.zeros((len(series), steps.max(), series[0].shape[1]), dtype=dtype)
        for row, one in zip(padded, series, strict=True):
            row[: len(one)] = one
        return cls(padded, steps)

    @classmethod
    def join(cls, parts: Sequence[Series]) -> Series:
        """Concatenate, padded to the longest."""
        n_steps = max(part.n_steps for part in parts)
        if all(part.n_steps == n_steps and not part.unequal for part in parts):
            return cls(np.concatenate([part.values for part in parts]))
        whole = [part.padded(n_steps) for part in parts]
        return cls(np.concatenate([part.values for part in whole]), np.concatenate([part.steps for part in whole]))


def without_gaps(query: FloatArray, counterfactual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both series (answers, time, features) with the same values where the query is missing."""
    gaps = missing_entries(query)
    if gaps is None:
        return query, counterfactual
    filled = Series(query).filled(otherwise=0.0).values
    return filled, np.where(gaps, filled, counterfactual)


def compare_pairs(a: Series, b: Series) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how all pairs of series differ in what both have, as arrays (len(a), len(b)).

    They cost one matrix product instead of an array of differences: Σ (a - b)² = Σ a² + Σ b² - 2 Σ ab, where what is
    missing or padding is 0 in the products and masked in the squares.

    Returns
    -------
    squares, whole
        Sum of the squared differences, which may be below 0 by rounding, and Σ a² + Σ b².
    common
        Number of steps that both have; of entries, divided by the number of features, where some are missing.
    """
    if a.gaps is None and b.gaps is None:
        x, y = (one.values * one.inside[..., None] for one in (a, b))
        known_x, known_y = (one.inside.astype(one.values.dtype) for one in (a, b))
        square_x, square_y, n_features = (x**2).sum(2), (y**2).sum(2), 1
    else:  # a mask of entries instead of one of steps
        x, y = (np.where(one.measured, one.values, 0.0) for one in (a, b))
        known_x, known_y = (one.measured.reshape(len(one), -1).astype(one.values.dtype) for one in (a, b))
        square_x, square_y, n_features = (x**2).reshape(len(x), -1), (y**2).reshape(len(y), -1), a.n_features
    whole = square_x @ known_y.T + known_x @ square_y.T
    squares = whole - 2 * (x.reshape(len(x), -1) @ y.reshape(len(y), -1).T)
    return squares, whole, np.asarray(known_x @ known_y.T / n_features)


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
