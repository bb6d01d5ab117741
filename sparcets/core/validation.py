"""Validation of user input besides series: labels, names, units, ids, features.

Public methods call these functions once; internal code does not check again.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from sparcets.core.errors import (
    ConfigError,
    DataError,
    LabelError,
    ShapeError,
    quoted,
)
from sparcets.core.registry import unknown_name
from sparcets.core.series import LARGEST, BoolArray, FloatArray, IntArray, as_array, is_integer

Task = Literal["classification", "regression"]


def check_labels(
    y: Any, *, n_samples: int, class_names: Sequence[str] | None = None
) -> tuple[IntArray, tuple[str, ...]]:
    """Return labels as 0..K-1 and the names of the K classes.

    There is one label per series: class indices 0..K-1, or names (strings). At least two classes and, unless all
    ``class_names`` are known, every class must have a sample.
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
    r"""Return what is wrong with a name or unit; None if it is one line of text that UTF-8 can encode.

    Names appear in sentences, tables, figures and files, where other text would break a line or fail. A unit may be
    ``empty``.

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
    """Return ``n`` units, given one for all or one each; None if unknown."""
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
    """Return ids of series, queries or people as an array of numbers or text, or None; several may have the same."""
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


def check_task(task: Any) -> None:
    """Raise unless it is the name of a task."""
    if not isinstance(task, str) or task not in get_args(Task):
        raise ConfigError(f"task must be 'classification' or 'regression', got {quoted(task)}.")


def check_numbers(y: Any, *, n_samples: int) -> FloatArray:
    """Return the labels of a regressor, (batch,) or (batch, outputs), as float64 (batch, outputs)."""
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
