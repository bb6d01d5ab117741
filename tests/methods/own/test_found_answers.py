"""FoundAnswers: believed answers with few changes first, then what most families believe, and reasons where none is."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own.candidates import BELIEVED, MAX_PRICE, VALID, FoundAnswers, rank_answers
from sparcets.methods.own.ensemble import Belief, Selector
from sparcets.methods.request import Request
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


class HighStep:
    """A family that believes a series to be of class 1 where one step of the last feature is very high."""

    def __init__(self, step):
        self.family, self.step = f"step {step}", step

    def votes(self, x):
        high = x[None, :, self.step, 3] > 5
        return torch.stack([~high, high, torch.zeros_like(high)], dim=2).float()


@pytest.fixture
def candidates(build_ensemble):
    def build(*, n=1, at_most=None, judges=(CLASSIFIER,), families=(), **constraints):
        request = Request(
            series=Series(QUERIES),
            target=np.ones(3, dtype=np.int64),
            classifier=CLASSIFIER,
            constraints=sp.Constraints(**constraints).bind(INFO),
            at_most=None if at_most is None else np.full(3, at_most),
            n=n,
            info=INFO,
        )
        ensemble = build_ensemble(INFO, [CLASSIFIER], judges)
        if families:
            ensemble = replace(ensemble, selector=Selector(networks=[], judges=families))
        return FoundAnswers(request, ensemble)

    return build


def lifted(size, *, steps=12, last=0.0, also=0):
    """Return the queries with feature 1 lifted at the first steps, and the last feature everywhere or at some steps."""
    series = QUERIES.copy()
    series[:, :steps, 1] += size
    series[..., 3] += np.float32(last)
    series[:, :also, 3] += 1
    return series


def doubtful(steps, high):
    """Return the queries with feature 1 lifted at the first steps, and the last feature very high at some."""
    series = lifted(40.0, steps=steps)
    series[:, list(high), 3] += 100.0
    return series


def led(steps, mean):
    """Return the queries with feature 1 lifted at the first steps, and a given mean of the last, by one change more."""
    series = lifted(40.0, steps=steps)
    series[:, 0, 3] += 12 * (mean - series[..., 3].mean(1))
    return series


NARROW, CLEAR = 0.1, 1.5  # means of the last feature that LastFeature believes without and with a lead


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


@pytest.mark.parametrize(("n_steps", "best"), [(6, "clear"), (8, "narrow")])
@pytest.mark.parametrize("clear_first", [True, False])
def test_an_answer_with_a_lead_may_have_somewhat_more_changes_than_one_without(candidates, n_steps, best, clear_first):
    found = candidates(judges=[LastFeature()])
    offers = [(led(n_steps, CLEAR), "clear"), (led(4, NARROW), "narrow")]  # 7 or 9 changes, and 5: times 1.6 it is 8
    for proposal, status in offers if clear_first else offers[::-1]:
        found.offer(EACH, proposal, status)
    assert found.answers().status.tolist() == [best] * 3
    assert (found.rank >= BELIEVED).all() and not len(found.unconvincing())


def test_of_the_unbelieved_the_one_that_most_families_believe_is_best_then_the_one_with_the_fewest_changes(candidates):
    found = candidates(families=[HighStep(step) for step in range(3)])
    offers = [
        (doubtful(3, []), "none", "none"),
        (doubtful(2, []), "fewer", "fewer"),
        (doubtful(12, [1]), "one", "one"),  # one family outweighs any number of changes
        (doubtful(2, []), "again", "one"),
        (doubtful(12, [0, 2]), "two", "two"),
        (doubtful(2, [0]), "few", "two"),
        (doubtful(6, [0, 1]), "other", "other"),  # two other families, by fewer changes
        (doubtful(7, [0, 2]), "more", "other"),
    ]
    for proposal, status, best in offers:
        found.offer(EACH, proposal, status)
        assert found.answers().status.tolist() == [best] * 3
    assert found.unconvincing().tolist() == [0, 1, 2] and not len(found.missing())
    found.offer(EACH, doubtful(12, [0, 1, 2]), "all")
    assert (found.answers().status == "all").all() and not len(found.unconvincing())


def test_convincing_proposals_are_counted_whether_they_are_taken_or_not(candidates):
    found = candidates(judges=[LastFeature()])
    found.offer(EACH, led(2, NARROW), "narrow")
    assert found.n_convincing.tolist() == [0, 0, 0] and found.unconvincing().tolist() == [0, 1, 2]
    found.offer(np.array([0, 2, 2]), np.concatenate([led(12, CLEAR)[[0, 2]], led(11, CLEAR)[[2]]]), "clear")
    assert found.answers().status.tolist() == ["narrow"] * 3  # 3 changes against 12 and more
    assert found.n_convincing.tolist() == [1, 0, 2] and found.unconvincing().tolist() == [1]
    found.offer(EACH, lifted(0.0, last=3.0), "rejected")  # convincing to the judge, but not valid
    assert found.n_convincing.tolist() == [1, 0, 2] and found.unconvincing().tolist() == [1]


def test_of_several_answers_as_many_must_be_convincing(candidates):
    found = candidates(n=2, judges=[LastFeature()])
    apart = QUERIES.copy()
    apart[:, 6:, 1] += 40.0
    apart[:, 0, 3] += 12 * (CLEAR - apart[..., 3].mean(1))
    found.offer(EACH[:2], led(6, CLEAR)[:2], "first")
    found.offer(EACH[:2], led(6, CLEAR)[:2], "first")  # twice the same is one answer
    assert found.unconvincing().tolist() == [0, 1, 2]
    found.offer(EACH[:1], apart[:1], "second")
    assert found.unconvincing().tolist() == found.missing().tolist() == [1, 2]


def test_what_the_classifier_rejects_is_worse_than_anything_it_accepts(candidates):
    found = candidates(judges=[LastFeature()])
    found.offer(EACH, lifted(10.0, last=-3.0), "generated")
    found.offer(EACH, lifted(0.0, last=3.0), "refined")
    assert (found.answers().status == "generated").all()


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
    if n == 2:  # which changes nothing, so that it has reached nothing
        assert set(answers.reason[1::2]) == {"not even one answer was found; the first has the best attempt"}


def test_the_reason_names_the_cap_and_the_constraints(candidates):
    found = candidates(at_most=4, immutable=["f3"])
    found.offer(EACH, QUERIES, "generated")
    for reason in found.answers().reason:
        assert " within the constraints (at most 4 of 36 entries changed" in reason
        assert "; immutable features); p(brisk) reached " in reason


# Ranks by hand.


def rank(*, proba=1.0, valid=True, support=(1.0, 1.0), margin=(0.5, 0.5), share=0.5):
    """Return the rank of one answer that two families, who want leads of 0.1 and 0.3, are asked about."""
    lead = torch.tensor([0.1, 0.3])[: len(support)]
    belief = Belief(torch.tensor([support]), torch.tensor([margin]), lead)
    ranks = rank_answers(torch.tensor([proba]), torch.tensor([valid]), belief, torch.tensor([share]))
    return ranks.item()


def test_ranks_of_believed_answers_by_hand():
    assert rank(share=0.32) == pytest.approx(BELIEVED + 0.99 * (1 - 0.32 / MAX_PRICE))
    for margin in ((0.05, 0.5), (0.5, 0.2)):  # one family without its lead
        assert rank(margin=margin, share=0.2) == pytest.approx(BELIEVED + 0.99 * 0.8)
        assert rank(margin=margin, share=1.0) == pytest.approx(BELIEVED)
    few = rank(margin=(0.05, 0.5), share=0.2)
    assert rank(share=0.99 * MAX_PRICE * 0.2) > few > rank(share=1.01 * MAX_PRICE * 0.2)
    assert rank(support=(), margin=(), share=0.5) == pytest.approx(BELIEVED + 0.99 * (1 - 0.5 / MAX_PRICE))


def test_ranks_of_unbelieved_answers_by_hand():
    assert rank(support=(1.0, 0.5), share=0.4) == pytest.approx(VALID + 0.99 * 1.6 / 3)
    assert rank(support=(0.2, 0.5), share=0.4) == pytest.approx(VALID + 0.99 * 0.6 / 3)
    assert rank(support=(0.2, 1.0), share=0.4) == rank(support=(0.6, 0.0), margin=(0.0, -0.9), share=0.4)


def test_answers_that_are_believed_valid_or_neither_do_not_mix():
    ladder = [
        rank(valid=False, proba=0.1, share=0.01),
        rank(valid=False, proba=1.0, share=0.01),
        rank(support=(0.0, 0.0), proba=0.4, share=1.0),
        rank(support=(0.0, 0.0), share=0.01),
        rank(support=(1.0, 0.5), share=0.9),
        rank(support=(0.5, 1.0), share=0.01),
        rank(margin=(0.0, 0.0), share=0.9),
        rank(share=1.0),
        rank(margin=(0.0, 0.0), share=0.01),
        rank(share=0.01),
    ]
    assert ladder == sorted(ladder) and len(set(ladder)) == len(ladder)
    assert ladder[1] < VALID <= ladder[2] and ladder[5] < BELIEVED <= ladder[6] and ladder[-1] < 3
