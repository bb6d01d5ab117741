"""The weighted sum, the user's own terms, and limb lengths."""

import math
from dataclasses import replace

import pytest
import torch

import sparcets as sp
from sparcets.config.explainers import LossWeights
from sparcets.datasets.catching import FEATURES
from sparcets.errors import ConfigError, UnknownNameError
from sparcets.training.losses import EXPLAINED, Candidate, LossTerm, Objective
from sparcets.training.domain_losses import CATCHING_ARMS, limb_lengths

DELTA = torch.tensor([[[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]]])
NONE = {"adversarial": 0, "classification": 0, "similarity": 0, "sparsity": 0, "smoothness": 0}


def candidate():
    return Candidate(
        delta=DELTA,
        target=torch.tensor([1, 0]),
        log_proba=torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log(),
        logit=torch.zeros(2),
        query_raw=torch.zeros(2, 3, 2),
        counterfactual_raw=10 * DELTA,
    )


def objective(*, trains_sparsity=True, extra=None, hinge=False, **weights):
    chosen = LossWeights(**(NONE | weights))
    return Objective(chosen, n_mutable=2, trains_sparsity=trains_sparsity, extra=extra, hinge=hinge)


def test_the_sum_is_weighted_and_every_term_is_reported_unweighted():
    of = objective(adversarial=1, classification=2, similarity=3, sparsity=4, smoothness=5)
    total, values = of(candidate())
    expected = [
        math.log(2),
        (math.log(2) + math.log(4)) / 2,
        (4 / 6 + 7 / 6) / 2,
        (3 / 6 + 2 / 6) / 2,
        ((math.sqrt(2) + math.sqrt(10) + 2) / 6 + 5 / 6) / 2,
    ]
    assert of.names == ("adversarial", "classification", "similarity", "sparsity", "smoothness")
    torch.testing.assert_close(values, torch.tensor(expected))
    torch.testing.assert_close(total, torch.tensor(sum((i + 1) * v for i, v in enumerate(expected))))


def test_a_weight_of_0_leaves_the_term_out():
    of = objective(similarity=1)
    assert of.names == ("similarity",)
    assert not of.needs_classifier and not of.needs_discriminator
    assert objective(classification=1).needs_classifier and objective(adversarial=1).needs_discriminator


def test_generator_and_discriminator_play_for_the_same_loss():
    real, fake = torch.tensor([0.5, 3.0]), torch.tensor([0.5, -3.0])
    logit = torch.tensor([0.5, -1.5])
    plain, hinge = objective(adversarial=1), objective(adversarial=1, hinge=True)
    judged = replace(candidate(), logit=logit)
    torch.testing.assert_close(hinge(judged)[0], torch.tensor(0.5))  # minus the mean logit
    torch.testing.assert_close(hinge.discriminator(real, fake), torch.tensor((0.5 + 1.5) / 2))
    entropy = [math.log(1 + math.exp(-v)) for v in (0.5, -1.5)]
    torch.testing.assert_close(plain(judged)[0], torch.tensor(sum(entropy) / 2))
    halves = [math.log(1 + math.exp(-v)) / 2 for v in (0.5, 3.0, -0.5, 3.0)]
    torch.testing.assert_close(plain.discriminator(real, fake), torch.tensor(sum(halves) / 2))


def test_a_quarter_is_the_explained_classifier_s_the_rest_the_witnesses_alike():
    of = objective(classification=1)
    one = candidate()
    others = torch.tensor([[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.25, 0.75]]]).log()
    total, values = of(replace(one, log_proba=torch.cat([one.log_proba[None], others])))
    assert EXPLAINED == 0.25
    expected = 0.25 * (math.log(2) + math.log(4)) / 2
    expected += 0.75 * (math.log(10) + math.log(2) + math.log(2) + math.log(4)) / 4
    torch.testing.assert_close(total, torch.tensor(expected))
    torch.testing.assert_close(values, torch.tensor([expected]))
    torch.testing.assert_close(of(replace(one, log_proba=one.log_proba[None]))[0], of(one)[0])  # one voice is itself


def test_the_weight_of_sparsity_is_each_query_s_own_and_the_report_is_without_it():
    of = objective(similarity=3, sparsity=4)
    total, values = of(replace(candidate(), sparsity_weight=torch.tensor([0.5, 3.0])))
    torch.testing.assert_close(values, torch.tensor([11 / 12, 5 / 12]))
    torch.testing.assert_close(total, torch.tensor(3 * 11 / 12 + 4 * (0.5 * 3 / 6 + 3 * 2 / 6) / 2))
    without = objective(similarity=3)
    torch.testing.assert_close(
        without(replace(candidate(), sparsity_weight=torch.tensor([0.5, 3.0])))[0], without(candidate())[0]
    )


def test_own_terms_are_in_the_data_s_units_and_a_weight_of_0_never_calls_them():
    def never(query, counterfactual):
        raise AssertionError("called")

    largest = LossTerm(0.5, lambda q, c: (c - q).amax((1, 2)))
    of = objective(similarity=1, extra={"largest": largest, "never": LossTerm(0.0, never)})
    total, values = of(candidate())
    assert of.names == ("similarity", "largest")
    torch.testing.assert_close(values, torch.tensor([11 / 12, 30.0]))  # largest changes 20 and 40
    torch.testing.assert_close(total, torch.tensor(11 / 12 + 15))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("sparsity", "the term 'sparsity' is one of the five already"),
        ("valid", "'valid' is the name of another value in the history"),
    ],
)
def test_a_taken_name_is_an_error(name, message):
    with pytest.raises(ConfigError, match=message):
        objective(similarity=1, extra={name: LossTerm(1.0, lambda q, c: c.sum((1, 2)))})


def test_what_is_no_term_is_an_error():
    with pytest.raises(ConfigError, match=r"the term 'mine' must be a LossTerm\(weight, function\), got function"):
        objective(similarity=1, extra={"mine": lambda q, c: c})


@pytest.mark.parametrize(
    ("function", "came"), [(lambda q, c: c.mean(), r"shape \(\)"), (lambda q, c: c.sum(2), r"shape \(2, 3\)")]
)
def test_a_term_that_gives_no_value_per_query_is_an_error(function, came):
    of = objective(similarity=1, extra={"mine": LossTerm(1.0, function)})
    with pytest.raises(ConfigError, match=rf"'mine' must return one value per query, a tensor of 2, got {came}"):
        of(candidate())


def test_limb_lengths_by_hand():
    term = limb_lengths(["A_x", "A_y", "B_x", "B_y", "C_x", "C_y"], [("A", "B"), ("B", "C")])
    query = torch.tensor([[[0.0, 0, 3, 4, 3, 5], [0.0, 0, 0, 2, 0, 2]]])  # lengths 5 and 1, then 2 and 0
    other = torch.tensor([[[0.0, 0, 6, 8, 6, 9], [0.0, 0, 0, 2, 0, 2]]])  # lengths 10 and 1, then the same
    torch.testing.assert_close(term(query, other), torch.tensor([5 / 4]))
    assert term(query, query + 7).item() == pytest.approx(0, abs=1e-6)  # a body that moves as a whole keeps its limbs


def test_limb_lengths_know_the_arms_of_the_catching_data():
    term = limb_lengths(FEATURES, CATCHING_ARMS)
    query = torch.randn(2, 5, len(FEATURES), generator=torch.Generator().manual_seed(0))
    moved = query.clone().requires_grad_(True)
    bent = torch.zeros_like(query)
    bent[..., FEATURES.index("LeftWrist_x")] = 1.0
    term(query, moved + bent).sum().backward()
    touched = {FEATURES[f] for f in (moved.grad != 0).any(0).any(0).nonzero().ravel().tolist()}
    assert touched == {"LeftElbow_x", "LeftElbow_y", "LeftWrist_x", "LeftWrist_y"}
    still = query.clone().requires_grad_(True)
    term(query, still).sum().backward()
    assert torch.isfinite(still.grad).all()


def test_an_unknown_point_is_an_error_that_suggests():
    with pytest.raises(UnknownNameError, match=r"no point 'LeftElbo'. Did you mean 'LeftElbow'\?"):
        limb_lengths(FEATURES, [("LeftElbo", "LeftWrist")])


def test_sparsity_without_training_and_nothing_else_is_an_error():
    with pytest.raises(ConfigError, match="without 'trains_sparsity', a weight other than 'sparsity' must be > 0"):
        sp.SparceConfig(weights=LossWeights(**(NONE | {"sparsity": 1.0})), trains_sparsity=False)
