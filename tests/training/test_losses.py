"""The five terms and the discriminator's loss, by hand on two series of three steps and two features."""

import math

import pytest
import torch

from sparcets.training import losses

DELTA = torch.tensor([[[1.0, -1.0], [0.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [3.0, 4.0]]])  # (2, 3, 2)


def close(value, expected):
    torch.testing.assert_close(value, torch.tensor(expected))


def test_adversarial_is_minus_log_of_the_discriminator():
    logits = torch.tensor([0.0, math.log(3)])  # D = 1/2 and 3/4
    close(losses.adversarial(logits), [math.log(2), math.log(4 / 3)])


def test_adversarial_stays_finite_where_the_discriminator_is_sure():
    logit = torch.tensor([-200.0], requires_grad=True)
    losses.adversarial(logit).sum().backward()
    assert logit.grad is not None and logit.grad.item() == -1.0


def test_classification_is_the_cross_entropy_with_the_target():
    proba = torch.tensor([[0.5, 0.3, 0.2], [0.9, 0.06, 0.04]])
    close(losses.classification(proba.log(), torch.tensor([1, 0])), [-math.log(0.3), -math.log(0.9)])


def test_similarity_is_l1_over_steps_and_features():
    close(losses.similarity(DELTA), [4 / 6, 7 / 6])


@pytest.mark.parametrize("count", [losses.count_changed, losses.sparsity])
def test_sparsity_is_the_exact_count_over_steps_and_mutable_features(count):
    close(count(DELTA, 2), [3 / 6, 2 / 6])
    close(count(DELTA[..., :1], 1), [1 / 3, 1 / 3])
    # An immutable third feature adds nothing to either.
    close(count(torch.cat([DELTA, torch.zeros(2, 3, 1)], dim=2), 2), [3 / 6, 2 / 6])


def test_smoothness_counts_the_step_from_nothing_to_the_first_residual():
    close(losses.smoothness(DELTA), [(math.sqrt(2) + math.sqrt(10) + 2) / 6, 5 / 6])


def test_discriminator_halves_both_parts():
    real, fake = torch.tensor([math.log(3)]), torch.tensor([-math.log(4)])  # D = 3/4 of the real, 1/5 of the fake
    close(losses.discriminator(real, fake), [0.5 * (math.log(4 / 3) + math.log(5 / 4))])


def test_no_change_costs_nothing_and_has_finite_gradients():
    for term in (losses.similarity, losses.smoothness, lambda d: losses.sparsity(d, 2)):
        delta = torch.zeros(2, 3, 2, requires_grad=True)
        value = term(delta)
        value.sum().backward()
        assert value.tolist() == [0.0, 0.0]
        assert torch.isfinite(delta.grad).all()


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


def test_sparsity_pushes_small_changes_most():
    delta = torch.tensor([[[0.05, -0.5, 3.0]]], requires_grad=True)
    losses.sparsity(delta, 3).sum().backward()
    small, middle, large = delta.grad[0, 0].abs().tolist()
    assert small > middle > large > 0


def test_the_plain_count_has_no_gradient():
    assert not losses.count_changed(DELTA.clone().requires_grad_(True), 2).requires_grad


def test_the_hinge_loss_by_hand():
    logits = torch.tensor([-2.0, 0.5, 3.0])
    close(losses.hinge_adversarial(logits), [2.0, -0.5, -3.0])
    # Real beyond 1 and fake below -1 cost nothing.
    close(losses.hinge_discriminator(logits, logits.flip(0)), [3.0 + 4.0, 0.5 + 1.5, 0.0 + 0.0])


def test_the_hinge_loss_leaves_alone_what_is_told_apart():
    real, fake = torch.tensor([2.0, 0.0], requires_grad=True), torch.tensor([-2.0, 0.0], requires_grad=True)
    losses.hinge_discriminator(real, fake).sum().backward()
    assert real.grad.tolist() == [0.0, -1.0] and fake.grad.tolist() == [0.0, 1.0]


def test_where_gates_decide_sparsity_pulls_at_them_and_leaves_the_changes_alone():
    delta = torch.tensor([[[2.0, 0.0], [3.0, 0.0]]], requires_grad=True)
    openness = torch.tensor([[[0.9, 0.1], [0.8, 0.0]]], requires_grad=True)
    value = losses.sparsity(delta, 2, openness)
    torch.testing.assert_close(value.detach(), torch.tensor([0.5]))  # the exact count is what is told
    value.sum().backward()
    torch.testing.assert_close(openness.grad, torch.full_like(openness, 1 / 4))
    assert delta.grad is None
