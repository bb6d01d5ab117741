"""One perturbation for all queries, or one for each."""

from dataclasses import replace

import numpy as np
import pytest

from sparcets.datasets.scaling import Scaler
from sparcets.explanation import Explanation
from sparcets.metrics.universality import universality
from sparcets.series_info import SeriesInfo


def explanation(delta, *, target=1, scale=1.0):
    """Return valid answers with these changes (batch, entries), as series of one feature."""
    delta = np.asarray(delta, dtype=np.float64)[..., None]
    B, T, _ = delta.shape
    info = SeriesInfo(
        feature_names=("a",),
        class_names=("x", "y"),
        units=None,
        sampling_rate=None,
        mutable=np.array([True]),
        n_steps=T,
        scaler=Scaler(np.zeros(1), np.full(1, scale)),
        span=np.ones(1),
    )
    target = np.broadcast_to(target, (B,)).copy()
    return Explanation(
        query=np.zeros((B, T, 1)),
        counterfactual=delta,
        target=target,
        status=np.full(B, "generated"),
        reason=np.full(B, ""),
        query_index=np.arange(B),
        proba_before=np.eye(2)[1 - target],
        proba_after=np.eye(2)[target],
        info=info,
        mutable=np.array([True]),
    )


def test_by_hand():
    # Means of the others: (1, 2), (2, 1), (1, 1).
    # Left: 1+4, 4+1, 1+1 = 12; in all: 4 + 4 + 8 = 16.
    assert universality(explanation([[2, 0], [0, 2], [2, 2]])) == pytest.approx(1 - 12 / 16)


def test_the_unit_does_not_matter():
    delta = np.random.default_rng(0).normal(1, 1, (6, 4))
    assert universality(explanation(delta, scale=7.0)) == pytest.approx(universality(explanation(delta)))


def test_one_residual_for_all_is_1():
    assert universality(explanation(np.tile([1.0, -2, 0], (9, 1)))) == pytest.approx(1.0)


def test_independent_residuals_are_near_0_or_below():
    value = universality(explanation(np.random.default_rng(0).normal(size=(50, 200))))
    assert -0.05 < value < 0.0  # expected: -1 / (n - 1)


def test_each_target_has_a_mean_of_its_own():
    # One residual per target, opposed: universal for each of them, though nothing is common.
    e = explanation([[1.0, 0], [1.0, 0], [-1.0, 0], [-1.0, 0]], target=[0, 0, 1, 1])
    assert universality(e) == pytest.approx(1.0)


def test_only_valid_answers_that_changed_something_count():
    e = explanation([[2, 0], [0, 2], [2, 2], [50, 50], [0, 0]])
    after = e.proba_after.copy()
    after[3] = [1.0, 0.0]  # not valid
    status = np.array(["generated"] * 4 + ["unchanged"])
    assert universality(replace(e, proba_after=after, status=status)) == pytest.approx(1 - 12 / 16)


def test_nothing_to_compare_is_no_number():
    assert np.isnan(universality(explanation([[1.0, 2.0]])))
    assert np.isnan(universality(explanation(np.zeros((3, 2)))))
