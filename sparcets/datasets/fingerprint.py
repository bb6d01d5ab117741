"""Digests of data sets and series, used as keys for stored results."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.datasets.base import Dataset


def dataset_digest(dataset: Dataset) -> str:
    """Return a hex digest (64 characters) of the training part: series, labels, lengths and class names.

    Models trained on the data are stored under this key, so that changed data are not mistaken for the old.

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> one, two = (Dataset.from_arrays(*make_series(30), name=name) for name in ("mine", "yours"))
    >>> dataset_digest(one) == dataset_digest(two)
    True
    """
    digest = hashlib.sha256(repr((dataset.X_train.shape, dataset.class_names)).encode())
    for array in (dataset.X_train, dataset.y_train, dataset.lengths_train):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
    return digest.hexdigest()


def series_digests(X: Any) -> list[str]:
    """Return a hex digest (32 characters) per series (batch, time, features), of its values.

    Equal values have equal digests, whether they are given as float32 or as float64.

    Examples
    --------
    >>> first, second, again = series_digests([[[1.0], [2.0]], [[1.0], [3.0]], [[1.0], [2.0]]])
    >>> first == again, first == second
    (True, False)
    """
    return [hashlib.blake2b(_narrowest(series).data, digest_size=16).hexdigest() for series in X]


def _narrowest(series: Any) -> FloatArray:
    """Return a series as float32 if that changes no value, otherwise as float64."""
    wide = np.ascontiguousarray(series)
    with np.errstate(over="ignore"):
        narrow = wide.astype(np.float32, copy=False)
    return narrow if wide.dtype == np.float32 or np.array_equal(narrow, wide) else wide.astype(np.float64, copy=False)
