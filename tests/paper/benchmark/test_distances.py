"""Two explanations of the same queries, answer by answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparcets.core.errors import ShapeError
from sparcets_paper.benchmark.properties import residual_distance, stays_in_place, stays_valid
from tests.evaluation import conftest as explanations

make_explanation = explanations.make_explanation  # a fixture
MEASURES = [stays_valid, stays_in_place, residual_distance]

# Four answers of 3 steps × 2 features; the second feature's standard deviation is 2.
ONE = np.tile([[1, 2], [0, 0], [0, 0]], (4, 1, 1))
OTHER = np.tile([[1, 0], [0, 0], [3, 0]], (4, 1, 1))
SCALE = [1.0, 2.0]


@pytest.fixture
def two(make_explanation):
    def make(**known):
        e = make_explanation(ONE, scale=SCALE, valid=[True, True, False, False], **known)
        other = make_explanation(OTHER, query=0.5, scale=99.0, valid=[True, False, True, False], **known)
        return e, other

    return make


def test_by_hand(two):
    e, other = two()
    np.testing.assert_array_equal(stays_valid(e, other), [1, 0, np.nan, np.nan])
    np.testing.assert_allclose(stays_in_place(e, other), [1 / 3, np.nan, np.nan, np.nan])
    # Standardised by the scaler of the first: |0 - 3| + |1 - 0|.
    np.testing.assert_allclose(residual_distance(e, other), [4 / 6, np.nan, np.nan, np.nan])


def test_padding_does_not_count(two):
    e, other = two(lengths=[2, 2, 2, 2])
    np.testing.assert_allclose(stays_in_place(e, other)[0], 1 / 2)
    np.testing.assert_allclose(residual_distance(e, other)[0], 1 / 4)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_invariants(make_explanation, seed):
    rng = np.random.default_rng(seed)
    one, other = (
        make_explanation(rng.normal(size=(5, 4, 2)) * (rng.random((5, 4, 2)) < 0.5), valid=rng.random(5) < 0.7)
        for _ in range(2)
    )
    order = rng.permutation(5)
    for measure in MEASURES:
        np.testing.assert_array_equal(measure(one[order], other[order]), measure(one, other)[order])
        same = measure(one, one)
        assert (same[one.valid] == (0 if measure is residual_distance else 1)).all()
        assert np.isnan(same[~one.valid]).all()
        assert measure(one[[]], other[[]]).shape == (0,)
    for measure in (stays_in_place, residual_distance):
        np.testing.assert_allclose(measure(one, other), measure(other, one))


OTHER_QUERIES = {"query_index": [0, 2, 1], "target": [1, 1, 0], "lengths": [2, 2, 1]}


@pytest.mark.parametrize("name", OTHER_QUERIES)
@pytest.mark.parametrize("measure", MEASURES)
def test_explanations_of_other_queries_raise(make_explanation, measure, name):
    e = make_explanation(np.ones((3, 2, 1)))
    with pytest.raises(ShapeError, match=f"differ in {name}. Explain the same queries twice, with the same target"):
        measure(e, make_explanation(np.ones((3, 2, 1)), **{name: OTHER_QUERIES[name]}))


@pytest.mark.parametrize("measure", MEASURES)
def test_explanations_of_another_shape_raise(make_explanation, measure):
    e = make_explanation(np.ones((3, 2, 1)))
    with pytest.raises(ShapeError, match=r"got answers of shape \(3, 2, 1\) and \(2, 2, 1\).*Explain the same queries"):
        measure(e, e[:2])
