"""Validity, coverage, and the three definitions of precision, by hand."""

import math

import numpy as np
import pytest

from sparcets.evaluation.measures import (
    coverage,
    error_rate,
    index_distance,
    probability_distance,
    target_probability,
    valid,
)

PROBA = [[0, 0, 0, 1.0], [1.0, 0, 0, 0], [0.1, 0.6, 0.3, 0], [0.2, 0.2, 0.6, 0.0]]


@pytest.fixture
def e(make_explanation):
    return make_explanation(np.ones((4, 1, 1)), target=[3, 3, 1, 0], proba_after=PROBA)


def test_valid_is_where_the_target_is_most_probable(e):
    assert valid(e).tolist() == [1, 0, 1, 0]
    assert valid(e).dtype == np.float64


def test_error_rate_is_one_minus_validity(e):
    assert error_rate(e).tolist() == [0, 1, 0, 1]
    np.testing.assert_array_equal(error_rate(e), 1 - valid(e))


def test_target_probability_is_after_the_change(e):
    assert target_probability(e).tolist() == [1, 0, 0.6, 0.2]


def test_index_distance_is_between_class_numbers(e):
    assert index_distance(e).tolist() == [0, 3, 0, 2]


def test_probability_distance_is_l2_to_certainty(e):
    third = math.sqrt(0.1**2 + 0.4**2 + 0.3**2)
    fourth = math.sqrt(0.8**2 + 0.2**2 + 0.6**2)
    np.testing.assert_allclose(probability_distance(e), [0, math.sqrt(2), third, fourth])


@pytest.mark.parametrize("measure", [valid, error_rate, target_probability, index_distance, probability_distance])
def test_order_does_not_matter_and_none_give_none(e, measure):
    np.testing.assert_array_equal(measure(e[[2, 0, 3, 1]]), measure(e)[[2, 0, 3, 1]])
    assert measure(e[[]]).shape == (0,)


def test_coverage_counts_queries_not_answers(make_explanation):
    # Query 0: both answers; query 1: one of two; query 7: none; query 9: needed none.
    e = make_explanation(
        np.ones((8, 1, 1)),
        query_index=[0, 0, 1, 1, 7, 7, 9, 9],
        valid=[True, True, False, True, False, False, True, True],
        status=["generated"] * 3 + ["refined"] + ["not_found"] * 2 + ["unchanged"] * 2,
    )
    assert coverage(e) == pytest.approx(2 / 3)
    assert coverage(e[::-1]) == pytest.approx(2 / 3)
    assert coverage(e[4:6]) == 0
    assert np.isnan(coverage(e[6:]))
    assert np.isnan(coverage(e[[]]))


def test_coverage_of_single_answers_is_their_validity(e):
    assert coverage(e) == valid(e).mean() == 0.5
