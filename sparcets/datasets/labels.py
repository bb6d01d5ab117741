"""Labels of a data set: classes, or numbers with names and units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.errors import ConfigError, LabelError, ShapeError
from sparcets.validation import as_array, check_labels, check_names

Task = Literal["classification", "regression"]
Names = tuple[str, ...]


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
        given = None if units is None else (units,) * n if isinstance(units, str) else tuple(str(u) for u in units)
        if given is not None and len(given) != n:
            raise ShapeError(f"output_units must be one for all or {n}, one per output, got {len(given)}.")
        return numbers.reshape(np.shape(y)), (), outputs, given
    if task != "classification":
        raise ConfigError(f"task must be 'classification' or 'regression', got {task!r}.")
    if names is not None or units is not None:
        raise ConfigError("output_names and output_units are for numbers as labels: pass task='regression', too.")
    labels, found = check_labels(y, n_samples=len(X), class_names=class_names)
    absent = sorted(set(labels.tolist()) - set(labels[train].tolist()))
    if absent:
        raise LabelError(
            f"class {found[absent[0]]!r} has no sample in the training part. Choose another seed or split."
        )
    return labels, found, None, None


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
    return numbers
