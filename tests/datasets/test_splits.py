"""Splits: every row once, classes in proportion, no subject in both parts, reproducible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.datasets.splits import grouped_split, stratified_split
from sparcets.errors import DataError

sizes = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**32)


@given(st.lists(st.integers(2, 12), min_size=1, max_size=4), sizes, seeds)
def test_every_class_is_in_both_parts_in_proportion(counts: list[int], test_size: float, seed: int) -> None:
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    train, test = stratified_split(y, test_size=test_size, seed=seed)
    assert sorted([*train, *test]) == list(range(len(y)))
    for label, count in enumerate(counts):
        in_test = int((y[test] == label).sum())
        assert in_test == min(max(round(count * test_size), 1), count - 1)
    again = stratified_split(y, test_size=test_size, seed=seed)
    assert np.array_equal(train, again[0]) and np.array_equal(test, again[1])


@given(st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=30), sizes, seeds)
def test_no_subject_is_in_both_parts(subjects: list[str], test_size: float, seed: int) -> None:
    n = len(set(subjects))
    if n < 2:
        with pytest.raises(DataError, match="a split by subject needs at least two subjects, got 1"):
            grouped_split(subjects, test_size=test_size, seed=seed)
        return
    train, test = grouped_split(subjects, test_size=test_size, seed=seed)
    assert sorted([*train, *test]) == list(range(len(subjects)))
    held_out = {subjects[i] for i in test}
    assert not held_out & {subjects[i] for i in train}
    assert len(held_out) == min(max(round(n * test_size), 1), n - 1)


def test_rows_are_shuffled_and_the_seed_matters() -> None:
    y = np.zeros(50, dtype=np.int64)
    train, test = stratified_split(y, test_size=0.5, seed=0)
    assert train.tolist() != sorted(train) and test.tolist() != sorted(test)
    assert set(stratified_split(y, test_size=0.5, seed=1)[1]) != set(test)


def test_a_class_with_a_single_series_cannot_be_split() -> None:
    with pytest.raises(DataError, match=r"class 1 has a single series, so it cannot be in both .* Add series, drop"):
        stratified_split(np.array([0, 0, 1]), test_size=0.5, seed=0)


@pytest.mark.parametrize("test_size", [0, 1, -0.1, 3, "0.2", None, np.nan])
def test_invalid_test_size(test_size: Any) -> None:
    for split in (stratified_split, grouped_split):
        with pytest.raises(DataError, match="test_size must lie between 0 and 1"):
            split(np.array([0, 1, 0, 1]), test_size=test_size, seed=0)
