"""Diversity of the answers to one query: values computed by hand, and invariants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.evaluation import measures as module
from sparcets.evaluation.measures import diversity, jaccard, place_diversity

MEASURES = [diversity, place_diversity]

# Three answers to query 0 and one to query 1; the second feature's standard deviation is 2.
DELTA = np.array(
    [
        [[1, 2], [0, 0], [0, 0]],
        [[1, 0], [0, 0], [3, 0]],
        [[0, 4], [0, 0], [0, 0]],
        [[9, 9], [9, 9], [9, 9]],
    ]
)
SCALE = [1.0, 2.0]


@pytest.fixture
def explain(make_explanation):
    return lambda **known: make_explanation(
        DELTA, **{"query": 1.0, "scale": SCALE, "query_index": [0, 0, 0, 1], **known}
    )


def test_by_hand(explain):
    # Standardised L1 / 6: first-second (1 + 3) / 6, first-third (1 + 1) / 6, second-third (1 + 3 + 2) / 6.
    np.testing.assert_allclose(diversity(explain()), [3 / 6, 5 / 6, 4 / 6, np.nan])
    # Changed entries: first {00, 01}, second {00, 20}, third {01}: Jaccard 1/3, 1/2, 0.
    np.testing.assert_allclose(
        place_diversity(explain()), [(2 / 3 + 1 / 2) / 2, (2 / 3 + 1) / 2, (1 / 2 + 1) / 2, np.nan]
    )


def test_only_valid_answers_are_compared(explain):
    e = explain(valid=[True, False, True, True])
    np.testing.assert_allclose(diversity(e), [2 / 6, np.nan, 2 / 6, np.nan])
    np.testing.assert_allclose(place_diversity(e), [1 / 2, np.nan, 1 / 2, np.nan])
    alone = explain(valid=[True, False, False, True])
    assert np.isnan(diversity(alone)).all()
    assert np.isnan(place_diversity(alone)).all()


def test_padding_does_not_count(explain):
    e = explain(lengths=[2, 2, 2, 3])  # the change of the second answer at step 2 is in its padding
    np.testing.assert_allclose(diversity(e), [(1 + 2) / 8, (1 + 3) / 8, (2 + 3) / 8, np.nan])
    np.testing.assert_allclose(place_diversity(e), [(1 / 2 + 1 / 2) / 2, (1 / 2 + 1) / 2, (1 / 2 + 1) / 2, np.nan])


@pytest.mark.parametrize("measure", MEASURES)
def test_equal_answers_have_no_diversity(make_explanation, measure):
    assert measure(make_explanation(np.ones((2, 3, 2)), query_index=[0, 0])).tolist() == [0, 0]
    # The same for two answers that change nothing.
    assert measure(make_explanation(np.zeros((2, 3, 2)), query_index=[0, 0])).tolist() == [0, 0]


@pytest.mark.parametrize("measure", MEASURES)
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_invariants(make_explanation, measure, seed):
    rng = np.random.default_rng(seed)
    delta = rng.normal(size=(9, 4, 2)) * (rng.random((9, 4, 2)) < 0.5)
    known = {"query_index": rng.integers(0, 4, 9), "valid": rng.random(9) < 0.8}
    e = make_explanation(delta, **known)
    value = measure(e)
    order = rng.permutation(9)
    np.testing.assert_allclose(measure(e[order]), value[order])
    # One answer at a time: the mean over the others of its query.
    for i in range(9):
        others = [j for j in range(9) if j != i and e.query_index[j] == e.query_index[i] and e.valid[j]]
        if not e.valid[i] or not others:
            assert np.isnan(value[i])
            continue
        pairs = [measure(make_explanation(delta[[i, j]], query_index=[0, 0]))[0] for j in others]
        assert value[i] == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize("measure", MEASURES)
def test_chunks_make_no_difference(make_explanation, measure, monkeypatch):
    e = make_explanation(np.random.default_rng(0).normal(size=(11, 4, 2)), query_index=np.arange(11) // 4)
    whole = measure(e)
    monkeypatch.setattr(module, "_COMPARED_AT_ONCE", 16)  # two pairs at a time
    np.testing.assert_array_equal(measure(e), whole)


@pytest.mark.parametrize("measure", MEASURES)
def test_no_answers(make_explanation, measure):
    assert measure(make_explanation(np.zeros((0, 4, 2)))).shape == (0,)


def test_jaccard_by_hand():
    one = np.array([[1, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]], dtype=bool)[..., None]
    other = np.array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [1, 0, 1, 0]], dtype=bool)[..., None]
    np.testing.assert_allclose(jaccard(one, other), [1 / 3, 0, 1, 1])
