"""Splitting series into training and test: stratified by class, grouped by subject, or as given for each series."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from sparcets.core.errors import DataError, ShapeError, quoted
from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray, as_array, check_series

log = logging.getLogger(__name__)

PARTS = ("train", "test")


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
    try:
        groups, inverse = np.unique(np.asarray(subjects), return_inverse=True)
    except TypeError as error:
        raise DataError("subjects must be names or whole numbers, all of one type, so that they compare.") from error
    if len(groups) < 2:
        raise DataError(f"a split by subject needs at least two subjects, got {len(groups)}.")
    rng = generator(seed, "split")
    n_test = min(max(round(len(groups) * test_size), 1), len(groups) - 1)
    held_out = rng.permutation(len(groups))[:n_test]
    in_test = np.isin(inverse, held_out)
    return _shuffled([np.flatnonzero(~in_test)], rng), _shuffled([np.flatnonzero(in_test)], rng)


def held_out_split(y: IntArray, subjects: Any, *, test_size: float, seed: int) -> tuple[IntArray, IntArray]:
    """Split training series again: rows to learn from, and rows that are held out, by subject where these are known.

    By subject, nobody is in both parts, every class is learnt from, and the held-out part has every class that several
    subjects have; it takes more subjects than ``test_size``, a share of them, where that needs them. Without subjects,
    and where they are too few for that, the split is one at random.

    >>> learn, held_out = held_out_split(np.array([0, 1] * 6), list("aabbccddeeff"), test_size=0.2, seed=0)
    >>> len(learn), len(held_out)
    (10, 2)
    """
    if subjects is not None:
        rows = _rows_of_some_subjects(np.asarray(y), np.asarray(subjects), test_size, generator(seed, "split"))
        if rows is not None:
            return rows
    return stratified_split(y, test_size=test_size, seed=seed)


def warn_of_shared_subjects(subjects: Any, learn: IntArray, held_out: IntArray, what: str) -> None:
    """Log that subjects are both among the series to learn from and in ``what`` was held out, if some are."""
    if subjects is not None and np.isin(np.asarray(subjects)[held_out], np.asarray(subjects)[learn]).any():
        log.warning(
            "the subjects are too few to split %s off by subject: it is split at random, and what is measured on it is "
            "too good for series of new subjects",
            what,
        )


def _rows_of_some_subjects(
    y: IntArray, subjects: Any, test_size: float, rng: np.random.Generator
) -> tuple[IntArray, IntArray] | None:
    """Return rows to learn from and rows of subjects held out, or None if there are too few subjects."""
    _check_test_size(test_size)
    groups, of_row = np.unique(subjects, return_inverse=True)
    classes, label = np.unique(y, return_inverse=True)
    counts = np.zeros((len(groups), len(classes)), dtype=np.int64)
    np.add.at(counts, (of_row.ravel(), label.ravel()), 1)
    wanted = (counts > 0).sum(0) > 1  # classes that can be in both parts
    n_test = max(round(len(groups) * test_size), 1)
    left, chosen = rng.permutation(len(groups)).tolist(), list[int]()
    while left:
        has = counts[chosen].sum(0) > 0
        if len(chosen) >= n_test and has[wanted].all():
            break
        rest = counts[left].sum(0)
        free = [group for group in left if ((rest - counts[group]) > 0).all()]  # every class is still learnt from
        if not free:
            break
        best = max(free, key=lambda group: int((counts[group] > 0)[wanted & ~has].sum()))  # of equal ones, the first
        if len(chosen) >= n_test and not (counts[best] > 0)[wanted & ~has].any():
            break
        chosen.append(best)
        left.remove(best)
    if (counts[chosen].sum(0) > 0).sum() < min(2, len(classes)):
        return None
    held_out = np.isin(of_row.ravel(), chosen)
    return _shuffled([np.flatnonzero(~held_out)], rng), _shuffled([np.flatnonzero(held_out)], rng)


def given_split(split: Any, *, n_samples: int) -> tuple[IntArray, IntArray]:
    """Return training and test rows, in the order of the series, by the part that is given for each of them.

    Flags and numbers instead of ``"train"`` or ``"test"`` are refused: nothing says which part they mean. The rows of
    the two parts, a pair of arrays, are kept as they are.

    >>> train, test = given_split(["train", "test", "train"], n_samples=3)
    >>> train.tolist(), test.tolist()
    ([0, 2], [1])
    """
    if isinstance(split, tuple) and len(split) == 2 and all(isinstance(rows, np.ndarray) for rows in split):
        return split
    needed = f"split must be {n_samples} words, 'train' or 'test', one per series"
    array = as_array(split, "split", "Pass 'train' or 'test' for each series.")
    if array.shape != (n_samples,):
        alone = " Leave it out for a random split, or pass subjects= for one by subject." if array.ndim == 0 else ""
        got = quoted(split) if array.ndim == 0 else f"shape {array.shape}"
        raise ShapeError(f"{needed}, got {got}.{alone}")
    words = [word.decode("utf-8", "replace") if isinstance(word, bytes) else word for word in array.tolist()]
    wrong = next((row for row, word in enumerate(words) if not isinstance(word, str) or word not in PARTS), None)
    if wrong is not None:
        is_text = isinstance(words[wrong], str)
        hint = "" if is_text else " Convert flags of the test series with np.where(flags, 'test', 'train')."
        raise DataError(f"{needed}, got {quoted(words[wrong])} for series {wrong}.{hint}")
    in_test = np.array([word == "test" for word in words])
    if in_test.all() or not in_test.any():
        raise DataError(f"split has all {n_samples} series in {quoted(words[0])}. Mark both parts, or leave split out.")
    return np.flatnonzero(~in_test), np.flatnonzero(in_test)


def _check_test_size(test_size: float) -> None:
    if not isinstance(test_size, (int, float)) or not 0 < test_size < 1:
        raise DataError(f"test_size must lie between 0 and 1 (a share of the series), got {quoted(test_size)}.")


def _shuffled(parts: list[Any], rng: np.random.Generator) -> IntArray:
    return np.asarray(rng.permutation(np.concatenate(parts)), dtype=np.int64)


def check_changed(X: Any, rows: Any, *, shape: tuple[int, int], what: str, n_test: int) -> tuple[FloatArray, IntArray]:
    """Return what an oracle is given: series (batch, time, features), and the test series that each of them was."""
    X, array = check_series(X), np.asarray(rows)
    if X.shape[1:] != shape:
        raise ShapeError(f"X must be (batch, {shape[0]}, {shape[1]}), as all {what} are, got shape {X.shape}.")
    if array.shape != (len(X),) or array.dtype.kind not in "iu":
        raise ShapeError(
            f"rows must be {len(X)} whole numbers, one per series of X, got shape {array.shape} and dtype "
            f"{array.dtype}. They are the indices in X_test of the original series."
        )
    outside = array[(array < 0) | (array >= n_test)]
    if len(outside):
        raise ShapeError(f"rows must lie in 0..{n_test - 1}, the indices of X_test, got {int(outside[0])}.")
    return X, array.astype(np.int64)
