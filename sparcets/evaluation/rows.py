"""Find the test series that the queries of an explanation are, to look up their saliency masks and oracle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparcets.core.errors import DataError, FeatureMismatchError, OutOfRangeError, ShapeError
from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series
from sparcets.core.validation import default_feature_names
from sparcets.data.dataset import Dataset, series_digests
from sparcets.evaluation.scores import WARNING


def find_rows(e: Explanation, digests: Sequence[str], dataset: Dataset | None, rows: Any, notes: list[str]) -> IntArray:
    """Return the index in ``X_test`` of each answer's query, -1 where it is not known.

    The digests of the queries are looked up among those of the test series, unless the user gave ``rows``; ``notes``
    receives a line on queries that are not in the test part.
    """
    if dataset is None:
        if rows is not None:
            raise DataError(
                "rows are indices into a data set's X_test: pass the data set too, evaluate(e, dataset, rows=…)."
            )
        return np.full(len(e), -1)
    _check_same_data(e, dataset)
    given = None if rows is None else _check_rows(rows, e, len(dataset.X_test))[e.query_index]
    # A user may have one in float32 and the other in float64: compare in the coarser type.
    dtype = min(e.query.dtype, dataset.X_test.dtype, key=lambda kind: kind.itemsize)
    if dtype != e.query.dtype:
        digests = series_digests(e.query.astype(dtype))
    in_test = _digests_of(dataset.X_test, dataset.lengths_test, dtype)
    index = {digest: i for i, digest in reversed(list(enumerate(in_test)))}  # of duplicates, the first
    found = np.array([index.get(digest, -1) for digest in digests], dtype=np.int64)
    if (found < 0).any():
        notes.append(_unknown_queries(e.query_index, digests, found >= 0, dataset, dtype, rows_given=given is not None))
    if given is None:
        return found
    for i, digest in enumerate(digests):
        if found[i] >= 0 and in_test[given[i]] != digest:
            raise DataError(
                f"rows gives test series {given[i]} for query {e.query_index[i]}, but that query is identical to test "
                f"series {found[i]}. Give rows in the order of the queries, or leave rows= out: test series are found "
                "by their content."
            )
    return given


def _unknown_queries(
    query_index: IntArray,
    digests: Sequence[str],
    known: BoolArray,
    dataset: Dataset,
    dtype: np.dtype[Any],
    *,
    rows_given: bool,
) -> str:
    """Return a note on how many queries are not in the test part, and whether they are in the training part."""
    unknown, n = np.unique(query_index[~known], return_index=True)[1], len(np.unique(query_index))
    where = f"in the test part of {dataset.name!r}"
    if known.any() or rows_given:
        text = f"{len(unknown)} of the {n} queries {'is' if len(unknown) == 1 else 'are'} not {where}"
    else:
        text = f"{WARNING}none of the {n} queries is {where}; check that they come from this data set and split"
    in_train = set(_digests_of(dataset.X_train, dataset.lengths_train, dtype))
    n_train = sum(digests[i] in in_train for i in np.flatnonzero(~known)[unknown])
    if n_train:
        are = "is" if n_train == 1 else "are"
        text += f"; {n_train} of them {are} in its training part, which classifier and judges were trained on"
    if rows_given:
        text += "; rows= gives the test series they were derived from"
    elif dataset.oracle is not None or dataset.salient_test is not None:
        text += "; their saliency mask and true class are not known. Pass rows= if they were derived from test series"
    return f"{text}."


def _digests_of(X: FloatArray, lengths: IntArray | None, dtype: np.dtype[Any]) -> list[str]:
    return series_digests(Series(X, lengths).blank().values.astype(dtype, copy=False))


def _check_rows(rows: Any, e: Explanation, n_test: int) -> IntArray:
    indices, n_queries = np.asarray(rows), int(e.query_index.max()) + 1
    if indices.ndim != 1 or indices.dtype.kind not in "iu" or len(indices) < n_queries:
        raise ShapeError(
            f"rows must be integers, one per query passed to explain ({n_queries} or more), got "
            f"{indices.dtype} of shape {indices.shape}."
        )
    if indices.min() < 0 or indices.max() >= n_test:
        raise OutOfRangeError(
            f"rows must be indices into X_test, 0 to {n_test - 1}, got {indices.min()} to {indices.max()}."
        )
    return indices.astype(np.int64)


def _check_same_data(e: Explanation, dataset: Dataset) -> None:
    """Raise an error if the queries cannot come from the data set."""
    expected, n_classes = dataset.X_train.shape[1:], e.proba_after.shape[1]
    if e.query.shape[1:] != expected or n_classes != dataset.n_classes:
        raise FeatureMismatchError(
            f"the explanation has {e.query.shape[1:]} steps and features and {n_classes} classes, the data set "
            f"{dataset.name!r} {expected} and {dataset.n_classes}. Pass the data set its queries come from."
        )
    for what, ours, theirs, default in (
        ("features", e.feature_names, dataset.feature_names, tuple(default_feature_names(expected[1]))),
        ("classes", e.class_names, dataset.class_names, tuple(str(k) for k in range(n_classes))),
    ):
        # An explainer fitted on bare arrays has default names only.
        if theirs is not None and ours != theirs and default not in (ours, theirs):
            raise FeatureMismatchError(
                f"the explanation's {what} are {', '.join(ours)}, those of the data set {dataset.name!r} are "
                f"{', '.join(theirs)}. Pass the data set its queries come from, in the same order."
            )
