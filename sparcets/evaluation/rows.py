"""Which test series the queries of an explanation are: the key to what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparcets.arrays import BoolArray, IntArray
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import series_digests
from sparcets.errors import DataError, FeatureMismatchError, OutOfRangeError, ShapeError
from sparcets.evaluation.scores import WARNING
from sparcets.explanation import Explanation
from sparcets.validation import default_feature_names


def find_rows(e: Explanation, digests: Sequence[str], dataset: Dataset | None, rows: Any, notes: list[str]) -> IntArray:
    """Return the place in ``X_test`` of each answer's query, -1 where it is not known.

    Parameters
    ----------
    e, digests
        The answers, and the digests of their queries, by which these are found.
    dataset, rows
        As given to :func:`sparcets.evaluate`.
    notes
        Receives a line on queries that are not there.
    """
    if dataset is None:
        if rows is not None:
            raise DataError(
                "rows are places in a data set's X_test: pass the data set too, evaluate(e, dataset, rows=…)."
            )
        return np.full(len(e), -1)
    _check_same_data(e, dataset)
    named = None if rows is None else _check_rows(rows, e, len(dataset.X_test))[e.query_index]
    in_test = series_digests(dataset.X_test)
    places = {digest: i for i, digest in reversed(list(enumerate(in_test)))}  # the first of equals
    found = np.array([places.get(digest, -1) for digest in digests], dtype=np.int64)
    if (found < 0).any():
        notes.append(_strangers(e.query_index, digests, found >= 0, dataset, given=named is not None))
    if named is None:
        return found
    for i, digest in enumerate(digests):
        if found[i] >= 0 and in_test[named[i]] != digest:
            raise DataError(
                f"rows says that query {e.query_index[i]} stems from test series {named[i]}, but it is test series "
                f"{found[i]}, value by value. Give rows in the order of the queries, or leave rows= out: test series "
                "are found by their content."
            )
    return named


def _strangers(
    query_index: IntArray, digests: Sequence[str], known: BoolArray, dataset: Dataset, *, given: bool
) -> str:
    """Say how many queries are not in the test part, and where they are instead."""
    unknown, n = np.unique(query_index[~known], return_index=True)[1], len(np.unique(query_index))
    where = f"in the test part of {dataset.name!r}"
    if known.any() or given:
        text = f"{len(unknown)} of the {n} queries {_are(len(unknown))} not {where}"
    else:
        text = f"{WARNING}none of the {n} queries is {where}; check that they come from this data set and split"
    in_train = set(series_digests(dataset.X_train))
    learnt = sum(digests[i] in in_train for i in np.flatnonzero(~known)[unknown])
    if learnt:
        text += f"; {learnt} of them {_are(learnt)} in its training part, which classifier and judges learnt from"
    if given:
        text += "; rows= names the test series they stem from"
    elif dataset.oracle is not None or dataset.salient_test is not None:
        text += "; what is salient and what is true is not known of them. Pass rows= if they stem from test series"
    return f"{text}."


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


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
