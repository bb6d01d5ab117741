"""Splits: every row once, classes in proportion, no subject in both parts, reproducible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.errors import DataError
from sparcets.data.splits import grouped_split, held_out_split, stratified_split

sizes = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**32)


@given(st.lists(st.integers(2, 12), min_size=1, max_size=4), sizes, seeds)
def test_every_class_is_in_both_parts_in_proportion(counts, test_size, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    train, test = stratified_split(y, test_size=test_size, seed=seed)
    assert sorted([*train, *test]) == list(range(len(y)))
    for label, count in enumerate(counts):
        assert int((y[test] == label).sum()) == min(max(round(count * test_size), 1), count - 1)
    again = stratified_split(y, test_size=test_size, seed=seed)
    assert np.array_equal(train, again[0]) and np.array_equal(test, again[1])


@given(st.lists(st.sampled_from("abcdefg"), min_size=2, max_size=30), sizes, seeds)
def test_no_subject_is_in_both_parts(subjects, test_size, seed):
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


def test_rows_are_shuffled_the_seed_matters_and_a_class_needs_two_series():
    y = np.zeros(50, dtype=np.int64)
    train, test = stratified_split(y, test_size=0.5, seed=0)
    assert train.tolist() != sorted(train) and test.tolist() != sorted(test)
    assert set(stratified_split(y, test_size=0.5, seed=1)[1]) != set(test)
    with pytest.raises(DataError, match=r"class 1 has a single series, so it cannot be in both .* Add series, drop"):
        stratified_split(np.array([0, 0, 1]), test_size=0.5, seed=0)


@pytest.mark.parametrize("test_size", [0, 1, -0.1, 3, "0.2", None, np.nan])
def test_invalid_test_size(test_size):
    for split in (stratified_split, grouped_split):
        with pytest.raises(DataError, match="test_size must lie between 0 and 1"):
            split(np.array([0, 1, 0, 1]), test_size=test_size, seed=0)


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abcdefgh")), min_size=2, max_size=60), sizes, seeds)
def test_what_is_held_out_by_subject_has_nobody_in_both_parts(series, test_size, seed):
    y, subjects = np.array([k for k, _ in series]), np.array([who for _, who in series])
    try:
        learn, held_out = held_out_split(y, subjects, test_size=test_size, seed=seed)
    except DataError:
        assert np.bincount(y)[np.unique(y)].min() < 2, "a split at random was possible"
        return
    assert sorted([*learn, *held_out]) == list(range(len(y))) and len(held_out)
    assert set(y[learn]) == set(y), "a class is not learnt from"
    if set(subjects[learn]) & set(subjects[held_out]):  # at random, as without subjects
        again = stratified_split(y, test_size=test_size, seed=seed)
        assert np.array_equal(learn, again[0]) and np.array_equal(held_out, again[1])
    else:
        assert len(set(y[held_out])) >= min(2, len(set(y))), "one class says nothing of the others"


def test_every_class_is_held_out_where_subjects_have_one_each():
    """Patients and controls: one subject in ten would be of one class."""
    subjects = np.repeat(np.arange(10), 6)
    y = (subjects >= 5).astype(np.int64)
    for seed in range(20):
        learn, held_out = held_out_split(y, subjects, test_size=0.1, seed=seed)
        assert len(held_out) == 12 and set(y[held_out]) == {0, 1} and not set(subjects[learn]) & set(subjects[held_out])
    y = np.arange(12) % 2
    expected = stratified_split(y, test_size=0.3, seed=4)
    for few in (None, np.zeros(12), y):  # or none at all: a split at random
        for found, same in zip(held_out_split(y, few, test_size=0.3, seed=4), expected, strict=True):
            assert np.array_equal(found, same)
