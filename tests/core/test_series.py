"""Series of unequal length and with gaps: padded, cut, resampled, filled; and the one gate for them."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.core.errors import DataError, FeatureMismatchError, NonFiniteError, ShapeError
from sparcets.core.series import Series, check_padded, differs, missing_entries
from sparcets.training.networks import fill_gaps as fill_tensor

NAN = np.nan
RAGGED = [np.arange(6.0).reshape(3, 2), np.arange(10.0).reshape(5, 2), np.ones((1, 2))]
LENGTHS = np.array([3, 5, 1])


def test_what_a_series_holds():
    X = np.array([[[1.0], [NAN], [0.0]], [[2.0], [3.0], [4.0]]])
    some, equal = Series(X, np.array([2, 3])), Series(X)
    assert (len(some), some.n_steps, some.n_features, some.unequal, equal.unequal) == (2, 3, 1, True, False)
    assert some.steps.tolist() == [2, 3] and equal.steps.tolist() == [3, 3]
    assert some.inside.tolist() == [[True, True, False], [True] * 3] and equal.inside.all()
    assert some.measured[..., 0].tolist() == [[True, False, False], [True] * 3] and equal.measured.sum() == 5
    assert some.gaps.sum() == 1 and some[1:].gaps is None
    np.testing.assert_array_equal(some.flat.ravel(), [1, NAN, 2, 3, 4])
    assert np.shares_memory(equal.flat, X)
    shapes = [(rows.tolist(), part.values.shape) for rows, part in some.by_length()]
    assert shapes == [([0], (1, 2, 1)), ([1], (1, 3, 1))]
    assert [(rows.tolist(), part) for rows, part in equal.by_length()] == [([0, 1], equal)]
    assert [len(part) for part in some.batches(1)] == [1, 1] and some[np.array([1])].steps.tolist() == [3]
    longer = Series(np.ones((1, 4, 1)))
    joined = Series.join([some, longer])
    assert joined.values.shape == (3, 4, 1) and joined.steps.tolist() == [2, 3, 4] and not joined.values[1, 3:].any()
    assert not Series.join([equal, equal]).unequal


@dataclass
class Fitted:
    n_features: int | None = 2
    n_steps: int | None = 5
    unequal: bool = True


def test_a_list_of_series_is_padded_with_zeros():
    for given_list in (RAGGED, tuple(RAGGED), [one.tolist() for one in RAGGED], np.array(RAGGED, dtype=object)):
        X, lengths = check_padded(given_list, None)
        assert X.shape == (3, 5, 2) and lengths.tolist() == [3, 5, 1]
        for row, one in zip(X, RAGGED, strict=True):
            assert np.array_equal(row[: len(one)], one) and not row[len(one) :].any()
    X, lengths = check_padded([one.astype(np.float32) for one in RAGGED], None)
    assert X.dtype == np.float32 and np.shares_memory(Series(X, lengths).blank().values, X), "nothing is copied"

    equal = [np.zeros((4, 2)), np.ones((4, 2))]
    assert check_padded(equal, None)[1] is None, "lengths of equal series only where they are expected"
    X, lengths = check_padded(equal, None, like=Fitted())
    assert X.shape == (2, 5, 2) and lengths.tolist() == [4, 4]


@pytest.mark.parametrize("n_steps", [5, 9])
def test_padding_becomes_zero_and_as_long_as_that_of_the_fit(n_steps):
    for filling in (0.0, np.nan, np.inf, 7.0):
        X = np.full((3, 7, 2), filling)
        for row, one in zip(X, RAGGED, strict=True):
            row[: len(one)] = one
        before = X.copy()
        made, lengths = check_padded(X, LENGTHS, like=Fitted(n_steps=n_steps))
        assert np.array_equal(made[:, :5], check_padded(RAGGED, None)[0]) and not made[:, 5:].any()
        assert made.shape == (3, n_steps, 2) and np.array_equal(lengths, LENGTHS)
        assert np.array_equal(X, before, equal_nan=True)  # the user's array is left alone


@pytest.mark.parametrize(
    ("X", "lengths", "like", "error", "message"),
    [
        (np.zeros((3, 5, 2)), None, Fitted(), DataError, "fitted on series of unequal length.*pass lengths=.*a list"),
        (RAGGED, LENGTHS, None, ShapeError, "pass a list of unequal ones without lengths="),
        ([r.T for r in RAGGED], None, None, ShapeError, r"same features, but they have 1, 3, 5\. They look.*x\.T"),
        ([np.zeros((2, 2)), np.zeros((3, 4))], None, None, ShapeError, r"same features, but they have 2, 4\.$"),
        (RAGGED, None, Fitted(n_steps=4), FeatureMismatchError, "at most 4 steps, series 1 has 5. Cut or resample"),
        (RAGGED, None, Fitted(n_features=3), FeatureMismatchError, "fitted on 3 features, X has 2"),
        ([np.full((2, 2), np.nan), np.zeros((3, 2))], None, None, NonFiniteError, r"NaN at \[0, 0, 0\]"),
        ([np.zeros((0, 2)), np.zeros((3, 2))], None, None, ShapeError, "lengths must lie in 1..3, got 0 for series 0"),
        (np.zeros((3, 5, 2)), [1, 2], None, ShapeError, "lengths must be 3 whole numbers"),
    ],
)
def test_mistakes(X, lengths, like, error, message):
    with pytest.raises(error, match=message):
        check_padded(X, lengths, like=like)


@given(st.integers(1, 9), st.integers(1, 9))
def test_resampling_keeps_both_ends_and_straight_lines(old, new):
    line = np.linspace(1.0, 3.0, old) if old > 1 else np.ones(1)
    X = np.full((1, 9, 1), 99.0)
    X[0, :old, 0] = line
    made = Series(X, np.array([old])).resampled(new)[0, :, 0]
    np.testing.assert_allclose(made, np.linspace(1.0, line[-1] if new > 1 else 1.0, new))
    if old == new:
        assert np.array_equal(made, line)

    X = np.array([[[0.0], [2.0], [9.0]], [[1.0], [2.0], [3.0]]])  # a length for each
    found = Series(X, np.array([2, 3])).resampled(np.array([3, 2]))[..., 0]
    assert found.tolist() == [[0.0, 1.0, 2.0], [1.0, 3.0, 3.0]]


def one(*values):
    """Return one series of one feature."""
    return np.array(values, dtype=np.float64).reshape(1, -1, 1)


def with_gaps(seed, *, share=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(5, 7, 3))
    X[rng.random(X.shape) < share] = NAN
    return X


@pytest.mark.parametrize(("rule", "filled"), [("forward", [2, 2, 2, 2, 5, 5]), ("mean", [3.5, 3.5, 2, 3.5, 5, 3.5])])
def test_the_rules(rule, filled):
    assert Series(one(NAN, NAN, 2, NAN, 5, NAN)).filled(rule).values.ravel().tolist() == filled
    first = one(2, NAN, NAN)  # from its first step
    assert Series(first).filled("forward").values.ravel().tolist() == [2, 2, 2]
    empty = Series(np.array([[[1.0, NAN], [2.0, NAN]]]))
    assert np.isnan(empty.filled(rule).values[..., 1]).all() and empty.unmeasured.tolist() == [[False, True]]
    assert empty.filled(rule, otherwise=7.0).values[..., 1].ravel().tolist() == [7, 7]
    padded = Series(one(NAN, 4, NAN, 100, 100), np.array([3]))
    assert padded.filled(rule).values.ravel().tolist() == [4, 4, 4, 100, 100], "padding is no value"
    late = Series(one(NAN, NAN, 100), np.array([2]))
    assert np.isnan(late.filled(rule).values[0, :2]).all() and late.unmeasured.all()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.6, 0.95]), st.sampled_from(["forward", "mean"]))
def test_arrays_and_tensors_are_filled_alike(seed, share, rule):
    X = with_gaps(seed, share=share)
    lengths = np.random.default_rng(seed).integers(1, 8, len(X))
    for steps in (None, lengths):
        expected = Series(X, steps).filled(rule, otherwise=-1.0).values
        made = fill_tensor(torch.tensor(X), rule, None if steps is None else torch.tensor(steps), otherwise=-1.0)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-12)
        known = ~np.isnan(X)
        assert np.array_equal(expected[known], X[known]) and np.isfinite(expected).all()
        assert share or (expected is X and torch.equal(made, torch.tensor(X))), "without gaps, as they are"


def test_gradients_reach_what_fills_a_gap_and_huge_numbers_are_none():
    x = torch.tensor([NAN, 1.0, NAN, NAN, 3.0]).reshape(1, 5, 1).requires_grad_()
    for rule, expected in (("forward", [0, 4, 0, 0, 1]), ("mean", [0, 2.5, 0, 0, 2.5])):
        (gradient,) = torch.autograd.grad(fill_tensor(x, rule).sum(), x)
        assert gradient.flatten().tolist() == expected
    X = np.full((1, 4, 1), 3e38, dtype=np.float32)
    X[:, ::2] *= -1
    assert missing_entries(X) is None
    X[0, 1] = NAN
    gaps = missing_entries(X)
    assert gaps.ravel().tolist() == [False, True, False, False]
    assert differs(one(1, 2, 4), one(1, NAN, 3)).ravel().tolist() == [False, False, True]
