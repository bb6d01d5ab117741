"""Series of one or several lengths, in which values may be missing: one array with all that is known of its entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, length_mask, missing_entries

if TYPE_CHECKING:
    from sparcets.core.info import Scaler


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
        return length_mask(self.lengths, len(self), self.n_steps)

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
        for n_steps, rows in rows_by_length(self.steps):
            yield rows, self[rows].cut(n_steps)

    def batches(self, size: int) -> Iterator[Series]:
        """Yield the series in parts of at most ``size``."""
        return (self[start : start + size] for start in range(0, len(self), size))

    def padded(self, n_steps: int) -> Series:
        """Return the series in an array of ``n_steps`` steps, with zeros after each."""
        return Series(blank(self.values, self.lengths, n_steps), self.steps)

    def resampled(self, n_steps: int | IntArray) -> FloatArray:
        """Return the values of each series at other numbers of steps; see :func:`resample`."""
        return resample(self.values, self.lengths, n_steps)

    def standardised(self, scaler: Scaler) -> Series:
        """Return the series in standardised units, still zero in padding."""
        return Series(blank(scaler.transform(self.values), self.lengths), self.lengths)

    def filled(self, rule: str = "forward", *, otherwise: float = np.nan) -> Series:
        """Return the series without gaps; see :func:`fill_gaps`."""
        return self.with_values(fill_gaps(self.values, rule, self.lengths, otherwise=otherwise))

    @classmethod
    def join(cls, parts: Sequence[Series]) -> Series:
        """Concatenate, padded to the longest."""
        n_steps = max(part.n_steps for part in parts)
        if all(part.n_steps == n_steps and not part.unequal for part in parts):
            return cls(np.concatenate([part.values for part in parts]))
        whole = [part.padded(n_steps) for part in parts]
        return cls(np.concatenate([part.values for part in whole]), np.concatenate([part.steps for part in whole]))


def pad(series: Sequence[FloatArray], n_steps: int) -> FloatArray:
    """Return series (time, features) of any lengths as one array (batch, n_steps, features), with zeros after each.

    >>> pad([np.ones((1, 1)), np.ones((2, 1))], 3)[..., 0]
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    dtype = np.result_type(*{one.dtype for one in series})
    padded = np.zeros((len(series), n_steps, series[0].shape[1]), dtype=dtype)
    for row, one in zip(padded, series, strict=True):
        row[: len(one)] = one
    return padded


def blank(X: FloatArray, lengths: IntArray | None, n_steps: int | None = None) -> FloatArray:
    """Return series with zeros beyond their lengths, whatever is there, and with ``n_steps`` steps if that is given.

    >>> blank(np.array([[[1.0], [np.nan]]]), np.array([1]), 3).ravel()
    array([1., 0., 0.])
    """
    n_steps = X.shape[1] if n_steps is None else n_steps
    if n_steps > X.shape[1]:
        X = np.concatenate([X, np.zeros((len(X), n_steps - X.shape[1], X.shape[2]), dtype=X.dtype)], axis=1)
    X = X[:, :n_steps]
    inside = length_mask(lengths, len(X), n_steps)
    # A copy only if it is needed.
    return X if (X[~inside] == 0).all() else np.where(inside[..., None], X, X.dtype.type(0))


def rows_by_length(lengths: IntArray) -> list[tuple[int, IntArray]]:
    """Return every length that occurs, in rising order, with its rows.

    >>> [(n, rows.tolist()) for n, rows in rows_by_length(np.array([5, 3, 5]))]
    [(3, [1]), (5, [0, 2])]
    """
    return [(int(n), np.flatnonzero(lengths == n)) for n in np.unique(lengths)]


def resample(X: FloatArray, lengths: IntArray | None, n_steps: int | IntArray) -> FloatArray:
    """Return padded series of other lengths: each one's own part, interpolated linearly to ``n_steps`` steps.

    So a series of another length can stand beside a query step by step, from its beginning to its end. To cut it would
    lose its end, and could not fill a longer query.

    Parameters
    ----------
    X, lengths
        Series (batch, time, features), and their true lengths, or None without padding.
    n_steps
        New length: one for all, or one each (batch,).

    Returns
    -------
    series
        (batch, largest of n_steps, features); beyond a series' own ``n_steps`` its last step is repeated.

    Examples
    --------
    >>> resample(np.array([[[0.0], [2.0], [9.0]]]), np.array([2]), 3).ravel()
    array([0., 1., 2.])
    """
    new = np.broadcast_to(np.asarray(n_steps), len(X))[:, None]  # (batch, 1)
    old = Series(X, lengths).steps[:, None]
    steps = np.arange(int(new.max()) if len(X) else 0)
    # Equal lengths give whole numbers exactly, and with them the series' own bits.
    where = np.minimum(steps * (old - 1) / np.maximum(new - 1, 1), old - 1)  # (batch, new time)
    before = where.astype(np.int64)
    after, rows = np.minimum(before + 1, old - 1), np.arange(len(X))[:, None]
    share = (where - before)[..., None].astype(X.dtype)
    low = X[rows, before]
    resampled: FloatArray = low + share * (X[rows, after] - low)
    return resampled


def fill_gaps(
    X: FloatArray, rule: str = "forward", lengths: IntArray | None = None, *, otherwise: float = np.nan
) -> FloatArray:
    """Return series without gaps.

    Parameters
    ----------
    X
        Series (batch, time, features).
    rule
        ``"forward"``: the last value before; for the first entries, the next one. ``"mean"``: the mean of the feature
        in the same series.
    lengths
        True lengths of padded series; padding is no value.
    otherwise
        Value of a feature that the series has no value of.

    Examples
    --------
    >>> X = np.array([[[np.nan], [1.0], [np.nan], [3.0]]])
    >>> fill_gaps(X).ravel().tolist(), fill_gaps(X, "mean").ravel().tolist()
    ([1.0, 1.0, 1.0, 3.0], [2.0, 1.0, 2.0, 3.0])
    """
    gaps = missing_entries(X)
    if gaps is None:
        return X
    known = ~gaps & length_mask(lengths, *X.shape[:2])[..., None]
    if rule == "mean":
        total = np.where(known, X, 0.0).sum(1, keepdims=True, dtype=np.float64)
        value = total / np.maximum(known.sum(1, keepdims=True), 1)  # (batch, 1, features)
    else:
        last = np.maximum.accumulate(np.where(known, np.arange(X.shape[1])[:, None], -1), axis=1)
        value = np.take_along_axis(X, np.where(last < 0, known.argmax(1)[:, None], last), axis=1)
    value = np.where(known.any(1, keepdims=True), value, otherwise)
    return np.where(gaps, value, X).astype(X.dtype, copy=False)


def without_gaps(query: FloatArray, counterfactual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both series (answers, time, features) with the same values where the query is missing."""
    gaps = missing_entries(query)
    if gaps is None:
        return query, counterfactual
    filled = fill_gaps(query, otherwise=0.0)
    return filled, np.where(gaps, filled, counterfactual)


def never_measured(X: FloatArray, lengths: IntArray | None = None) -> BoolArray:
    """Return of which features each series has no value (batch, features); padding is no value.

    >>> never_measured(np.array([[[1.0, np.nan], [2.0, np.nan]]])).tolist()
    [[False, True]]
    """
    empty = np.isnan(X[:, 0])
    suspects = np.flatnonzero(empty.any(1))  # few, where most series start with a value
    empty[suspects] = ~Series(X, lengths)[suspects].measured.any(1)
    return empty
