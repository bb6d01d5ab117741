"""Labels of a data set: classes, or numbers with names and units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from sparcets.core.arrays import LARGEST, FloatArray, IntArray, StrArray
from sparcets.core.errors import ConfigError, LabelError, quoted
from sparcets.core.validation import as_array, check_labels, check_names, check_units

Task = Literal["classification", "regression"]
Names = tuple[str, ...]
FRACTION = re.compile(r"-?\d*\.\d*[1-9]\d*")
WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9]\d{0,17}))(?:\.0+)?")


def check_task_labels(
    y: Any,
    X: FloatArray,
    train: IntArray,
    *,
    task: Task,
    class_names: Sequence[str] | None,
    names: str | Sequence[str] | None,
    units: str | Sequence[str] | None,
) -> tuple[np.ndarray[Any, Any], Names, Names | None, Names | None]:
    """Return the labels, the names of the classes, and names and units of the numbers.

    Parameters
    ----------
    y, X
        Labels that are not checked yet, and the series that they belong to.
    train
        Rows of the training part, in which every class that any series is of must be.
    task
        ``"classification"`` or ``"regression"``.
    class_names
        Names of the classes, or None.
    names, units
        Names and units of the numbers, or None; a text for a single one.
    """
    if task == "regression":
        if class_names is not None:
            raise ConfigError("class_names are for classes; task='regression' takes output_names and output_units.")
        numbers = check_numbers(y, n_samples=len(X))
        n = numbers.shape[1]
        outputs = check_names([names] if isinstance(names, str) else names, what="output_names", n=n)
        given = check_units(units, what="output_units", n=n, each="output")
        return numbers.reshape(np.shape(y)), (), outputs, given
    check_task(task)
    if names is not None or units is not None:
        raise ConfigError("output_names and output_units are for numbers as labels: pass task='regression', too.")
    labels, found = check_labels(y, n_samples=len(X), class_names=class_names)
    absent = sorted(set(labels.tolist()) - set(labels[train].tolist()))
    if absent:
        raise LabelError(
            f"class {found[absent[0]]!r} has no sample in the training part. Choose another seed or split."
        )
    return labels, found, None, None


def default_output_names(n_outputs: int) -> Names:
    """Return names for the numbers that a model predicts, where none are known.

    >>> default_output_names(1), default_output_names(2)
    (('number',), ('output 0', 'output 1'))
    """
    return ("number",) if n_outputs == 1 else tuple(f"output {k}" for k in range(n_outputs))


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


def class_names_of(labels: StrArray) -> tuple[StrArray, tuple[str, ...]]:
    """Return labels and the sorted names of the classes, whole numbers in plain form and in numerical order.

    >>> class_names_of(np.array(["10.0", "9.0"]))[1], class_names_of(np.array(["b", "10", "9"]))[1]
    (('9', '10'), ('10', '9', 'b'))
    """
    names, codes = np.unique(labels, return_inverse=True)
    numbers = [WHOLE_NUMBER.fullmatch(name) for name in names.tolist()]
    fractions = [name for name in names.tolist() if FRACTION.fullmatch(name)]
    if fractions and len(fractions) + sum(map(bool, numbers)) == len(names) > len(labels) / 2:
        raise LabelError(
            f"the labels of {len(labels)} series are {len(names)} different numbers, such as {fractions[0]}. For "
            "numbers that a model predicts, say task='regression'."
        )
    plain = [str(int(number[1])) for number in numbers if number]
    if len(plain) < len(names):
        return labels, tuple(names.tolist())
    return np.array(plain)[codes], tuple(sorted(set(plain), key=int))
