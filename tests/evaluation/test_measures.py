"""Measures of an explanation: values computed by hand, invariants, and other implementations."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.evaluation import measures
from sparcets.evaluation import measures as module
from sparcets.evaluation.evaluate import EXPLANATION_MEASURES

PLACED = ("sparsity", "steps_touched", "features_touched", "segments", "segment_length", "segments_per_feature")
COUNTS = [EXPLANATION_MEASURES[name] for name in PLACED]
EACH = list(EXPLANATION_MEASURES.values())

# Changes in the data's own units; the second feature's standard deviation is 2.
DELTA = np.array([[[1, -2], [0, 4], [0, 0]], [[0, 0], [3, 8], [0, 0]]], dtype=np.float32)
SCALE = [1.0, 2.0]


@st.composite
def series(draw):
    """Return query, delta (batch, time, features), scale and lengths."""
    B, T, F = draw(st.integers(1, 4)), draw(st.integers(1, 6)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    query = rng.normal(size=(B, T, F)).cumsum(1)
    delta = rng.normal(size=(B, T, F)) * (rng.random((B, T, F)) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    return query, delta, rng.uniform(0.1, 10, F), rng.integers(1, T + 1, B)


@pytest.mark.parametrize("measure", EACH)
@settings(max_examples=20, deadline=None)
@given(case=series())
def test_order_batching_and_padding_make_no_difference(make_explanation, measure, case):
    query, delta, scale, lengths = case
    e = make_explanation(delta, query=query, scale=scale, lengths=lengths)
    value = measure(e)
    assert value.shape == (len(query),) and value.dtype == np.float64
    assert measure(e[:0]).shape == (0,)
    order = np.arange(len(e))[::-1]
    np.testing.assert_allclose(measure(e[order]), value[order], rtol=1e-12)
    noise = np.random.default_rng(0).normal(size=(2, *query.shape))
    noise[:, np.arange(query.shape[1]) < lengths[:, None]] = 0
    noisy = make_explanation(delta + noise[0], query=query + noise[1], scale=scale, lengths=lengths)
    np.testing.assert_allclose(measure(noisy), value, rtol=1e-6, atol=1e-12)
    for i, n in enumerate(lengths):
        alone = make_explanation(delta[i : i + 1, :n], query=query[i : i + 1, :n], scale=scale)
        np.testing.assert_allclose(measure(alone), value[i : i + 1], rtol=1e-12)


def test_distances_by_hand(make_explanation):
    e = make_explanation(DELTA, query=1, scale=SCALE, center=5.0)
    delta = measures.standardised_delta(e)
    np.testing.assert_array_equal(delta, [[[1, -1], [0, 2], [0, 0]], [[0, 0], [3, 4], [0, 0]]])
    assert delta.dtype == np.float64
    np.testing.assert_allclose(measures.similarity(e), [4 / 6, 7 / 6])
    np.testing.assert_allclose(measures.l2(e), [math.sqrt(6), 5])
    np.testing.assert_allclose(measures.linf(e), [2, 4])
    # From 0 to (1, -1), to (0, 2), to (0, 0); and to (3, 4) and back.
    np.testing.assert_allclose(measures.smoothness(e), [(math.sqrt(2) + math.sqrt(10) + 2) / 6, (5 + 5) / 6])


def test_dtw_by_hand(make_explanation):
    query = np.array([[[0], [0], [1], [0]], [[0], [2], [0], [5]]])
    moved = np.array([[[0], [1], [0], [0]], [[1], [2], [2], [5]]])
    # A peak that comes one step earlier costs nothing. Second: the first steps always meet, 0 and 1, and the 0 of the
    # third step meets nothing nearer than 2 before the last steps meet: 1 + 4.
    np.testing.assert_allclose(measures.dtw(make_explanation(moved - query, query=query)), [0, math.sqrt(5)])
    # Each feature alone could be warped onto itself, one forwards and one backwards; together they cannot: the 3 of
    # each meets a 0, whichever way the path goes.
    query = np.array([[[0, 0], [0, 3], [3, 0], [0, 0]]])
    moved = query[:, :, ::-1]
    for feature in (slice(0, 1), slice(1, 2)):
        assert measures.dtw(make_explanation((moved - query)[:, :, feature], query=query[:, :, feature])) == 0
    assert measures.dtw(make_explanation(moved - query, query=query)) == pytest.approx(math.sqrt(18))


def test_chunks_make_no_difference(make_explanation, monkeypatch):
    rng = np.random.default_rng(0)
    e = make_explanation(rng.normal(size=(7, 5, 2)), query=rng.normal(size=(7, 5, 2)), lengths=[5, 1, 3, 5, 2, 4, 5])
    whole = measures.dtw(e)
    monkeypatch.setattr(module, "_DTW_ENTRIES", 25)  # two series at a time, and one left over
    np.testing.assert_array_equal(measures.dtw(e), whole)


# Feature 0 changes at steps 0, 2 and 3; feature 1 at step 2; feature 2 never. Second answer: nothing but step 1.
PLACES = np.array([[[1, 0, 0], [0, 0, 0], [2, 5, 0], [-1, 0, 0]], [[0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]]])
FROZEN = np.array([[True, True, True], [False, True, False], [False, True, False], [True, True, False]])


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({}, [[4 / 12, 3 / 12], [3 / 4, 1 / 4], [2 / 3, 3 / 3], [3, 3], [4 / 3, 1], [3 / 2, 1]]),
        ({"lengths": [3, 2]}, [[3 / 9, 3 / 6], [2 / 3, 1 / 2], [2 / 3, 3 / 3], [3, 3], [1, 1], [3 / 2, 1]]),
        # What may not change is in no share: a feature; or most of the first step and of a feature.
        (
            {"mutable": [True] * 2 + [False]},
            [[4 / 8, 2 / 8], [3 / 4, 1 / 4], [2 / 2, 2 / 2], [3, 3], [4 / 3, 1], [3 / 2, 1]],
        ),
        ({"frozen": FROZEN}, [[1 / 5, 2 / 5], [1 / 3, 1 / 3], [1 / 2, 2 / 2], [3, 3], [4 / 3, 1], [3 / 2, 1]]),
        ({"mutable": False}, [[0, 0], [0, 0], [0, 0], [3, 3], [4 / 3, 1], [3 / 2, 1]]),
    ],
    ids=["plain", "padded", "immutable", "frozen", "nothing mutable"],
)
def test_counts_by_hand(make_explanation, known, expected):
    e = make_explanation(PLACES, **known)
    for name, values in zip(PLACED, expected, strict=True):
        np.testing.assert_allclose(EXPLANATION_MEASURES[name](e), values, err_msg=name)


def test_no_change_has_no_segments(make_explanation):
    e = make_explanation(np.zeros((2, 3, 2)))
    assert all(measure(e).tolist() == [0, 0] for measure in COUNTS[:4])
    assert all(np.isnan(measure(e)).all() for measure in COUNTS[4:])


def test_outputs_by_hand(make_explanation):
    proba = [[0, 0, 0, 1.0], [1.0, 0, 0, 0], [0.1, 0.6, 0.3, 0], [0.2, 0.2, 0.6, 0.0]]
    e = make_explanation(np.ones((4, 1, 1)), target=[3, 3, 1, 0], proba_after=proba)
    expected = {"valid": [1, 0, 1, 0], "precision": [0, 1, 0, 1], "probability": [1, 0, 0.6, 0.2]}
    assert {name: EXPLANATION_MEASURES[name](e).tolist() for name in expected} == expected and measures.coverage(
        e
    ) == 0.5
    assert measures.index_distance(e).tolist() == [0, 3, 0, 2]
    third, fourth = math.sqrt(0.1**2 + 0.4**2 + 0.3**2), math.sqrt(0.8**2 + 0.2**2 + 0.6**2)
    np.testing.assert_allclose(measures.probability_distance(e), [0, math.sqrt(2), third, fourth])


def test_coverage_counts_queries_not_answers(make_explanation):
    # Query 0: both answers; query 1: one of two; query 7: none; query 9: needed none.
    e = make_explanation(
        np.ones((8, 1, 1)),
        query_index=[0, 0, 1, 1, 7, 7, 9, 9],
        valid=[True, True, False, True, False, False, True, True],
        status=["generated"] * 3 + ["refined"] + ["not_found"] * 2 + ["unchanged"] * 2,
    )
    assert measures.coverage(e) == measures.coverage(e[::-1]) == pytest.approx(2 / 3)
    assert measures.coverage(e[4:6]) == 0
    assert np.isnan(measures.coverage(e[6:])) and np.isnan(measures.coverage(e[[]]))


def flat(make_explanation, delta, **known):
    """Return valid answers with these changes (batch, entries), as series of one feature."""
    return make_explanation(np.asarray(delta, dtype=np.float64)[..., None], **known)


def test_universality_by_hand(make_explanation):
    # Means of the others: (1, 2), (2, 1), (1, 1). Residual: 1+4, 4+1, 1+1 = 12; total: 4 + 4 + 8 = 16.
    expected = pytest.approx(1 - 12 / 16)
    assert measures.universality(flat(make_explanation, [[2, 0], [0, 2], [2, 2]], scale=7.0)) == expected
    padded = flat(make_explanation, [[2, 0, 9], [0, 2, -9], [2, 2, 5]], lengths=[2, 2, 2])
    assert measures.universality(padded) == expected
    # Only valid answers that changed something count.
    status, ok = ["generated"] * 4 + ["unchanged"], [True, True, True, False, True]
    some = flat(make_explanation, [[2, 0], [0, 2], [2, 2], [50, 50], [0, 0]], valid=ok, status=status)
    assert measures.universality(some) == expected
    # One residual per target, opposite to each other: universal per target, although the targets share nothing.
    opposite = flat(make_explanation, [[1.0, 0], [1.0, 0], [-1.0, 0], [-1.0, 0]], target=[0, 0, 1, 1])
    assert measures.universality(opposite) == pytest.approx(1.0)
    for nothing in ([[1.0, 2.0]], np.zeros((3, 2))):
        assert np.isnan(measures.universality(flat(make_explanation, nothing)))
    assert np.isnan(measures.universality(opposite[[]]))


# Three answers to query 0 and one to query 1; the second feature's standard deviation is 2.
SEVERAL = np.array([[[1, 2], [0, 0], [0, 0]], [[1, 0], [0, 0], [3, 0]], [[0, 4], [0, 0], [0, 0]], [[9, 9]] * 3])


@pytest.mark.parametrize(
    ("known", "apart", "places"),
    [
        # Standardised L1 / 6: first-second (1 + 3) / 6, first-third (1 + 1) / 6, second-third (1 + 3 + 2) / 6.
        # Changed entries: first {00, 01}, second {00, 20}, third {01}: Jaccard 1/3, 1/2, 0.
        ({}, [3 / 6, 5 / 6, 4 / 6, np.nan], [(2 / 3 + 1 / 2) / 2, (2 / 3 + 1) / 2, (1 / 2 + 1) / 2, np.nan]),
        ({"valid": [True, False, True, True]}, [2 / 6, np.nan, 2 / 6, np.nan], [1 / 2, np.nan, 1 / 2, np.nan]),
        ({"valid": [True, False, False, True]}, [np.nan] * 4, [np.nan] * 4),
        # The change of the second answer at step 2 is in its padding.
        (
            {"lengths": [2, 2, 2, 3]},
            [(1 + 2) / 8, (1 + 3) / 8, (2 + 3) / 8, np.nan],
            [(1 / 2 + 1 / 2) / 2, (1 / 2 + 1) / 2, (1 / 2 + 1) / 2, np.nan],
        ),
    ],
    ids=["all valid", "one not valid", "alone", "padded"],
)
def test_diversity_by_hand(make_explanation, known, apart, places):
    e = make_explanation(SEVERAL, query=1.0, scale=SCALE, query_index=[0, 0, 0, 1], **known)
    np.testing.assert_allclose(measures.diversity(e), apart)
    np.testing.assert_allclose(measures.place_diversity(e), places)
    order = [2, 3, 0, 1]
    np.testing.assert_allclose(measures.diversity(e[order]), np.array(apart)[order])
