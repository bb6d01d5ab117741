"""Validation of user input: series, lengths, labels, targets, names.

Public methods call these functions once; internal code does not check again.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, get_args

import numpy as np

from sparcets.core.errors import (
    ConfigError,
    DataError,
    FeatureMismatchError,
    LabelError,
    NonFiniteError,
    ShapeError,
    quoted,
)
from sparcets.core.registry import unknown_name
from sparcets.core.series import LARGEST, BoolArray, FloatArray, IntArray, Series, is_integer

NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)
_BLOCK = 2**22  # entries checked for finiteness at a time


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

    float32 and float64 keep their type, so that a wrapped model receives exactly what the user passed.

    Parameters
    ----------
    X
        Anything NumPy can convert to numbers. Masked entries are missing, and so are None and NA of pandas.
    name
        Name of the array in error messages.
    owner, n_features, n_steps
        Fitted object and its numbers of features and steps, if they must match.
    first
        Index of the first series, for error messages, if ``X`` is a part of a larger array.
    gaps
        Whether entries may be missing (NaN); a series that is missing altogether is an error.
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


class Sizes(Protocol):
    """What series must be like: those of a fitted classifier or explainer; None where anything is taken."""

    @property
    def n_features(self) -> int | None: ...  # noqa: D102
    @property
    def n_steps(self) -> int | None: ...  # noqa: D102
    @property
    def unequal(self) -> bool: ...  # noqa: D102


def check_padded(
    X: Any,
    lengths: Any,
    *,
    owner: str = "this object",
    like: Sizes | None = None,
    first: int = 0,
    gaps: bool = False,
    longer: bool = False,
) -> tuple[FloatArray, IntArray | None]:
    """Return series as :func:`check_series` does, and their true lengths, or None without padding.

    Padding becomes zero, whatever it holds. With lengths, there may be more or less of it than in the fit.

    Parameters
    ----------
    X
        Series (batch, time, features), or a list of series (time, features) of unequal length.
    lengths
        True lengths of padded series, or None.
    owner, like
        Fitted object and its sizes, if they must match. If it was fitted on series of unequal length, lengths are
        needed.
    first, gaps
        As in :func:`check_series`.
    longer
        Whether series may be longer than those of the fit, if these are of unequal length; then there are more steps.
    """
    n_features, n_steps = (None, None) if like is None else (like.n_features, like.n_steps)
    unequal = like is not None and like.unequal
    if isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 1:
        X = list(X)  # of arrays (time, features)
    if lengths is None:
        if listed := _read_list(X, unequal=unequal):
            X, lengths = listed
        elif unequal:
            raise DataError(
                f"{owner} was fitted on series of unequal length, so it needs to know how long these are: pass "
                "lengths=, one whole number per series, or a list of arrays (time, features)."
            )
    if lengths is not None:
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
    X = check_series(X, owner=owner, n_features=n_features, n_steps=n_steps, first=first, gaps=gaps)
    return X, lengths


def _read_list(X: Any, *, unequal: bool) -> tuple[FloatArray, IntArray] | None:
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
        return None  # an array of them is enough
    if len(features) > 1:
        hint = " They look like (features, time): pass [x.T for x in X]." if len(steps) == 1 else ""
        found = ", ".join(str(n) for n in sorted(features)[:4])
        raise ShapeError(f"the series of X must have the same features, but they have {found}.{hint}")
    stacked = Series.stack(series)
    return stacked.values, stacked.steps


def as_array(values: Any, name: str, ragged_hint: str, *, gaps: bool = False) -> np.ndarray[Any, Any]:
    """Return values as an array; raise where they cannot be one, with a hint.

    Masked entries become NaN where ``gaps`` are allowed, and are an error elsewhere: as an array of its own, the data
    beneath a mask would count as measured.
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
    """Return whether an array, or one of a nested list, has masked entries."""
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
        with np.errstate(over="ignore"):  # of a longer type; infinity is told by its place
            return array.astype(np.float32 if array.dtype.itemsize <= 4 else np.float64)
    if array.dtype.kind in "iub":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        hint = f" Convert text by {name}.astype(float)." if array.dtype.kind in "UST" else ""
        raise DataError(f"{name} must hold real numbers, got dtype {array.dtype}.{hint}")
    wrong: list[Any] = []

    def number(value: Any) -> float:
        try:
            return _number(value)
        except (TypeError, ValueError, OverflowError):
            wrong.append(value)
            raise

    try:
        return np.asarray(np.frompyfunc(number, 1, 1)(array), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        place = next(place for place, value in np.ndenumerate(array) if value is wrong[0])
        raise DataError(f"{name} must hold real numbers, got {quoted(wrong[0])} at {list(place)}.") from error


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
    # A dot product is small only if all entries are, and is multi-threaded; check single entries only if it is not.
    with np.errstate(all="ignore"):
        if all(float(np.dot(flat, flat)) <= LARGEST**2 for flat in (part.reshape(-1) for part in parts)):
            return array
    return _check_entries(array, name, first, gaps=gaps)


def check_lengths(lengths: Any, X: FloatArray) -> IntArray | None:
    """Return the true length of each padded series, or None without padding."""
    if lengths is None:
        return None
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


def check_labels(
    y: Any, *, n_samples: int, class_names: Sequence[str] | None = None
) -> tuple[IntArray, tuple[str, ...]]:
    """Return labels as 0..K-1 and the names of the K classes.

    At least two classes and, without ``class_names``, every class must have a sample.

    Parameters
    ----------
    y
        One label per series: class indices 0..K-1, or names (strings).
    n_samples
        Expected number of labels.
    class_names
        Names of the classes, if already known; some of these may have no sample.
    """
    array = as_array(y, "y", "Pass one label per series.")
    known = check_names(class_names, what="class_names")
    if array.shape != (n_samples,):
        hint = " It looks one-hot: pass y.argmax(1)." if array.ndim == 2 and array.shape[0] == n_samples else ""
        raise LabelError(f"y must be {n_samples} labels, one per series, got shape {array.shape}.{hint}")
    huge = array.dtype.kind == "O" and all(is_integer(v) for v in array)  # integers beyond int64 have dtype object
    named = array.dtype.kind in "USOT" and not huge
    labels, names = _named_labels(array, known) if named else _numbered_labels(array, known)
    present = np.unique(labels)
    missing = sorted(set(range(len(names))) - set(present.tolist()))
    if len(present) < 2:
        raise LabelError(f"y holds one class only ({names[int(present[0])]!r}); at least two are needed.")
    if missing and known is None:
        raise LabelError(
            f"class {missing[0]} ({names[missing[0]]!r}) has no sample in y"
            f"{f', nor have {len(missing) - 1} more' if len(missing) > 1 else ''}. Labels are class indices "
            f"0..{len(names) - 1}, each with at least one series; pass other labels as strings, or all class_names."
        )
    return labels, names


def _named_labels(array: np.ndarray[Any, Any], class_names: tuple[str, ...] | None) -> tuple[IntArray, tuple[str, ...]]:
    not_text = [v for v in array.ravel() if not isinstance(v, str)]
    if array.dtype.kind == "S":
        raise LabelError("y holds bytes; decode the labels first: y.astype(str).")
    if not_text:
        raise LabelError(
            f"y mixes labels of several types, among them {quoted(not_text[0])}. Pass all as strings, or all as "
            "integers."
        )
    text: list[str] = array.tolist()
    names = class_names or check_names(sorted(set(text)), what="y") or ()
    index = {n: i for i, n in enumerate(names)}
    for label in text:
        if label not in index:
            raise unknown_name("class", label, names)
    return np.array([index[v] for v in text], dtype=np.int64), names


def _numbered_labels(
    array: np.ndarray[Any, Any], class_names: tuple[str, ...] | None
) -> tuple[IntArray, tuple[str, ...]]:
    if array.dtype.kind == "f":
        bad = array[~np.isfinite(array) | (array != np.round(array))]
        if len(bad):
            raise LabelError(
                f"y must hold whole numbers or strings, got {bad[0]}. Numbers that a model predicts are "
                "labels with task='regression'."
            )
    elif array.dtype.kind not in "iubO":
        raise LabelError(f"y must hold class indices or strings, got dtype {array.dtype}.")
    largest, smallest = int(array.max()), int(array.min())  # Python integers are unbounded
    # Compared before casting: a label beyond int64 would otherwise wrap around to another class.
    limit = len(class_names) if class_names is not None else len(array)
    if smallest < 0:
        raise LabelError(f"y holds the label {smallest}; class indices start at 0. Pass other labels as strings.")
    if largest >= limit:
        known = (
            f"there are {limit} classes ({', '.join(class_names[:8])})"
            if class_names is not None
            else f"{len(array)} series cannot fill classes 0..{largest}, so one has no sample"
        )
        raise LabelError(
            f"y holds the label {largest}, but {known}. Class indices are 0..K-1; pass other labels as strings."
        )
    return array.astype(np.int64), class_names or tuple(str(k) for k in range(largest + 1))


def check_names(names: Any, *, what: str, n: int | None = None) -> tuple[str, ...] | None:
    """Return distinct names (``n`` of them, if given) as strings, or None; each is one line of text."""
    if names is None:
        return None
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise DataError(f"{what} must be a list of names, got {quoted(names)}.")
    given = list(names)
    result = tuple(str(v) for v in given)
    if n is not None and len(result) != n:
        raise ShapeError(f"{what} must be {n} names, got {len(result)}.")
    for value, name in zip(given, result, strict=True):
        problem = "is no name" if _is_nothing(value) else text_problem(name)
        if problem is not None:
            raise DataError(f"{what} holds {quoted(value)}, which {problem}.")
    if len(set(result)) < len(result):
        duplicate, count = min((name, count) for name, count in Counter(result).items() if count > 1)
        raise DataError(f"{what} must be distinct, but {quoted(duplicate)} appears {count} times.")
    return result


def text_problem(text: str, *, empty: bool = False) -> str | None:
    r"""Return what is wrong with a name or unit; None if it is one line of text that UTF-8 can write.

    Names are shown in sentences, tables and figures and written to files, where others would break a line or fail.

    Parameters
    ----------
    text
        The name.
    empty
        Whether it may be empty, as a unit.

    Examples
    --------
    >>> text_problem("left arm"), text_problem("left\narm")
    (None, 'has a line break or another control character')
    """
    if not empty and not text.strip():
        return "is blank"
    if text.isprintable():
        return None
    kinds = {unicodedata.category(character) for character in text}
    if "Cs" in kinds:
        return "has half of a surrogate pair, which no file can hold"
    return "has a line break or another control character" if kinds & {"Cc", "Zl", "Zp"} else None


def _is_nothing(value: Any) -> bool:
    is_nan = isinstance(value, (float, np.floating)) and bool(np.isnan(value))
    return value is None or value is getattr(sys.modules.get("pandas"), "NA", None) or is_nan


def check_units(units: Any, *, what: str, n: int, each: str) -> tuple[str, ...] | None:
    """Return ``n`` units from one for all or one each; None where unknown."""
    if units is None:
        return None
    if not isinstance(units, Iterable):
        raise DataError(f"{what} must be a text, or one per {each}, got {quoted(units)}.")
    result = (units,) * n if isinstance(units, str) else tuple("" if u is None else str(u) for u in units)
    if len(result) != n:
        raise ShapeError(f"{what} must be one for all or {n}, one per {each}, got {len(result)}.")
    for unit in result:
        if (problem := text_problem(unit, empty=True)) is not None:
            raise DataError(f"{what} holds {quoted(unit)}, which {problem}.")
    return result


def check_ids(values: Any, *, what: str, n: int | None = None, each: str = "series") -> np.ndarray[Any, Any] | None:
    """Return ids of series, queries or people as an array of numbers or text, or None; several may have the same.

    Parameters
    ----------
    values, what
        The ids, and their name in messages.
    n, each
        Their number, if it is known, and what each is of.
    """
    if values is None:
        return None
    array = as_array(values, what, f"Pass one per {each}.")
    if array.ndim != 1 or (n is not None and len(array) != n):
        number = "a list of names" if n is None else str(n)
        raise ShapeError(f"{what} must be {number}, one per {each}, got shape {array.shape}.")
    if array.dtype.kind in "iub":
        return array
    given = array.tolist()
    for row, value in enumerate(given):
        problem = "is no id" if _is_nothing(value) else text_problem(value) if isinstance(value, str) else None
        if problem is not None:
            raise DataError(f"{what} holds {quoted(value)} for {each} {row}, which {problem}.")
    if array.dtype.kind == "O":
        whole = all(is_integer(value) and -(2**63) <= value < 2**63 for value in given)
        return np.array(given, dtype=np.int64) if whole else np.array([str(value) for value in given])
    return array


def check_mutable(mutable: Any, *, feature_names: Sequence[str] | None, n_features: int) -> BoolArray | None:
    """Return one flag per feature from flags, or from the names or indices of the mutable features."""
    if mutable is None:
        return None
    if isinstance(mutable, str) or not isinstance(mutable, Iterable):
        raise DataError(f"mutable must be a list of flags, names or indices, got {quoted(mutable)}.")
    values = list(mutable)
    if values and all(isinstance(v, (bool, np.bool_)) for v in values):
        if len(values) != n_features:
            raise ShapeError(f"mutable must be {n_features} flags, one per feature, got {len(values)}.")
        result = np.array(values, dtype=bool)
    else:
        result = np.zeros(n_features, dtype=bool)
        for value in values:
            result[feature_index(value, feature_names, n_features)] = True
    if not result.any():
        raise DataError("mutable names no feature, so nothing could be changed. Pass at least one.")
    return result


def feature_index(feature: Any, feature_names: Sequence[str] | None, n_features: int) -> int:
    """Return the index of a feature given by index or name."""
    names = list(feature_names) if feature_names is not None else default_feature_names(n_features)
    if isinstance(feature, str):
        if feature in names:
            return names.index(feature)
        raise unknown_name("feature", feature, names)
    if is_integer(feature) and 0 <= feature < n_features:
        return int(feature)
    raise unknown_name("feature", int(feature) if is_integer(feature) else feature, names)


def default_feature_names(n_features: int) -> list[str]:
    """Return f0, f1, …"""
    return [f"f{i}" for i in range(n_features)]


Task = Literal["classification", "regression"]


def check_task(task: Any) -> None:
    """Raise unless it is the name of a task."""
    if not isinstance(task, str) or task not in get_args(Task):
        raise ConfigError(f"task must be 'classification' or 'regression', got {quoted(task)}.")


def check_numbers(y: Any, *, n_samples: int) -> FloatArray:
    """Return the labels of a regressor as float64 (batch, outputs).

    Parameters
    ----------
    y
        One number per series (batch,), or several (batch, outputs).
    n_samples
        Expected number of series.
    """
    array = as_array(y, "y", "Pass one number per series.")
    if array.ndim not in (1, 2) or len(array) != n_samples or array.size == 0:
        raise LabelError(
            f"y must be {n_samples} numbers, one per series, or (batch, outputs) for several, got shape {array.shape}."
        )
    if array.dtype.kind not in "fiu":
        raise LabelError(f"y must hold numbers for a regressor, got dtype {array.dtype}.")
    numbers = array.astype(np.float64).reshape(n_samples, -1)
    if not np.isfinite(numbers).all():
        raise LabelError("y holds NaN or infinity. Leave those series out.")
    if np.abs(numbers).max() > LARGEST:
        raise LabelError(f"y holds {np.abs(numbers).max():.3g}, beyond float32's {LARGEST:.2g}. Use larger units.")
    return numbers


def _check_entries(array: FloatArray, name: str, first: int, *, gaps: bool) -> FloatArray:
    """Return series whose entries are within the range of float32, or gaps if these are allowed; raise otherwise."""
    wrong = np.abs(array) > LARGEST
    wrong = wrong if gaps else wrong | np.isnan(array)
    positions = np.argwhere(wrong)
    if not len(positions):  # all entries are small enough, only their squares are not; or there are gaps
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
    """Return series with gaps, all marked by the same bits, so that equal series have equal digests."""
    missing = np.isnan(array)
    rows = np.flatnonzero(missing.all((1, 2)))
    if len(rows):
        more = f", and in {len(rows) - 1} more" if len(rows) > 1 else ""
        raise NonFiniteError(
            f"{name} holds nothing but NaN in series {first + int(rows[0])}{more}: nothing was measured there. Drop it."
        )
    return np.where(missing, np.array(np.nan, dtype=array.dtype), array)
