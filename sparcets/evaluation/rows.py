"""Which test series the queries of an explanation are: the key to what is known of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.datasets.base import Dataset
from sparcets.errors import DataError, FeatureMismatchError, OutOfRangeError, ShapeError
from sparcets.explanation import Explanation
from sparcets.validation import default_feature_names


def find_rows(e: Explanation, dataset: Dataset | None, rows: Any, notes: list[str]) -> IntArray:
    """Return the place in ``X_test`` of each answer's query, -1 where it is not known."""
    if dataset is None:
        if rows is not None:
            raise DataError(
                "rows are places in a data set's X_test: pass the data set too, evaluate(e, dataset, rows=…)."
            )
        return np.full(len(e), -1)
    _check_same_data(e, dataset)
    if rows is not None:
        return _check_rows(rows, e, len(dataset.X_test))[e.query_index]
    places = {digest: i for i, digest in reversed(list(enumerate(_digests(dataset.X_test))))}  # the first of equals
    found = np.array([places.get(digest, -1) for digest in _digests(e.query)], dtype=np.int64)
    if (found < 0).any() and (dataset.oracle is not None or dataset.salient_test is not None):
        notes.append(
            f"{(found < 0).sum()} of {len(e)} answers are to queries that are not in the test part, so what is salient "
            "and what is true is not known of them. Pass rows= if they stem from test series."
        )
    return found


def _digests(X: FloatArray) -> Iterator[bytes]:
    for series in X:
        yield hashlib.blake2b(np.ascontiguousarray(series, dtype=np.float32).data, digest_size=16).digest()


def _check_rows(rows: Any, e: Explanation, n_test: int) -> IntArray:
    places, queries = np.asarray(rows), int(e.query_index.max()) + 1
    if places.ndim != 1 or places.dtype.kind not in "iu" or len(places) < queries:
        raise ShapeError(
            f"rows must be whole numbers, one per query passed to explain ({queries} or more), got "
            f"{places.dtype} of shape {places.shape}."
        )
    if places.min() < 0 or places.max() >= n_test:
        raise OutOfRangeError(
            f"rows must be places in X_test, 0 to {n_test - 1}, got {places.min()} to {places.max()}."
        )
    return places.astype(np.int64)


def _check_same_data(e: Explanation, dataset: Dataset) -> None:
    """Refuse a data set that the queries cannot come from."""
    expected, n_classes = dataset.X_train.shape[1:], e.proba_after.shape[1]
    if e.query.shape[1:] != expected or n_classes != dataset.n_classes:
        raise FeatureMismatchError(
            f"the explanation has {e.query.shape[1:]} steps and features and {n_classes} classes, the data set "
            f"{dataset.name!r} {expected} and {dataset.n_classes}. Pass the data set its queries come from."
        )
    plain = (tuple(default_feature_names(expected[1])), tuple(str(k) for k in range(n_classes)))
    for what, ours, theirs, numbered in (
        ("features", e.feature_names, dataset.feature_names, plain[0]),
        ("classes", e.class_names, dataset.class_names, plain[1]),
    ):
        # An explainer that was fitted on bare arrays knows no names.
        if theirs is not None and ours != theirs and numbered not in (ours, theirs):
            raise FeatureMismatchError(
                f"the explanation's {what} are {', '.join(ours)}, those of the data set {dataset.name!r} are "
                f"{', '.join(theirs)}. Pass the data set its queries come from, in the same order."
            )
