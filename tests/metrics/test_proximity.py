"""Similarity, sparsity and smoothness, by hand."""

import math

import numpy as np
import pytest

from sparcets.datasets.scaling import Scaler
from sparcets.explanation import Explanation
from sparcets.metrics.proximity import similarity, smoothness, sparsity, standardised_delta
from sparcets.series_info import SeriesInfo

# Changes in the data's own units; the second feature's standard deviation is 2.
DELTA = np.array([[[1, -2], [0, 4], [0, 0]], [[0, 0], [3, 8], [0, 0]]], dtype=np.float32)


def explanation(delta=DELTA, *, lengths=None, mutable=(True, True)):
    B, T, F = delta.shape
    info = SeriesInfo(
        feature_names=("a", "b"),
        class_names=("x", "y"),
        units=None,
        sampling_rate=None,
        mutable=np.array([True, True]),
        n_steps=T,
        scaler=Scaler(np.zeros(F), np.array([1.0, 2.0])),
        span=np.ones(F),
    )
    query = np.ones((B, T, F), dtype=np.float32)
    return Explanation(
        query=query,
        counterfactual=query + delta,
        target=np.ones(B, dtype=int),
        status=np.full(B, "generated"),
        reason=np.full(B, ""),
        query_index=np.arange(B),
        proba_before=np.tile([0.9, 0.1], (B, 1)),
        proba_after=np.tile([0.1, 0.9], (B, 1)),
        info=info,
        mutable=np.array(mutable),
        lengths=None if lengths is None else np.array(lengths),
    )


def test_changes_are_in_standard_deviations():
    expected = [[[1, -1], [0, 2], [0, 0]], [[0, 0], [3, 4], [0, 0]]]
    np.testing.assert_array_equal(standardised_delta(explanation()), expected)


def test_by_hand():
    e = explanation()
    np.testing.assert_allclose(similarity(e), [4 / 6, 7 / 6])
    np.testing.assert_allclose(sparsity(e), [3 / 6, 2 / 6])
    np.testing.assert_allclose(smoothness(e), [(math.sqrt(2) + math.sqrt(10) + 2) / 6, (5 + 5) / 6])


def test_padding_does_not_count():
    e = explanation(lengths=[3, 2])  # the second series ends with its change: no step back to 0
    np.testing.assert_allclose(similarity(e), [4 / 6, 7 / 4])
    np.testing.assert_allclose(sparsity(e), [3 / 6, 2 / 4])
    np.testing.assert_allclose(smoothness(e), [(math.sqrt(2) + math.sqrt(10) + 2) / 6, 5 / 4])


def test_sparsity_is_a_share_of_the_mutable_entries():
    delta = DELTA.copy()
    delta[..., 0] = 0
    np.testing.assert_allclose(sparsity(explanation(delta, mutable=(False, True))), [2 / 3, 1 / 3])


@pytest.mark.parametrize("measure", [similarity, sparsity, smoothness])
def test_no_change_costs_nothing(measure):
    assert measure(explanation(np.zeros_like(DELTA))).tolist() == [0.0, 0.0]


def test_losses_and_measures_are_one():
    import torch

    from sparcets.training import losses

    delta = np.random.default_rng(0).normal(size=(4, 6, 2)).astype(np.float32)
    e = explanation(delta)
    standard = torch.tensor(standardised_delta(e))
    np.testing.assert_allclose(similarity(e), losses.similarity(standard), rtol=1e-6)
    np.testing.assert_allclose(smoothness(e), losses.smoothness(standard), rtol=1e-6)
    np.testing.assert_allclose(sparsity(e), losses.count_changed(standard, 2), rtol=1e-6)
