"""The generator of proposals: what it may change, what it depends on, what its gates shut; and the critic."""

import pytest
import torch

from sparcets.methods.own.generator import Critic, GatedGenerator, hard_concrete

B, T, F = 4, 9, 5


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def build(mutable=range(F)):
    return GatedGenerator(n_features=F, mutable=mutable, n_targets=3, hidden=12, layers=2).eval()


def condition(k=1, log_weight=0.0, n=B):
    """Return targets and logarithms of the sparsity weight."""
    return torch.full((n,), k), torch.full((n,), log_weight)


@pytest.mark.parametrize("training", [False, True])
def test_residuals_of_immutable_features_are_exactly_zero(training):
    delta = build((1, 3)).train(training)(torch.randn(B, T, F), *condition())
    assert delta.shape == (B, T, F) and (delta[..., [0, 2, 4]] == 0).all() and (delta[..., [1, 3]] != 0).any()


def test_gradients_reach_every_parameter_of_generator_and_critic():
    generator, critic, x = build().train(), Critic(n_features=F, n_targets=3), torch.randn(B, T, F)
    target = torch.tensor([0, 1, 2, 0])
    critic(x + generator(x, target, torch.randn(B)), target).square().sum().backward()
    parameters = [*generator.named_parameters(), *critic.named_parameters()]
    assert [n for n, p in parameters if p.grad is None or not (p.grad != 0).any()] == []


def test_gates_are_those_of_the_averaged_logits_and_open_for_a_whole_window():
    generator, x = build(), torch.randn(1, 30, F)
    logits = torch.full((1, 30, F, 1), -10.0)
    logits[0, 4:19, 1] = 10.0  # feature 1 only, and never near the ends; seven steps are averaged
    generator.entry_gate.forward = lambda h: logits
    generator.feature_gate.forward = lambda pooled: torch.zeros(1, F, 1)
    generator.residual_head.forward = lambda h: torch.ones(1, 30, F, 1)
    gates = generator(x, *condition(log_weight=-9.0, n=1))  # a small weight: long windows
    assert (gates[..., [0, 2, 3, 4]] == 0).all()
    # 10 · (2 k / 7 − 1) where k of seven steps are open; a gate is exactly 0 or 1 beyond ±ln 11 = ±2.4.
    inside = torch.tensor([min(7, max(0, t + 3 - 4 + 1), max(0, 19 - (t - 3))) for t in range(30)])
    torch.testing.assert_close(gates[0, :, 1], hard_concrete(10.0 * (2 * inside / 7 - 1), training=False))
    assert (gates[0, 5:18, 1] == 1).all() and (gates[0, :3, 1] == 0).all() and (gates[0, 20:, 1] == 0).all()
    # Those of the features are added.
    generator.feature_gate.forward = lambda pooled: torch.tensor([0.0, -10.0, 0.0, 0.0, 21.0]).reshape(1, F, 1)
    both = generator(x, *condition(log_weight=-9.0, n=1))
    assert (both[0, 8:15, 1] == 0.5).all() and (both[..., 4] == 1).all() and (both[..., [0, 2, 3]] == 0).all()
    generator.feature_gate.forward = lambda pooled: torch.zeros(1, F, 1)
    # A large weight: an average of three steps has sharper ends.
    fine = generator(x, *condition(log_weight=9.0, n=1))[0, :, 1]
    inside = torch.tensor([min(3, max(0, t + 1 - 4 + 1), max(0, 19 - (t - 1))) for t in range(30)])
    torch.testing.assert_close(fine, hard_concrete(10.0 * (2 * inside / 3 - 1), training=False))


def test_gates_are_noisy_in_training_alone():
    logits = torch.tensor([-9.0, 0.0, 1.0, 9.0])
    expected = torch.tensor([0.0, 0.5, 1.2 * 0.7310586 - 0.1, 1.0])
    torch.testing.assert_close(hard_concrete(logits, training=False), expected)
    noisy = hard_concrete(logits.expand(4000, 4), training=True)
    # Exactly shut where u / (1 - u) < (1/11) ** (1/2): at logits of 0, for 0.232 of the draws.
    shares = (noisy == 0).float().mean(0).tolist()
    assert shares[0] > 0.99 and shares[1] == pytest.approx(0.232, abs=0.03) and (noisy[:, 3] == 1).float().mean() > 0.99
