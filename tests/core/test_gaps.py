"""Missing values: which entries, how many, and what fills them; arrays and tensors alike."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.core.arrays import differs, missing_entries
from sparcets.core.errors import ConfigError
from sparcets.core.series import Series, fill_gaps, never_measured
from sparcets.models.inputs import check_missing
from sparcets.training.networks import fill_gaps as fill_tensor

NAN = np.nan


def one(*values):
    """Return one series of one feature."""
    return np.array(values, dtype=np.float64).reshape(1, -1, 1)


def with_gaps(seed, *, share=0.3, shape=(5, 7, 3), dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=shape).astype(dtype)
    X[rng.random(shape) < share] = NAN
    return X


@pytest.mark.parametrize(("rule", "filled"), [("forward", [2, 2, 2, 2, 5, 5]), ("mean", [3.5, 3.5, 2, 3.5, 5, 3.5])])
def test_the_rules(rule, filled):
    assert fill_gaps(one(NAN, NAN, 2, NAN, 5, NAN), rule).ravel().tolist() == filled


def test_padding_is_no_value():
    X = one(NAN, 4, NAN, 100, 100)
    assert fill_gaps(X, "mean", np.array([3])).ravel().tolist() == [4, 4, 4, 100, 100]
    late = one(NAN, NAN, 100)
    assert np.isnan(fill_gaps(late, "forward", np.array([2]))[0, :2]).all()
    assert never_measured(late, np.array([2])).all() and not never_measured(late).any()


@pytest.mark.parametrize("rule", ["forward", "mean"])
def test_a_feature_without_a_value_gets_another_one(rule):
    X = np.array([[[1.0, NAN], [2.0, NAN]]])
    assert np.isnan(fill_gaps(X, rule)[..., 1]).all()
    assert fill_gaps(X, rule, otherwise=7.0)[..., 1].ravel().tolist() == [7, 7]
    assert never_measured(X).tolist() == [[False, True]]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    share=st.sampled_from([0.0, 0.1, 0.6, 0.95]),
    rule=st.sampled_from(["forward", "mean"]),
)
def test_arrays_and_tensors_are_filled_alike(seed, share, rule):
    X = with_gaps(seed, share=share)
    lengths = np.random.default_rng(seed).integers(1, 8, len(X))
    for steps in (None, lengths):
        expected = fill_gaps(X, rule, steps, otherwise=-1.0)
        made = fill_tensor(torch.tensor(X), rule, None if steps is None else torch.tensor(steps), otherwise=-1.0)
        np.testing.assert_allclose(made.numpy(), expected, rtol=1e-12)
        known = ~np.isnan(X)
        assert np.array_equal(expected[known], X[known]) and np.isfinite(expected).all()


def test_series_without_gaps_are_returned_as_they_are():
    X = with_gaps(0, share=0.0)
    assert fill_gaps(X) is X and missing_entries(X) is None
    x = torch.tensor(X)
    assert torch.equal(fill_tensor(x), x) and torch.equal(fill_tensor(x, "mean"), x)


def test_gradients_reach_the_values_that_fill_a_gap():
    x = torch.tensor([NAN, 1.0, NAN, NAN, 3.0]).reshape(1, 5, 1).requires_grad_()
    for rule, expected in (("forward", [0, 4, 0, 0, 1]), ("mean", [0, 2.5, 0, 0, 2.5])):
        (gradient,) = torch.autograd.grad(fill_tensor(x, rule).sum(), x)
        assert gradient.flatten().tolist() == expected


def test_huge_numbers_are_no_gaps():
    X = np.full((1, 4, 1), 3e38, dtype=np.float32)
    X[:, ::2] *= -1
    assert missing_entries(X) is None
    X[0, 1] = NAN
    assert missing_entries(X).ravel().tolist() == [False, True, False, False]


def test_missing_entries_do_not_count_and_do_not_differ():
    X = one(1, NAN, 3)
    assert Series(X).measured.ravel().tolist() == [True, False, True]
    assert Series(X, np.array([2])).measured.sum() == 1
    assert differs(one(1, 2, 4), X).ravel().tolist() == [False, False, True]


@pytest.mark.parametrize("wrong", ["fill", 0, None, ["mean"]])
def test_what_is_no_rule_is_refused(wrong):
    with pytest.raises(ConfigError, match="missing must be one of refuse, keep, forward, mean, or a function"):
        check_missing(wrong)
