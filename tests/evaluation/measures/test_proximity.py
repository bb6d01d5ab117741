"""Distances between query and counterfactual: values computed by hand, invariants, and another implementation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.evaluation import measures as proximity
from sparcets.evaluation.measures import dtw, l2, linf, n_entries, similarity, standardised_delta

MEASURES = [similarity, l2, linf, dtw]

# Changes in the data's own units; the second feature's standard deviation is 2.
DELTA = np.array([[[1, -2], [0, 4], [0, 0]], [[0, 0], [3, 8], [0, 0]]], dtype=np.float32)
SCALE = [1.0, 2.0]


def test_changes_are_in_standard_deviations(make_explanation):
    expected = [[[1, -1], [0, 2], [0, 0]], [[0, 0], [3, 4], [0, 0]]]
    delta = standardised_delta(make_explanation(DELTA, query=1, scale=SCALE, center=5.0))
    np.testing.assert_array_equal(delta, expected)
    assert delta.dtype == np.float64


def test_by_hand(make_explanation):
    e = make_explanation(DELTA, scale=SCALE)
    np.testing.assert_allclose(similarity(e), [4 / 6, 7 / 6])
    np.testing.assert_allclose(l2(e), [math.sqrt(6), 5])
    np.testing.assert_allclose(linf(e), [2, 4])


def test_dtw_by_hand(make_explanation):
    query = np.array([[[0], [0], [1], [0]], [[0], [2], [0], [5]]])
    moved = np.array([[[0], [1], [0], [0]], [[1], [2], [2], [5]]])
    # A peak that comes one step earlier costs nothing. Second: the first steps always meet, 0 and 1, and the 0 of the
    # third step meets nothing nearer than 2 before the last steps meet: 1 + 4.
    np.testing.assert_allclose(dtw(make_explanation(moved - query, query=query)), [0, math.sqrt(5)])
    np.testing.assert_allclose(l2(make_explanation(moved - query, query=query)), [math.sqrt(2), math.sqrt(5)])


def test_features_warp_together(make_explanation):
    # Each feature alone could be warped onto itself, one forwards and one backwards; together they cannot.
    query = np.array([[[0, 0], [0, 3], [3, 0], [0, 0]]])
    moved = query[:, :, ::-1]
    apart = make_explanation(moved - query, query=query)
    assert dtw(make_explanation((moved - query)[:, :, :1], query=query[:, :, :1])) == 0
    assert dtw(make_explanation((moved - query)[:, :, 1:], query=query[:, :, 1:])) == 0
    # The 3 of one feature meets a 0 and the 3 of the other likewise: twice, whichever way the path goes.
    assert dtw(apart) == pytest.approx(math.sqrt(18))


def test_padding_does_not_count(make_explanation):
    e = make_explanation(DELTA, scale=SCALE, lengths=[3, 2])
    assert n_entries(e).tolist() == [6, 4]
    np.testing.assert_allclose(similarity(e), [4 / 6, 7 / 4])


def test_loss_and_measure_agree(make_explanation):
    import torch

    from sparcets.training import losses

    e = make_explanation(np.random.default_rng(0).normal(size=(4, 6, 2)), scale=SCALE)
    np.testing.assert_allclose(similarity(e), losses.similarity(torch.tensor(standardised_delta(e))), rtol=1e-6)


@pytest.mark.parametrize(("T", "F"), [(1, 1), (2, 3), (7, 1), (20, 4)])
def test_dtw_equals_that_of_aeon(make_explanation, T, F):
    distances = pytest.importorskip("aeon.distances")
    rng = np.random.default_rng(T)
    query, other = rng.normal(size=(2, 5, T, F)).cumsum(2)
    scale = rng.uniform(0.5, 2, F)
    expected = [
        math.sqrt(distances.dtw_distance(np.ascontiguousarray((q / scale).T), np.ascontiguousarray((c / scale).T)))
        for q, c in zip(query, other, strict=True)
    ]
    ours = dtw(make_explanation(other - query, query=query, scale=scale, center=3.0))
    np.testing.assert_allclose(ours, expected, rtol=1e-9)


@st.composite
def series(draw):
    """Return query, delta (batch, time, features), scale and lengths."""
    B, T, F = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    query = rng.normal(size=(B, T, F)).cumsum(1)
    delta = rng.normal(size=(B, T, F)) * (rng.random((B, T, F)) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    return query, delta, rng.uniform(0.1, 10, F), rng.integers(1, T + 1, B)


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=30, deadline=None)
@given(case=series())
def test_invariants(make_explanation, measure, case):
    query, delta, scale, lengths = case
    e = make_explanation(delta, query=query, scale=scale, lengths=lengths)
    value = measure(e)
    assert value.shape == (len(query),)
    assert value.dtype == np.float64
    assert (value >= 0).all()
    # No change has distance 0.
    assert (measure(make_explanation(np.zeros_like(delta), query=query, scale=scale, lengths=lengths)) == 0).all()
    # Order, batching, and exchanging query and counterfactual make no difference.
    order = np.arange(len(e))[::-1]
    np.testing.assert_allclose(measure(e[order]), value[order], rtol=1e-12)
    np.testing.assert_allclose([measure(answer).item() for answer in e], value, rtol=1e-12)
    # A tolerance of 1e-6, because query + delta is rounded.
    back = make_explanation(-delta, query=query + delta, scale=scale, lengths=lengths)
    np.testing.assert_allclose(measure(back), value, rtol=1e-6, atol=1e-12)
    # Values in the padding do not matter, and a padded series has the same distance as without padding.
    noise = np.random.default_rng(0).normal(size=(2, *query.shape))
    noise[:, np.arange(query.shape[1]) < lengths[:, None]] = 0
    noisy = make_explanation(delta + noise[0], query=query + noise[1], scale=scale, lengths=lengths)
    np.testing.assert_allclose(measure(noisy), value, rtol=1e-6, atol=1e-12)
    for i, n in enumerate(lengths):
        alone = make_explanation(delta[i : i + 1, :n], query=query[i : i + 1, :n], scale=scale)
        np.testing.assert_allclose(measure(alone), value[i], rtol=1e-12)
        np.testing.assert_allclose(similarity(alone), np.abs(delta[i, :n] / scale).mean(), rtol=1e-6)
    # The distances are ordered.
    assert (dtw(e) <= l2(e) * (1 + 1e-9) + 1e-12).all()
    assert (linf(e) <= l2(e) * (1 + 1e-9)).all()


def test_dtw_in_chunks(make_explanation, monkeypatch):
    rng = np.random.default_rng(0)
    e = make_explanation(rng.normal(size=(7, 5, 2)), query=rng.normal(size=(7, 5, 2)), lengths=[5, 1, 3, 5, 2, 4, 5])
    whole = dtw(e)
    monkeypatch.setattr(proximity, "_DTW_ENTRIES", 25)  # two series at a time, and one left over
    np.testing.assert_array_equal(dtw(e), whole)


@pytest.mark.parametrize("measure", MEASURES)
def test_no_answers(make_explanation, measure):
    assert measure(make_explanation(np.zeros((0, 4, 2)))).shape == (0,)
