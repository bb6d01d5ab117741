"""Series, always ``(batch, time, features)``, of one or several lengths, with or without missing values; their scale.

Also the checks of series that users pass, which public methods call once, and of numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparcets.core.config import Record
from sparcets.core.errors import DataError, FeatureMismatchError, NonFiniteError, ShapeError, quoted

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
StrArray: TypeAlias = NDArray[np.str_]

NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)
_BLOCK = 2**22  # entries checked for finiteness at a time
LARGEST = float(np.finfo(np.float32).max)  # value of any series, since most networks compute in float32


@dataclass(frozen=True, eq=False)
class Series:
    """Checked series in one array: padded to the longest of them, and NaN where a value is missing.

    Examples
    --------
    >>> some = Series(np.array([[[1.0], [0.0]], [[2.0], [3.0]]]), np.array([1, 2]))
    >>> len(some), some[1:].values.ravel().tolist(), some.measured[..., 0].tolist()
    (2, [2.0, 3.0], [[True, False], [True, True]])
    >>> [(rows.tolist(), part.values.shape) for rows, part in some.by_length()]
    [([0], (1, 1, 1)), ([1], (1, 2, 1))]
    """

    values: FloatArray  # (batch, time, features); zero beyond the length of each series, NaN where nothing was measured
    # Length of each series (batch,); None if all are as long as the array, which only models need to distinguish: other
    # code uses inside, measured or by_length.
    lengths: IntArray | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | IntArray | BoolArray) -> Series:
        """Select series by slice, mask or indices."""
        return Series(self.values[rows], self.steps[rows] if self.unequal else None)

    @cached_property
    def n_steps(self) -> int:
        """Number of steps of the array, at least the length of the longest series."""
        return int(self.values.shape[1])

    @cached_property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.values.shape[2])

    @property
    def unequal(self) -> bool:
        """Whether the series may have different lengths."""
        return self.lengths is not None

    @cached_property
    def steps(self) -> IntArray:
        """Length of each series (batch,)."""
        return np.full(len(self), self.n_steps, dtype=np.int64) if self.lengths is None else self.lengths

    @cached_property
    def gaps(self) -> BoolArray | None:
        """Which entries are missing (batch, time, features); None without missing entries."""
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
        """Return the series with padding set to zero, in an array of ``n_steps`` steps.

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

    def standardised(self, scaler: Scaler) -> Series:
        """Return the series in standardised units, still zero in padding."""
        return self.with_values(scaler.transform(self.values)).blank()

    @property
    def unmeasured(self) -> BoolArray:
        """Which features of each series have no value at all (batch, features)."""
        empty = np.isnan(self.values[:, 0])
        suspects = np.flatnonzero(empty.any(1))  # few, where most series start with a value
        empty[suspects] = ~self[suspects].measured.any(1)
        return empty

    def filled(self, rule: str = "forward", *, otherwise: float = np.nan) -> Series:
        """Return the series without gaps; ``otherwise`` fills features without any value.

        The rule ``"forward"`` takes the previous value, or the next value for the first entries; ``"mean"`` takes the
        mean of the feature in the same series.

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

    def resampled(self, n_steps: int | IntArray) -> FloatArray:
        """Return each series without padding, interpolated linearly to other numbers of steps.

        So a series of another length can be compared with a query step by step, from beginning to end. After the
        ``n_steps`` (one number, or one per series), the last step is repeated.

        >>> Series(np.array([[[0.0], [2.0], [9.0]]]), np.array([2])).resampled(3).ravel()
        array([0., 1., 2.])
        """
        X, old = self.values, self.steps[:, None]
        new = np.broadcast_to(np.asarray(n_steps), len(X))[:, None]  # (batch, 1)
        steps = np.arange(int(new.max()) if len(X) else 0)
        # Equal lengths give exact whole numbers, and so the series bit for bit.
        where = np.minimum(steps * (old - 1) / np.maximum(new - 1, 1), old - 1)  # (batch, new time)
        before = where.astype(np.int64)
        after, rows = np.minimum(before + 1, old - 1), np.arange(len(X))[:, None]
        share = (where - before)[..., None].astype(X.dtype)
        low = X[rows, before]
        return np.asarray(low + share * (X[rows, after] - low))

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


@dataclass(frozen=True, eq=False)
class Scaler(Record):
    """Centre and scale of each feature.

    Attributes
    ----------
    center, scale
        Mean and standard deviation per feature over all training series and steps, shape (features,).
        A constant feature has scale 1.

    Examples
    --------
    >>> scaler = Scaler.fit(np.array([[[1.0], [3.0]]]))
    >>> scaler.transform(np.array([[[3.0]]])).item(), scaler.inverse(np.array([[[1.0]]])).item()
    (1.0, 3.0)
    """

    center: FloatArray
    scale: FloatArray

    @classmethod
    def fit(cls, X: FloatArray, lengths: IntArray | None = None) -> Scaler:
        """Fit on training series of shape (batch, time, features), ignoring padding and missing entries."""
        rows = Series(X, lengths).flat
        center, functions = rows.mean(0, dtype=np.float64), (np.std, np.min, np.max)
        if np.isnan(center).any():  # entries are missing
            empty = np.flatnonzero(np.isnan(rows).all(0))
            if len(empty):
                more = f", nor of {len(empty) - 1} more" if len(empty) > 1 else ""
                raise DataError(f"no training series has a value of feature {int(empty[0])}{more}. Leave it out.")
            center, functions = np.nanmean(rows, axis=0, dtype=np.float64), (np.nanstd, np.nanmin, np.nanmax)
        spread, least, most = functions
        scale, low, high = spread(rows, axis=0, dtype=np.float64), least(rows, axis=0), most(rows, axis=0)
        # A standard deviation within rounding error counts as constant: dividing by it would amplify that error.
        constant = (low == high) | (scale <= np.finfo(_float_type(X)).eps * np.abs(center))
        return cls(center=center, scale=np.where(constant, 1.0, scale))

    def exact_from(self, first: int) -> Scaler:
        """Return a scaler with powers of two as scales from a feature on, and multiples of them as centres.

        So ordinary values survive :meth:`transform` and back bit for bit, and a model gets the user's values.
        """
        center, scale = self.center.copy(), self.scale.copy()
        scale[first:] = 2.0 ** np.round(np.log2(scale[first:]))
        center[first:] = np.round(center[first:] / scale[first:]) * scale[first:]
        return Scaler(center, scale)

    def transform(self, X: FloatArray) -> FloatArray:
        """Return standardised series, of the same dtype (integers become floats)."""
        return ((X - self.center) / self.scale).astype(_float_type(X), copy=False)

    def inverse(self, X: FloatArray) -> FloatArray:
        """Return series in their original units."""
        return (X * self.scale + self.center).astype(_float_type(X), copy=False)

    def add_delta(self, X: FloatArray, delta: FloatArray) -> FloatArray:
        """Add standardised residuals to series in original units; entries with zero delta stay bit-identical."""
        return np.where(delta == 0, X, X + delta * self.scale.astype(X.dtype))


def _float_type(X: FloatArray) -> np.dtype[Any]:
    return np.result_type(X.dtype, np.float32)


def without_gaps(query: FloatArray, counterfactual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both series (answers, time, features) with the same values where the query is missing."""
    gaps = missing_entries(query)
    if gaps is None:
        return query, counterfactual
    filled = Series(query).filled(otherwise=0.0).values
    return filled, np.where(gaps, filled, counterfactual)


def compare_pairs(a: Series, b: Series) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return differences of all pairs of series over the entries that both have, as arrays (len(a), len(b)).

    One matrix product replaces an array of differences: Σ (a - b)² = Σ a² + Σ b² - 2 Σ ab, where missing entries and
    padding are 0 in the products and masked in the squares. The arrays are the sum of the squared differences, which
    rounding may make negative, Σ a² + Σ b², and the number of shared steps; with missing values, the number of shared
    entries divided by the number of features.
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


def bend_over(X: FloatArray, span: int) -> FloatArray:
    """Return the bends of series (batch, time, features): the differences of consecutive moves over ``span`` steps.

    >>> bend_over(np.array([[[1.0], [2.0], [4.0]]]), 1).tolist()
    [[[1.0]]]
    """
    X = X.astype(np.float64)
    return np.abs(X[:, 2 * span :] - 2 * X[:, span:-span] + X[:, : -2 * span]) if X.shape[1] > 2 * span else X[:, :0]


def move_over(X: FloatArray, span: int) -> FloatArray:
    """Return how far series (batch, time, features) move over ``span`` steps (batch, time − span, features).

    >>> move_over(np.array([[[1.0], [2.0], [4.0]]]), 2).tolist()
    [[[3.0]]]
    """
    return np.abs(X[:, span:].astype(np.float64) - X[:, :-span])  # float32 could overflow


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy; bool is excluded."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a number of Python or NumPy other than NaN; bool is excluded.

    Integers too large for a float are rejected.

    >>> [is_number(value) for value in (1, np.float32(0.5), np.inf, np.nan, True, "1", 10**400)]
    [True, True, True, False, False, False, False]
    """
    if is_integer(value):
        return bool(abs(int(value)) <= sys.float_info.max)
    return isinstance(value, (float, np.floating)) and not np.isnan(value)


def missing_entries(X: FloatArray) -> BoolArray | None:
    """Return which entries of series are missing (batch, time, features); None without missing entries.

    >>> missing_entries(np.ones((1, 2, 1))), missing_entries(np.array([[[1.0], [np.nan]]])).ravel().tolist()
    (None, [False, True])
    """
    with np.errstate(all="ignore"):
        if not np.isnan(X.sum()):  # a sum is fast, and NaN if any entry is
            return None
    gaps = np.isnan(X)
    return gaps if gaps.any() else None


def differs(made: FloatArray, query: FloatArray) -> BoolArray:
    """Return which entries differ from the query's; missing entries do not."""
    return np.asarray((made != query) & ~np.isnan(query))


def check_series(
    X: Any,
    *,
    name: str = "X",
    owner: str = "this object",
    n_features: int | None = None,
    n_steps: int | None = None,
    first: int = 0,
    gaps: bool = False,
) -> FloatArray:
    """Return ``X`` as floats (batch, time, features) within the range of float32; NaN where ``gaps`` are allowed.

    float32 and float64 keep their type, so that a wrapped model receives exactly what the user passed. ``X`` is
    anything NumPy can convert to numbers; masked entries, None and pandas' NA are missing. A series without any value
    is an error. The numbers of features and steps are those of a fitted ``owner``, if they must match; ``first`` is the
    index of the first series for messages, if ``X`` is a part of a larger array.
    """
    array = as_array(X, name, "Pass a list of arrays (time, features), or pad the series and pass lengths=.", gaps=True)
    if array.ndim != 3:
        two = " One feature? Pass X[..., None]. A single series? Pass X[None]."
        hint = two if array.ndim == 2 else ""
        raise ShapeError(f"{name} must be (batch, time, features), got shape {array.shape}.{hint}")
    if 0 in array.shape:
        raise ShapeError(
            f"{name} is empty: shape {array.shape}. Pass at least one series with one step and one feature."
        )
    array = _as_float(array, name)
    if n_features is not None and array.shape[2] != n_features:
        exchanged = n_steps is not None and array.shape[1:] == (n_features, n_steps)
        hint = f" It seems to be (batch, features, time): pass {name}.swapaxes(1, 2)." if exchanged else ""
        raise FeatureMismatchError(f"{owner} was fitted on {n_features} features, {name} has {array.shape[2]}.{hint}")
    if n_steps is not None and array.shape[1] != n_steps:
        raise FeatureMismatchError(
            f"{owner} was fitted on series of {n_steps} steps, {name} has {array.shape[1]}. "
            "Cut, pad (with lengths=) or resample the series to that length."
        )
    return _check_finite(array, name, first, gaps=gaps)


def check_padded(
    X: Any,
    lengths: Any,
    *,
    owner: str = "this object",
    like: Any = None,
    first: int = 0,
    gaps: bool = False,
    longer: bool = False,
) -> tuple[FloatArray, IntArray | None]:
    """Return series as :func:`check_series` does, and their true lengths, or None without padding.

    ``X`` may be a list of series (time, features) of unequal length. Padding is set to zero. With lengths, there
    may be more or less of it than in the fit. The sizes must be ``like`` those of a fitted ``owner``; if it was fitted
    on series of unequal length, lengths are needed, and series may be ``longer`` than those of the fit.
    """
    n_features, n_steps, unequal = (getattr(like, name, None) for name in ("n_features", "n_steps", "unequal"))
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)  # of arrays (time, features)
    padded = _read_list(X, unequal=unequal) if lengths is None else (X, lengths)
    if padded:
        X, lengths = padded
        X = as_array(X, "X", "Padded series have one length; pass a list of unequal ones without lengths=.", gaps=True)
        if X.ndim == 3 and 0 not in X.shape:
            X, lengths = _as_float(X, "X"), check_lengths(lengths, X)
            most = X.shape[1] if n_steps is None else n_steps
            if lengths.max() > most:
                if not (longer and unequal):
                    raise FeatureMismatchError(
                        f"{owner} was fitted on series of at most {most} steps, series {first + int(lengths.argmax())} "
                        f"has {int(lengths.max())}. Cut or resample it; longer ones are taken for a model that is told "
                        "their lengths (lengths= of sp.wrap) and was fitted on unequal ones, and not with out=."
                    )
                most = n_steps = int(lengths.max())
            X = Series(X, lengths).blank(most).values
    elif unequal:
        raise DataError(
            f"{owner} was fitted on series of unequal length, so it needs to know how long these are: pass "
            "lengths=, one whole number per series, or a list of arrays (time, features)."
        )
    X = check_series(X, owner=owner, n_features=n_features, n_steps=n_steps, first=first, gaps=gaps)
    return X, lengths


def _read_list(X: Any, *, unequal: bool | None) -> tuple[FloatArray, IntArray] | None:
    """Return a list of series (time, features) as padded ones and their lengths.

    None for anything else, and for equally long series unless ``unequal``, where lengths are expected.
    """
    if not isinstance(X, (list, tuple)):
        return None
    series = [as_array(one, f"X[{i}]", "Pass arrays (time, features).", gaps=True) for i, one in enumerate(X)]
    if {one.ndim for one in series} != {2}:
        return None
    series = [_as_float(one, f"X[{i}]") for i, one in enumerate(series)]
    steps, features = ({one.shape[axis] for one in series} for axis in (0, 1))
    if len(steps) == len(features) == 1 and not unequal:
        return None  # they form an array
    if len(features) > 1:
        hint = " They look like (features, time): pass [x.T for x in X]." if len(steps) == 1 else ""
        found = ", ".join(str(n) for n in sorted(features)[:4])
        raise ShapeError(f"the series of X must have the same features, but they have {found}.{hint}")
    stacked = Series.stack(series)
    return stacked.values, stacked.steps


def as_array(values: Any, name: str, ragged_hint: str, *, gaps: bool = False) -> np.ndarray[Any, Any]:
    """Return values as an array; raise where they cannot be one, with a hint.

    Masked entries become NaN where ``gaps`` are allowed, and are an error elsewhere: a plain array would expose the
    data beneath the mask.
    """
    try:
        return np.asarray(_without_masks(values, name, gaps=gaps) if _is_masked(values) else values)
    except DataError:
        raise
    except ValueError as error:
        raise ShapeError(f"{name} is a nested list with rows of unequal length. {ragged_hint}") from error
    except (TypeError, RuntimeError) as error:  # tensors that require gradients or are on a GPU
        raise DataError(f"{name} cannot be read as a NumPy array: {error}") from error


def _is_masked(values: Any) -> bool:
    """Return whether an array, or any array in a nested list, has masked entries."""
    if isinstance(values, (list, tuple)):
        return any(isinstance(v, (list, tuple, np.ma.MaskedArray)) and _is_masked(v) for v in values)
    return isinstance(values, np.ma.MaskedArray) and bool(np.any(values.mask))


def _without_masks(values: Any, name: str, *, gaps: bool) -> Any:
    if isinstance(values, (list, tuple)):
        return [_without_masks(v, f"{name}[{i}]", gaps=gaps) for i, v in enumerate(values)]
    if not _is_masked(values):
        return values
    if not gaps:
        place = ", ".join(str(i) for i in np.argwhere(np.broadcast_to(values.mask, values.shape))[0])
        raise DataError(f"{name} has masked entries{f', the first at [{place}]' if place else ''}. Leave them out.")
    kind = values.dtype.type if values.dtype.kind == "f" else np.float64 if values.dtype.kind in "iub" else object
    missing: Any = None if kind is object else np.nan
    return np.where(values.mask, missing, values.data).astype(kind)


def _as_float(array: np.ndarray[Any, Any], name: str) -> FloatArray:
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype.kind == "f":  # of another size or byte order
        with np.errstate(over="ignore"):  # from a longer type; infinity is reported with its position
            return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        hint = f" Convert text by {name}.astype(float)." if array.dtype.kind in "UST" else ""
        raise DataError(f"{name} must hold real numbers, got dtype {array.dtype}.{hint}")
    numbers = np.empty(array.shape)
    for place, value in np.ndenumerate(array):
        try:
            numbers[place] = _number(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{name} must hold real numbers, got {quoted(value)} at {list(place)}.") from error
    return numbers


def _number(value: Any) -> float:
    """Return an object as a number; NaN for None and NA of pandas."""
    if value is None or value is getattr(sys.modules.get("pandas"), "NA", None):
        return np.nan
    if isinstance(value, NO_NUMBERS):  # float() parses text, and drops the unit of dates and the imaginary part
        raise TypeError
    return float(value)


def _check_finite(array: FloatArray, name: str, first: int, *, gaps: bool) -> FloatArray:
    block = max(1, _BLOCK // array[0].size)  # a mask over all entries would need a quarter of the array's memory
    parts = (array[start : start + block] for start in range(0, len(array), block))
    # A dot product is small only if all entries are, and is multi-threaded; check single entries only if it is large.
    with np.errstate(all="ignore"):
        if all(float(np.dot(flat, flat)) <= LARGEST**2 for flat in (part.reshape(-1) for part in parts)):
            return array
    return _check_entries(array, name, first, gaps=gaps)


def check_lengths(lengths: Any, X: FloatArray) -> IntArray:
    """Return the true length of each padded series."""
    array = as_array(lengths, "lengths", "Pass one whole number per series.")
    n_samples, n_steps = X.shape[:2]
    if array.shape != (n_samples,) or array.dtype.kind not in "iu":
        raise ShapeError(
            f"lengths must be {n_samples} whole numbers, one per series, got shape {array.shape}, dtype {array.dtype}."
        )
    bad = np.flatnonzero((array < 1) | (array > n_steps))
    if len(bad):
        raise ShapeError(
            f"lengths must lie in 1..{n_steps}, got {int(array[bad[0]])} for series {int(bad[0])}"
            f"{f' and {len(bad) - 1} more' if len(bad) > 1 else ''}."
        )
    return array.astype(np.int64)


def _check_entries(array: FloatArray, name: str, first: int, *, gaps: bool) -> FloatArray:
    """Return series whose entries are within the range of float32, or gaps if these are allowed; raise otherwise."""
    wrong = (np.abs(array) > LARGEST) | (np.isnan(array) & (not gaps))
    positions = np.argwhere(wrong)
    if not len(positions):  # all entries are small enough, but not their squares; or there are gaps
        return _with_gaps(array, name, first) if gaps else array
    where = tuple(int(i) for i in positions[0])
    value, series = array[where], first + where[0]
    if np.isfinite(value):
        raise DataError(
            f"{name} holds {value:.3g} at {[series, *where[1:]]}, beyond float32's {LARGEST:.2g}. Use larger units."
        )
    what = "NaN" if np.isnan(value) else "infinity"
    more = f"; {len(positions)} such values in all" if len(positions) > 1 else ""
    remedy = "Fill or drop them first"
    if what == "NaN":
        remedy = (
            "Where nothing was measured, say what the model gets instead, sp.wrap(model, missing='forward') or "
            "sp.ClassifierConfig(missing='forward'); else fill or drop them first"
        )
    raise NonFiniteError(
        f"{name} holds {what} at [{series}, {where[1]}, {where[2]}] (series {series}, step {where[1]}, "
        f"feature {where[2]}){more}. {remedy}; pad unequal series with zeros and pass lengths=."
    )


def _with_gaps(array: FloatArray, name: str, first: int) -> FloatArray:
    """Return series whose gaps all have the same bits, so that equal series have equal digests."""
    missing = np.isnan(array)
    rows = np.flatnonzero(missing.all((1, 2)))
    if len(rows):
        more = f", and in {len(rows) - 1} more" if len(rows) > 1 else ""
        raise NonFiniteError(
            f"{name} holds nothing but NaN in series {first + int(rows[0])}{more}: nothing was measured there. Drop it."
        )
    return np.where(missing, np.array(np.nan, dtype=array.dtype), array)
