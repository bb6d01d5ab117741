"""Gates: exactly 0 and exactly 1 are in reach, the middle has a gradient, and noise is for training alone."""

import math

import pytest
import torch

from sparcets.explainers.sparcets.generator import HIGH, LOW, hard_concrete, openness


def test_gates_by_hand():
    logits = torch.tensor([-math.log(3), 0.0, math.log(3)])  # sigmoids 1/4, 1/2, 3/4, stretched to 1.2 s - 0.1
    torch.testing.assert_close(hard_concrete(logits, training=False), torch.tensor([0.2, 0.5, 0.8]))


@pytest.mark.parametrize("training", [True, False])
def test_gates_shut_and_open_exactly(training):
    far = torch.tensor([-40.0, 40.0]).repeat(500)
    assert hard_concrete(far, training).tolist() == [0.0, 1.0] * 500


def test_a_gate_is_exactly_shut_from_the_logit_of_its_stretch_on():
    edge = math.log(-LOW / HIGH)  # there the stretched sigmoid is 0
    gates = hard_concrete(torch.tensor([edge - 0.01, edge + 0.01]), training=False)
    assert gates[0] == 0 and 0 < gates[1] < 0.01


def test_the_gradient_is_that_of_the_stretched_sigmoid_and_none_where_the_gate_is_cut_off():
    logits = torch.tensor([-9.0, 0.0, 9.0], requires_grad=True)
    hard_concrete(logits, training=False).sum().backward()
    torch.testing.assert_close(logits.grad, torch.tensor([0.0, 1.2 / 4, 0.0]))


def test_training_draws_noise_and_answering_draws_nothing():
    logits = torch.zeros(2000)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        noisy = hard_concrete(logits, training=True)
        state = torch.get_rng_state()
        plain = hard_concrete(logits, training=False)
        assert torch.equal(state, torch.get_rng_state())
    assert (plain == 0.5).all()
    # Of noisy gates some are shut, some open, some between, and as many on either side.
    assert (noisy == 0).any() and (noisy == 1).any() and ((noisy > 0) & (noisy < 1)).any()
    assert noisy.mean().item() == pytest.approx(0.5, abs=0.04)
    assert torch.isfinite(noisy).all()


def test_noise_leaves_a_gradient():
    logits = torch.zeros(200, requires_grad=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        hard_concrete(logits, training=True).sum().backward()
    assert (logits.grad >= 0).all() and (logits.grad > 0).float().mean() > 0.5


def test_openness_is_how_often_a_noisy_gate_is_not_shut():
    torch.manual_seed(0)
    logits = torch.tensor([-3.0, -1.0, 0.0, 2.0])
    often = (hard_concrete(logits.expand(200_000, 4), training=True) > 0).float().mean(0)
    torch.testing.assert_close(openness(logits), often, atol=0.005, rtol=0)


def test_openness_pulls_at_gates_that_are_wide_open_too():
    logits = torch.tensor([-6.0, 0.0, 6.0], requires_grad=True)
    openness(logits).sum().backward()
    assert (logits.grad > 0).all()
