"""Splitting series into training and test: stratified by class, or grouped by subject."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcets.arrays import IntArray
from sparcets.errors import DataError, ShapeError
from sparcets.seeding import generator


def stratified_split(y: IntArray, *, test_size: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return training and test rows, with every class in both in proportion to its size.

    >>> train, test = stratified_split(np.array([0] * 10 + [1] * 5), test_size=0.2, seed=0)
    >>> np.bincount(np.array([0] * 10 + [1] * 5)[test]).tolist()
    [2, 1]
    """
    _check_test_size(test_size)
    rng = generator(seed, "split")
    train, test = [], []
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        if len(rows) < 2:
            raise DataError(
                f"class {label} has a single series, so it cannot be in both training and test. "
                "Add series, drop the class, or split manually."
            )
        n_test = min(max(round(len(rows) * test_size), 1), len(rows) - 1)
        test.append(rows[:n_test])
        train.append(rows[n_test:])
    return _shuffled(train, rng), _shuffled(test, rng)


def grouped_split(subjects: Any, *, test_size: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return training and test rows such that no subject is in both.

    ``test_size`` is the share of subjects, so the share of rows differs a little.
    """
    _check_test_size(test_size)
    groups, inverse = np.unique(np.asarray(subjects), return_inverse=True)
    if len(groups) < 2:
        raise DataError(f"a split by subject needs at least two subjects, got {len(groups)}.")
    rng = generator(seed, "split")
    n_test = min(max(round(len(groups) * test_size), 1), len(groups) - 1)
    held_out = rng.permutation(len(groups))[:n_test]
    in_test = np.isin(inverse, held_out)
    return _shuffled([np.flatnonzero(~in_test)], rng), _shuffled([np.flatnonzero(in_test)], rng)


def _check_test_size(test_size: float) -> None:
    if not isinstance(test_size, (int, float)) or not 0 < test_size < 1:
        raise DataError(f"test_size must lie between 0 and 1 (a share of the series), got {test_size!r}.")


def _shuffled(parts: list[Any], rng: np.random.Generator) -> IntArray:
    return np.asarray(rng.permutation(np.concatenate(parts)), dtype=np.int64)


def check_test_rows(rows: Any, *, n_samples: int, n_test: int) -> IntArray:
    """Return the rows given to an oracle, which name the original of each series among the test series."""
    array = np.asarray(rows)
    if array.shape != (n_samples,) or array.dtype.kind not in "iu":
        raise ShapeError(
            f"rows must be {n_samples} whole numbers, one per series of X, got shape {array.shape} and dtype "
            f"{array.dtype}. They are the indices in X_test of the original series."
        )
    outside = array[(array < 0) | (array >= n_test)]
    if len(outside):
        raise ShapeError(f"rows must lie in 0..{n_test - 1}, the indices of X_test, got {int(outside[0])}.")
    return array.astype(np.int64)
