"""FoundAnswers: which proposals are taken, in which order they are returned, and the reason where none was taken."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.explainers.request import Request
from sparcets.explainers.sparcets.found_answers import FoundAnswers
from sparcets.explanation.series_info import SeriesInfo
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule

X, Y = make_series(36, n_steps=12)
INFO = SeriesInfo.from_series(X, ("calm", "brisk", "wild"))
QUERIES = X[Y != 1][:3]
CLASSIFIER = sp.wrap(MeanModule(), n_classes=3)
EACH = np.arange(3)


def candidates(*, n=1, at_most=None, **constraints):
    request = Request(
        X=QUERIES,
        target=np.ones(3, dtype=np.int64),
        lengths=None,
        constraints=sp.Constraints(**constraints).bind(INFO),
        at_most=None if at_most is None else np.full(3, at_most),
        n=n,
        info=INFO,
    )
    return FoundAnswers(request, CLASSIFIER)


def lifted(size, *, also=0, feature=1):
    """Return the queries with a feature lifted at all twelve steps, and the last feature at some."""
    series = QUERIES.copy()
    series[..., feature] += size
    series[:, :also, 3] += 1
    return series


def test_valid_proposals_are_taken_by_the_classifier_s_own_prediction():
    found = candidates()
    proposal = lifted(10.0)
    proposal[1] = QUERIES[1] + 0.01
    found.offer(EACH, proposal, "generated")
    assert found.n_found.tolist() == [1, 0, 1] and found.incomplete_rows().tolist() == [1]
    found.offer(np.array([1]), lifted(10.0)[[1]], "refined")
    answers = found.answers()
    assert answers.status.tolist() == ["generated", "refined", "generated"] and (answers.reason == "").all()
    assert np.array_equal(answers.counterfactual, lifted(10.0))
    np.testing.assert_array_equal(answers.proba, CLASSIFIER.predict_proba(lifted(10.0)))


def test_a_query_with_all_its_answers_takes_no_more():
    found = candidates()
    found.offer(EACH, lifted(10.0), "generated")
    found.offer(EACH, lifted(20.0), "refined")
    assert np.array_equal(found.answers().counterfactual, lifted(10.0))


def test_proposals_are_taken_within_the_constraints_and_the_cap():
    found = candidates(at_most=5, immutable=["f3"])
    found.offer(EACH, lifted(20.0, also=3), "generated")
    changed = found.answers().counterfactual != QUERIES
    assert changed.sum((1, 2)).tolist() == [5] * 3 and not changed[..., 3].any()


def test_answers_that_change_nearly_the_same_entries_are_one():
    found = candidates(n=4)

    def offer(size, also=0):
        found.offer(np.array([2]), lifted(size, also=also)[[2]], "generated")
        return int(found.n_found[2])

    assert offer(10.0) == 1
    assert offer(12.0) == 1  # by another amount, at the same entries
    assert offer(10.0, also=3) == 1  # 12 of 15 in common
    assert offer(10.0, also=4) == 2  # 12 of 16, which is 0.75
    assert offer(10.0, also=5) == 2  # differs from the first, but not from the second
    assert found.n_found.tolist() == [0, 0, 2]


def test_answers_with_the_fewest_changes_come_first_and_missing_ones_last():
    found = candidates(n=3)
    found.offer(EACH, lifted(10.0, also=10), "neighbour")
    found.offer(EACH[:2], lifted(10.0)[:2], "refined")
    answers = found.answers()
    assert answers.status.reshape(3, 3).tolist() == [
        ["refined", "neighbour", "not_found"],
        ["refined", "neighbour", "not_found"],
        ["neighbour", "not_found", "not_found"],
    ]
    two, one = "only 2 different answers were found", "only 1 answer was found"
    assert answers.reason.reshape(3, 3).tolist() == [["", "", two], ["", "", two], ["", one, one]]
    series = answers.counterfactual.reshape(3, 3, 12, 4)
    assert np.array_equal(series[0, 0], lifted(10.0)[0]) and np.array_equal(series[2, 1], QUERIES[2])


def test_without_a_valid_proposal_the_most_probable_attempt_is_returned():
    found = candidates()
    for size in (0.05, 0.1, 0.02):
        found.offer(EACH, lifted(size), "generated")
    answers = found.answers()
    assert np.array_equal(answers.counterfactual, lifted(0.1)) and (answers.status == "not_found").all()
    reached = CLASSIFIER.predict_proba(lifted(0.1))[:, 1]
    np.testing.assert_array_equal(answers.proba[:, 1], reached)
    for reason, p in zip(answers.reason, reached, strict=True):
        assert reason == f"no change was found that the classifier calls 'brisk'; p(brisk) reached {p:.2f}"


@pytest.mark.parametrize(
    ("needed", "limit"),
    [
        (-1, "at most 4 of 36 entries changed"),
        (4, "at most 4 of 36 entries changed"),
        (9, "at most 4 of 36 entries changed (0.25 of them were enough without that limit)"),
    ],
)
def test_the_reason_names_the_cap_and_the_constraints(needed, limit):
    found = candidates(at_most=4, immutable=["f3"])
    found.uncapped_changes[:] = needed
    found.offer(EACH, QUERIES, "generated")
    for reason in found.answers().reason:
        assert f" within the constraints ({limit}; immutable features); p(brisk) reached " in reason
