"""The five terms, their weighted sum and the user's own terms, by hand on two small series."""

import math

import pytest
import torch

from sparcets.core.errors import ConfigError, UnknownNameError
from sparcets.core.settings import LossWeights
from sparcets.motion.catching import FEATURES
from sparcets.training import losses
from sparcets.training.losses import LossTerm, Objective, limb_lengths

DELTA = torch.tensor([[[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]]])  # (2, 3, 2)
NONE = {"adversarial": 0, "classification": 0, "similarity": 0, "sparsity": 0, "smoothness": 0}


def close(value, expected):
    torch.testing.assert_close(value, torch.tensor(expected))


def test_adversarial_stays_finite_where_the_discriminator_is_sure():
    logit = torch.tensor([-200.0], requires_grad=True)
    losses.adversarial(logit).sum().backward()
    assert logit.grad is not None and logit.grad.item() == -1.0


@pytest.mark.parametrize("count", [losses.count_changed, losses.sparsity])
def test_sparsity_is_the_exact_count_over_steps_and_mutable_features(count):
    close(count(DELTA, 2), [3 / 6, 2 / 6])
    close(count(DELTA[..., :1], 1), [1 / 3, 1 / 3])
    # An immutable third feature adds nothing to either.
    close(count(torch.cat([DELTA, torch.zeros(2, 3, 1)], dim=2), 2), [3 / 6, 2 / 6])


def test_no_change_costs_nothing_and_has_finite_gradients():
    for term in (losses.similarity, losses.smoothness, lambda d: losses.sparsity(d, 2)):
        delta = torch.zeros(2, 3, 2, requires_grad=True)
        value = term(delta)
        value.sum().backward()
        assert value.tolist() == [0.0, 0.0] and torch.isfinite(delta.grad).all()


def test_the_gradient_of_sparsity_agrees_with_removing_an_entry():
    delta = DELTA.clone().requires_grad_(True)
    before = losses.sparsity(delta, 2)
    before.sum().backward()
    for i, t, f in (DELTA != 0).nonzero().tolist():
        without = DELTA.clone()
        without[i, t, f] = 0
        removal = losses.sparsity(without, 2)[i] - before[i]
        towards_zero = -DELTA[i, t, f] * delta.grad[i, t, f]  # first-order change when the entry goes to 0
        assert removal < 0 and towards_zero < 0
    assert (delta.grad[DELTA == 0] == 0).all()


def candidate():
    return {
        "delta": DELTA,
        "target": torch.tensor([1, 0]),
        "log_proba": torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log(),
        "logit": torch.zeros(2),
        "query_raw": torch.zeros(2, 3, 2),
        "counterfactual_raw": 10 * DELTA,
    }


def objective(*, trains_sparsity=True, domain_losses=None, **weights):
    chosen = LossWeights(**(NONE | weights))
    return Objective(chosen, n_mutable=2, trains_sparsity=trains_sparsity, domain_losses=domain_losses)


def test_the_sum_is_weighted_and_every_term_is_reported_unweighted():
    of = objective(adversarial=1, classification=2, similarity=3, sparsity=4, smoothness=5)
    total, values = of(**candidate())
    smoothness = ((math.sqrt(2) + math.sqrt(10) + 2) / 6 + 5 / 6) / 2
    expected = [math.log(2), (math.log(2) + math.log(4)) / 2, (4 / 6 + 7 / 6) / 2, (3 / 6 + 2 / 6) / 2, smoothness]
    assert of.names == ("adversarial", "classification", "similarity", "sparsity", "smoothness")
    torch.testing.assert_close(values, torch.tensor(expected))
    torch.testing.assert_close(total, torch.tensor(sum((i + 1) * v for i, v in enumerate(expected))))


def test_the_two_networks_play_for_the_same_loss():
    entropy = [math.log(1 + math.exp(-v)) for v in (0.5, -1.5)]
    close(losses.adversarial(torch.tensor([0.5, -1.5])), entropy)
    # Of a real and of a made series, each half.
    close(losses.discriminator(torch.tensor([0.5]), torch.tensor([1.5])), [sum(entropy) / 2])


def test_own_terms_are_in_the_data_s_units_and_a_weight_of_0_never_calls_them():
    def never(query, counterfactual):
        raise AssertionError("called")

    largest = LossTerm(0.5, lambda q, c: (c - q).amax((1, 2)))
    of = objective(similarity=1, domain_losses={"largest": largest, "never": LossTerm(0.0, never)})
    total, values = of(**candidate())
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
        objective(similarity=1, domain_losses={name: LossTerm(1.0, lambda q, c: c.sum((1, 2)))})


@pytest.mark.parametrize(
    ("function", "came"), [(lambda q, c: c.mean(), r"shape \(\)"), (lambda q, c: c.sum(2), r"shape \(2, 3\)")]
)
def test_a_term_that_gives_no_value_per_query_is_an_error(function, came):
    of = objective(similarity=1, domain_losses={"mine": LossTerm(1.0, function)})
    with pytest.raises(ConfigError, match=rf"'mine' must return one value per query, a tensor of 2, got {came}"):
        of(**candidate())


def test_limb_lengths_by_hand():
    term = limb_lengths(["A_x", "A_y", "B_x", "B_y", "C_x", "C_y"], [("A", "B"), ("B", "C")])
    query = torch.tensor([[[0.0, 0, 3, 4, 3, 5], [0.0, 0, 0, 2, 0, 2]]])  # lengths 5 and 1, then 2 and 0
    other = torch.tensor([[[0.0, 0, 6, 8, 6, 9], [0.0, 0, 0, 2, 0, 2]]])  # lengths 10 and 1, then the same
    torch.testing.assert_close(term(query, other), torch.tensor([5 / 4]))
    assert term(query, query + 7).item() == pytest.approx(0, abs=1e-6)  # a body that moves as a whole keeps its limbs


def test_what_is_no_point_and_no_term_is_an_error():
    with pytest.raises(UnknownNameError, match=r"no point 'LeftElbo'. Did you mean 'LeftElbow'\?"):
        limb_lengths(FEATURES, [("LeftElbo", "LeftWrist")])
    with pytest.raises(ConfigError, match=r"the term 'mine' must be a LossTerm\(weight, function\), got function"):
        objective(similarity=1, domain_losses={"mine": lambda q, c: c})
