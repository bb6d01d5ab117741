"""Series of unequal length as arrays: padded, blanked, resampled; and the one gate for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.errors import DataError, FeatureMismatchError, NonFiniteError, ShapeError
from sparcets.core.series import blank, resample, rows_by_length
from sparcets.core.validation import check_padded

RAGGED = [np.arange(6.0).reshape(3, 2), np.arange(10.0).reshape(5, 2), np.ones((1, 2))]
LENGTHS = np.array([3, 5, 1])


@dataclass
class Fitted:
    n_features: int | None = 2
    n_steps: int | None = 5
    unequal: bool = True


def test_a_list_of_series_is_padded_with_zeros() -> None:
    for given_list in (RAGGED, tuple(RAGGED), [one.tolist() for one in RAGGED], np.array(RAGGED, dtype=object)):
        X, lengths = check_padded(given_list, None)
        assert X.shape == (3, 5, 2) and lengths is not None and lengths.tolist() == [3, 5, 1]
        for row, one in zip(X, RAGGED, strict=True):
            assert np.array_equal(row[: len(one)], one) and not row[len(one) :].any()
    assert check_padded([one.astype(np.float32) for one in RAGGED], None)[0].dtype == np.float32


def test_a_list_of_equal_series_has_lengths_only_where_they_are_expected() -> None:
    equal = [np.zeros((4, 2)), np.ones((4, 2))]
    assert check_padded(equal, None)[1] is None
    X, lengths = check_padded(equal, None, like=Fitted())
    assert X.shape == (2, 5, 2) and lengths is not None and lengths.tolist() == [4, 4]


@pytest.mark.parametrize("filling", [0.0, np.nan, np.inf, 7.0])
@pytest.mark.parametrize("n_steps", [5, 9])
def test_padding_becomes_zero_and_as_long_as_that_of_the_fit(filling: float, n_steps: int) -> None:
    X = np.full((3, 7, 2), filling)
    for row, one in zip(X, RAGGED, strict=True):
        row[: len(one)] = one
    before = X.copy()
    made, lengths = check_padded(X, LENGTHS, like=Fitted(n_steps=n_steps))
    assert np.array_equal(made[:, :5], check_padded(RAGGED, None)[0]) and not made[:, 5:].any()
    assert made.shape == (3, n_steps, 2) and np.array_equal(lengths, LENGTHS)
    assert np.array_equal(X, before, equal_nan=True)  # the user's array is left alone


def test_series_with_zeros_beyond_are_not_copied() -> None:
    X, lengths = check_padded(RAGGED, None)
    assert np.shares_memory(blank(X, lengths), X)


@pytest.mark.parametrize(
    ("X", "lengths", "like", "error", "message"),
    [
        (
            np.zeros((3, 5, 2)),
            None,
            Fitted(),
            DataError,
            "fitted on series of unequal length.*pass lengths=.*or a list",
        ),
        (RAGGED, LENGTHS, None, ShapeError, "pass a list of unequal ones without lengths="),
        (
            [r.T for r in RAGGED],
            None,
            None,
            ShapeError,
            r"same features, but they have 1, 3, 5\. They look like .*x\.T",
        ),
        ([np.zeros((2, 2)), np.zeros((3, 4))], None, None, ShapeError, r"same features, but they have 2, 4\.$"),
        (RAGGED, None, Fitted(n_steps=4), FeatureMismatchError, "at most 4 steps, series 1 has 5. Cut or resample"),
        (RAGGED, None, Fitted(n_features=3), FeatureMismatchError, "fitted on 3 features, X has 2"),
        ([np.full((2, 2), np.nan), np.zeros((3, 2))], None, None, NonFiniteError, r"NaN at \[0, 0, 0\]"),
        ([np.zeros((0, 2)), np.zeros((3, 2))], None, None, ShapeError, "lengths must lie in 1..3, got 0 for series 0"),
        (np.zeros((3, 5, 2)), [1, 2], None, ShapeError, "lengths must be 3 whole numbers"),
        (np.zeros((3, 5)), [1, 2, 3], None, ShapeError, r"X must be \(batch, time, features\)"),
    ],
)
def test_mistakes(X: Any, lengths: Any, like: Fitted | None, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_padded(X, lengths, like=like)


def test_rows_by_length() -> None:
    found = {n: rows.tolist() for n, rows in rows_by_length(np.array([4, 2, 4, 9]))}
    assert found == {2: [1], 4: [0, 2], 9: [3]}


@given(st.integers(1, 9), st.integers(1, 9))
def test_resampling_keeps_both_ends_and_straight_lines(old: int, new: int) -> None:
    line = np.linspace(1.0, 3.0, old) if old > 1 else np.ones(1)
    X = np.full((1, 9, 1), 99.0)
    X[0, :old, 0] = line
    made = resample(X, np.array([old]), new)[0, :, 0]
    np.testing.assert_allclose(made, np.linspace(1.0, line[-1] if new > 1 else 1.0, new))
    if old == new:
        assert np.array_equal(made, line)


def test_resampling_to_a_length_for_each() -> None:
    X = np.array([[[0.0], [2.0], [9.0]], [[1.0], [2.0], [3.0]]])
    assert resample(X, np.array([2, 3]), np.array([3, 2]))[..., 0].tolist() == [[0.0, 1.0, 2.0], [1.0, 3.0, 3.0]]
