"""FoundAnswers: believed answers with few changes first, then those that convince most, and reasons where none is."""

import numpy as np
import pytest
import torch

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


class LastFeature(torch.nn.Module):
    """A judge for whom the last feature makes the target: it is the higher, the more probable."""

    def forward(self, x):
        return torch.stack([0 * x[:, 0, 0], x[..., 3].mean(1), 0 * x[:, 0, 0]], dim=1)


@pytest.fixture
def candidates(build_ensemble):
    def build(*, n=1, at_most=None, judges=(CLASSIFIER,), **constraints):
        request = Request(
            X=QUERIES,
            target=np.ones(3, dtype=np.int64),
            lengths=None,
            constraints=sp.Constraints(**constraints).bind(INFO),
            at_most=None if at_most is None else np.full(3, at_most),
            n=n,
            info=INFO,
        )
        return FoundAnswers(request, CLASSIFIER, build_ensemble(INFO, [CLASSIFIER], judges))

    return build


def lifted(size, *, steps=12, last=0.0, also=0):
    """Return the queries with feature 1 lifted at the first steps, and the last feature everywhere or at some steps."""
    series = QUERIES.copy()
    series[:, :steps, 1] += size
    series[..., 3] += np.float32(last)
    series[:, :also, 3] += 1
    return series


def test_valid_proposals_are_taken_by_the_classifier_s_own_prediction(candidates):
    found = candidates()
    proposal = lifted(10.0)
    proposal[1] = QUERIES[1] + 0.01
    found.offer(EACH, proposal, "generated")
    assert found.missing().tolist() == found.unconvincing().tolist() == [1]
    found.offer(np.array([1]), lifted(10.0)[[1]], "refined")
    assert not len(found.missing()) and not len(found.unconvincing())
    answers = found.answers()
    assert answers.status.tolist() == ["generated", "refined", "generated"] and (answers.reason == "").all()
    assert np.array_equal(answers.counterfactual, lifted(10.0))
    np.testing.assert_array_equal(answers.proba, CLASSIFIER.predict_proba(lifted(10.0)))


def test_of_the_believed_the_one_with_the_fewest_changes_is_best(candidates):
    found = candidates(judges=[LastFeature()])
    few = lifted(40.0, steps=2, last=1.0)
    for proposal, status in [(lifted(10.0, last=1.0), "neighbour"), (few, "refined"), (lifted(20.0, last=2.0), "late")]:
        found.offer(EACH, proposal, status)
    assert np.array_equal(found.answers().counterfactual, few) and (found.answers().status == "refined").all()
    fewer = lifted(40.0, steps=2)
    fewer[:, 0, 3] -= 30.0  # not believed
    found.offer(EACH, fewer, "generated")
    assert np.array_equal(found.answers().counterfactual, few)


def test_of_the_unbelieved_the_most_convincing_is_best_however_many_changes_it_has(candidates):
    found = candidates(judges=[LastFeature()])
    for last in (-1.0, -0.4, -0.7):
        found.offer(EACH, lifted(10.0, last=last), f"by {last}")
    found.offer(EACH, lifted(40.0, steps=2, last=-2.0), "few")
    assert (found.answers().status == "by -0.4").all()
    assert found.unconvincing().tolist() == [0, 1, 2] and not len(found.missing())
    found.offer(EACH, lifted(10.0, last=2.0), "believed")
    assert (found.answers().status == "believed").all() and not len(found.unconvincing())


def test_what_the_classifier_rejects_is_worse_than_anything_it_accepts(candidates):
    found = candidates(judges=[LastFeature()])
    found.offer(EACH, lifted(10.0, last=-3.0), "generated")
    found.offer(EACH, lifted(0.0, last=3.0), "refined")
    assert (found.answers().status == "generated").all()


@pytest.mark.parametrize(
    ("judges", "believed"),
    [
        ([MeanModule(), MeanModule(), LastFeature()], True),  # two of three
        ([MeanModule(), LastFeature(), LastFeature()], False),
        ([MeanModule(), LastFeature()], False),  # half is no majority
    ],
)
def test_the_majority_of_a_family_decides(candidates, judges, believed):
    found = candidates(judges=judges)
    found.offer(EACH, lifted(10.0, last=-2.0), "generated")
    assert (not len(found.unconvincing())) == believed and not len(found.missing())


def test_without_families_a_valid_answer_is_believed(candidates):
    found = candidates(judges=[])
    found.offer(EACH, lifted(10.0), "generated")
    assert not len(found.unconvincing())


def test_proposals_are_taken_within_the_constraints_and_the_cap(candidates):
    found = candidates(at_most=5, immutable=["f3"])
    found.offer(EACH, lifted(40.0, also=3), "generated")
    changed = found.answers().counterfactual != QUERIES
    assert changed.sum((1, 2)).tolist() == [5] * 3 and not changed[..., 3].any()


def test_answers_that_change_nearly_the_same_entries_are_one(candidates):
    found = candidates(n=4)

    def offer(size, also=0):
        found.offer(np.array([2]), lifted(size, also=also)[[2]], "generated")
        return int((found.answers().status.reshape(3, 4) != "not_found").sum(1)[2])

    assert offer(10.0, also=3) == 1
    assert offer(12.0, also=3) == 1  # by another amount, at the same entries
    assert offer(10.0) == 1  # 12 of 15 in common: it takes the place of the first, since it changes less
    assert np.array_equal(found.answers().counterfactual.reshape(3, 4, 12, 4)[2, 0], lifted(10.0)[2])
    assert offer(10.0, also=4) == 2  # 12 of 16, which is 0.75
    assert found.missing().tolist() == [0, 1, 2]


def test_the_best_answers_come_first_and_missing_ones_last(candidates):
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


def test_a_full_set_takes_a_better_answer_for_its_worst(candidates):
    found = candidates(n=2)
    parts = [slice(0, 4), slice(4, 8), slice(8, 12)]  # three answers that share no entry
    series = [QUERIES.copy() for _ in parts]
    for one, part in zip(series, parts, strict=True):
        one[:, part, 1] += 20.0
    series[0][:, :6, 3] += 1.0  # and the first changes more
    for one, status in zip(series, ["many", "few", "also few"], strict=True):
        found.offer(EACH, one, status)
    assert all(set(own) == {"few", "also few"} for own in found.answers().status.reshape(3, 2))


@pytest.mark.parametrize("n", [1, 2])
def test_without_a_valid_proposal_the_most_probable_attempt_is_returned(candidates, n):
    found = candidates(n=n)
    for size in (0.05, 0.1, 0.02):
        found.offer(EACH, lifted(size), "generated")
    answers = found.answers()
    assert np.array_equal(answers.counterfactual[::n], lifted(0.1)) and (answers.status == "not_found").all()
    reached = CLASSIFIER.predict_proba(lifted(0.1))[:, 1]
    np.testing.assert_array_equal(answers.proba[::n, 1], reached)
    for reason, p in zip(answers.reason[::n], reached, strict=True):
        assert reason == f"no change was found that the classifier calls 'brisk'; p(brisk) reached {p:.2f}"


def test_the_reason_names_the_cap_and_the_constraints(candidates):
    found = candidates(at_most=4, immutable=["f3"])
    found.offer(EACH, QUERIES, "generated")
    for reason in found.answers().reason:
        assert " within the constraints (at most 4 of 36 entries changed" in reason
        assert "; immutable features); p(brisk) reached " in reason


def test_nothing_offered_is_nothing_found(candidates):
    found = candidates()
    found.offer(np.array([], dtype=np.int64), np.zeros((0, 12, 4), dtype=np.float32), "generated")
    answers = found.answers()
    assert np.array_equal(answers.counterfactual, QUERIES) and (answers.status == "not_found").all()
