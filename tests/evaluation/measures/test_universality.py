"""Universality: 1 for one perturbation shared by all queries, near 0 for independent ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.data.moving_box import load_moving_box
from sparcets.evaluation.measures import universality


@pytest.fixture
def explain(make_explanation):
    """Return valid answers with these changes (batch, entries), as series of one feature."""
    return lambda delta, **known: make_explanation(np.asarray(delta, dtype=np.float64)[..., None], **known)


def test_by_hand(explain):
    # Means of the others: (1, 2), (2, 1), (1, 1).
    # Residual: 1+4, 4+1, 1+1 = 12; total: 4 + 4 + 8 = 16.
    assert universality(explain([[2, 0], [0, 2], [2, 2]])) == pytest.approx(1 - 12 / 16)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 6))
def test_equals_the_leave_one_out_formula(make_explanation, seed, n):
    delta = np.random.default_rng(seed).normal(0.5, 1, (n, 3, 2))
    others = np.stack([np.delete(delta, i, axis=0).mean(0) for i in range(n)])
    expected = 1 - ((delta - others) ** 2).sum() / (delta**2).sum()
    assert universality(make_explanation(delta)) == pytest.approx(expected)
    assert universality(make_explanation(delta[::-1])) == pytest.approx(expected)


def test_the_unit_does_not_matter(explain):
    delta = np.random.default_rng(0).normal(1, 1, (6, 4))
    assert universality(explain(delta, scale=7.0)) == pytest.approx(universality(explain(delta)))


def test_the_same_residual_for_every_query_is_1(make_explanation):
    rng = np.random.default_rng(0)
    query, residual = rng.normal(size=(40, 20, 5)), rng.normal(size=(20, 5))
    planted = np.tile(residual, (40, 1, 1))
    assert universality(make_explanation(planted, query=query)) == pytest.approx(1.0)
    noisy = planted + 0.1 * rng.normal(size=planted.shape)
    assert universality(make_explanation(noisy, query=query)) > 0.95
    individual = rng.normal(size=planted.shape)
    assert abs(universality(make_explanation(individual, query=query))) < 0.05


def test_independent_residuals_are_near_0_or_below(explain):
    value = universality(explain(np.random.default_rng(0).normal(size=(50, 200))))
    assert -0.05 < value < 0.0  # expected: -1 / (n - 1)


def test_each_target_has_a_mean_of_its_own(explain):
    # One residual per target, opposite to each other: universal per target, although the targets share nothing.
    e = explain([[1.0, 0], [1.0, 0], [-1.0, 0], [-1.0, 0]], target=[0, 0, 1, 1])
    assert universality(e) == pytest.approx(1.0)


def test_only_valid_answers_that_changed_something_count(explain):
    e = explain(
        [[2, 0], [0, 2], [2, 2], [50, 50], [0, 0]],
        valid=[True, True, True, False, True],
        status=["generated"] * 4 + ["unchanged"],
    )
    assert universality(e) == pytest.approx(1 - 12 / 16)


def test_padding_does_not_count(explain):
    e = explain([[2, 0, 9], [0, 2, -9], [2, 2, 5]], lengths=[2, 2, 2])
    assert universality(e) == pytest.approx(1 - 12 / 16)


def test_nan_where_nothing_can_be_compared(explain):
    assert np.isnan(universality(explain([[1.0, 2.0]])))
    assert np.isnan(universality(explain(np.zeros((3, 2)))))
    assert np.isnan(universality(explain([[1.0, 2.0]])[[]]))


def test_the_perfect_counterfactual_of_moving_box_is_not_universal(make_explanation):
    ds = load_moving_box(n_per_combination=30)
    flip = -2 * (2 * ds.y_test - 1)[:, None, None] * ds.salient_test
    e = make_explanation(flip.astype(np.float32), query=ds.X_test, target=1 - ds.y_test, scale=ds.X_train.std((0, 1)))
    assert 0.1 < universality(e) < 0.35
