"""Smoothness: values computed by hand, and invariants."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.evaluation.measures import smoothness, standardised_delta

DELTA = np.array([[[1, -2], [0, 4], [0, 0]], [[0, 0], [3, 8], [0, 0]]], dtype=np.float32)
SCALE = [1.0, 2.0]


def test_by_hand(make_explanation):
    # First: from 0 to (1, -1), to (0, 2), to (0, 0). Second: to (3, 4) and back.
    expected = [(math.sqrt(2) + math.sqrt(10) + 2) / 6, (5 + 5) / 6]
    np.testing.assert_allclose(smoothness(make_explanation(DELTA, scale=SCALE)), expected)


def test_padding_does_not_count(make_explanation):
    e = make_explanation(DELTA, scale=SCALE, lengths=[3, 2])  # the second ends with its change: no step back to 0
    np.testing.assert_allclose(smoothness(e), [(math.sqrt(2) + math.sqrt(10) + 2) / 6, 5 / 4])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_steps=st.integers(1, 8))
def test_invariants(make_explanation, seed, n_steps):
    rng = np.random.default_rng(seed)
    delta = rng.normal(size=(3, n_steps, 2))
    lengths = rng.integers(1, n_steps + 1, 3)
    e = make_explanation(delta, lengths=lengths)
    value = smoothness(e)
    np.testing.assert_allclose(smoothness(e[[2, 0, 1]]), value[[2, 0, 1]], rtol=1e-12)
    np.testing.assert_allclose(smoothness(make_explanation(3 * delta, lengths=lengths)), 3 * value, rtol=1e-9)
    for i, n in enumerate(lengths):  # values in the padding do not matter
        np.testing.assert_allclose(smoothness(make_explanation(delta[i : i + 1, :n])), value[i], rtol=1e-12)
    assert smoothness(make_explanation(0 * delta)).tolist() == [0, 0, 0]
    # A constant change has a single jump, whatever its length.
    np.testing.assert_allclose(smoothness(make_explanation(np.ones((1, n_steps, 1)))), 1 / n_steps)


def test_loss_and_measure_agree(make_explanation):
    import torch

    from sparcets.training import losses

    e = make_explanation(np.random.default_rng(0).normal(size=(4, 6, 2)), scale=SCALE)
    np.testing.assert_allclose(smoothness(e), losses.smoothness(torch.tensor(standardised_delta(e))), rtol=1e-6)


def test_no_answers(make_explanation):
    assert smoothness(make_explanation(np.zeros((0, 4, 2)))).shape == (0,)
