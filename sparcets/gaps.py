"""Missing values: NaN in a series marks an entry that nothing was measured for.

NaN travels with the series as data, so that it follows wherever rows are selected, repeated or reordered. Each model
fills the gaps where series come in, by its own rule; :mod:`sparcets.networks.filling` does the same for tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, length_mask, missing_entries
from sparcets.errors import ConfigError, NonFiniteError
from sparcets.registry import did_you_mean

RULES = ("refuse", "keep", "forward", "mean")
# A rule, or a function from series with NaN (batch, time, features) to series of the same shape.
Missing: TypeAlias = str | Callable[[Any], Any]


def check_missing(missing: Any) -> Missing:
    """Return what a model gets for missing values: one of ``RULES``, or a function.

    >>> check_missing("forward")
    'forward'
    """
    if isinstance(missing, str) and missing in RULES:
        return missing
    if callable(missing):
        function: Callable[[Any], Any] = missing
        return function
    hint = did_you_mean(missing, RULES) if isinstance(missing, str) else ""
    raise ConfigError(
        f"missing must be one of {', '.join(RULES)}, or a function that fills series, got {missing!r}.{hint}"
    )


def rule_name(missing: Missing) -> str:
    """Return a rule, or the name of a function.

    >>> rule_name("mean"), rule_name(np.nan_to_num)
    ('mean', 'nan_to_num')
    """
    return missing if isinstance(missing, str) else getattr(missing, "__name__", type(missing).__name__)


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
    known = ~gaps if lengths is None else ~gaps & length_mask(lengths, *X.shape[:2])[..., None]
    if rule == "mean":
        total = np.where(known, X, 0.0).sum(1, keepdims=True, dtype=np.float64)
        value = total / np.maximum(known.sum(1, keepdims=True), 1)  # (batch, 1, features)
    else:
        last = np.maximum.accumulate(np.where(known, np.arange(X.shape[1])[:, None], -1), axis=1)
        value = np.take_along_axis(X, np.where(last < 0, known.argmax(1)[:, None], last), axis=1)
    value = np.where(known.any(1, keepdims=True), value, otherwise)
    return np.where(gaps, value, X).astype(X.dtype, copy=False)


def never_measured(X: FloatArray, lengths: IntArray | None = None) -> BoolArray:
    """Return of which features each series has no value (batch, features); padding is no value.

    >>> never_measured(np.array([[[1.0, np.nan], [2.0, np.nan]]])).tolist()
    [[False, True]]
    """
    empty = np.isnan(X[:, 0])
    suspects = np.flatnonzero(empty.any(1))  # few, where most series start with a value
    inside = length_mask(None if lengths is None else lengths[suspects], len(suspects), X.shape[1])
    empty[suspects] = (np.isnan(X[suspects]) | ~inside[..., None]).all(1)
    return np.asarray(empty)


def check_non_finite(array: FloatArray, name: str, first: int, *, gaps: bool) -> FloatArray:
    """Return series that may hold numbers that are not finite; raise if these are not just gaps that are allowed.

    Parameters
    ----------
    array, name
        Series (batch, time, features), and their name in messages.
    first
        Index of the first series, for messages.
    gaps
        Whether entries may be missing.
    """
    wrong = np.isinf(array) if gaps else ~np.isfinite(array)
    positions = np.argwhere(wrong)
    if not len(positions):  # all entries are finite, only their squares overflow; or there are gaps
        return _with_gaps(array, name, first) if gaps else array
    where = tuple(int(i) for i in positions[0])
    value, series = array[where], first + where[0]
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
    """Return series with gaps, all marked by the same bits, so that equal series have equal digests."""
    missing = np.isnan(array)
    rows = np.flatnonzero(missing.all((1, 2)))
    if len(rows):
        more = f", and in {len(rows) - 1} more" if len(rows) > 1 else ""
        raise NonFiniteError(
            f"{name} holds nothing but NaN in series {first + int(rows[0])}{more}: nothing was measured there. Drop it."
        )
    return np.where(missing, np.array(np.nan, dtype=array.dtype), array)
