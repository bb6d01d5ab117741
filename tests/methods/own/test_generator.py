"""The gated generator: what it may change, what it depends on, and what its gates shut."""

import math

import pytest
import torch

from sparcets.methods.own.generator import (
    EMBEDDING,
    HIGH,
    LOW,
    GatedGenerator,
    Mixer,
    PerStep,
    hard_concrete,
    window_mean,
)
from sparcets.training.generator import SparsityLayer

B, T, F = 4, 9, 5
GATES = ["none", "feature", "window"]
each_gate = pytest.mark.parametrize("gate", GATES)
each_backbone = pytest.mark.parametrize("backbone", ["mixer", "lstm", "gru", "tcn"])


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def build(gate="window", *, backbone="mixer", mutable=(0, 1, 2, 3, 4), n_features=F):
    generator = GatedGenerator(
        n_features=n_features,
        mutable=list(mutable),
        n_targets=3,
        backbone=backbone,
        hidden=12,
        layers=2,
        gate=gate,
    )
    if isinstance(generator.residual_head, SparsityLayer):
        with torch.no_grad():  # by chance it may start with both heads shut; here it starts with both open
            generator.residual_head.positive.bias.fill_(0.5)
            generator.residual_head.negative.bias.fill_(0.4)
    return generator.eval()


def condition(k=1, log_weight=0.0, n=B):
    """Return targets and logarithms of the sparsity weight."""
    return torch.full((n,), k), torch.full((n,), log_weight)


def series():
    return torch.randn(B, T, F)


# Inputs and outputs.


@each_gate
@each_backbone
@pytest.mark.parametrize("mutable", [(1, 3), (4,)])
def test_residuals_of_immutable_features_are_exactly_zero(gate, backbone, mutable):
    generator, x = build(gate, backbone=backbone, mutable=mutable), series()
    delta = generator(x, *condition())
    fixed = [f for f in range(F) if f not in mutable]
    assert delta.shape == x.shape
    assert (delta[..., fixed] == 0).all() and torch.equal((x + delta)[..., fixed], x[..., fixed])
    assert (delta[..., list(mutable)] != 0).any()
    assert (generator.train()(x, *condition())[..., fixed] == 0).all()


def test_residuals_depend_on_immutable_features_too():
    generator, x = build(mutable=(1,)), series()
    other = x.clone()
    other[..., 4] += 1
    assert not torch.allclose(generator(x, *condition())[..., 1], generator(other, *condition())[..., 1])


def test_all_features_share_the_heads():
    few, many = (
        {name: p.shape for name, p in generator.named_parameters() if not name.startswith("backbone")}
        for generator in (build(n_features=3, mutable=(0,)), build(n_features=40, mutable=range(40)))
    )
    assert few == many and len(few) > 5


@each_gate
@each_backbone
def test_residuals_depend_on_query_target_and_sparsity_weight(gate, backbone):
    generator, x = build(gate, backbone=backbone), series()
    delta = generator(x, *condition(0))
    assert not torch.allclose(delta, generator(x, *condition(2)))
    assert not torch.allclose(delta, generator(x, *condition(0, 1.0)))
    assert not torch.allclose(delta, generator(x.flip(1), *condition(0)))
    mixed = generator(x, torch.tensor([0, 2, 0, 2]), torch.zeros(B))
    torch.testing.assert_close(mixed[::2], delta[::2])


@each_gate
@each_backbone
def test_gradients_reach_every_parameter(gate, backbone):
    generator, x = build(gate, backbone=backbone).train(), series()
    generator(x, torch.tensor([0, 1, 2, 0]), torch.randn(B)).square().sum().backward()
    assert [n for n, p in generator.named_parameters() if p.grad is None or not (p.grad != 0).any()] == []


# Gates in the generator.


@each_backbone
@pytest.mark.parametrize("gate", ["feature", "window"])
def test_a_shut_feature_never_changes_and_the_others_do(gate, backbone):
    generator, x = build(gate, backbone=backbone), series()
    plain = generator.feature_gate.forward
    generator.feature_gate.forward = lambda pooled: plain(pooled) - 50.0 * (torch.arange(F)[:, None] == 2)  # (B, F, 1)
    delta = generator(x, *condition())
    assert (delta[..., 2] == 0).all()
    assert all((delta[..., f] != 0).any() for f in (0, 1, 3, 4))


def test_shut_entries_change_nothing():
    generator, x = build("window"), series()
    with torch.no_grad():
        generator.entry_gate.bias[:] = -50.0
    assert (generator(x, *condition()) == 0).all()


def test_gates_are_those_of_the_averaged_logits_and_open_for_a_whole_window():
    generator, x = build("window"), torch.randn(1, 30, F)
    logits = torch.full((1, 30, F, 1), -10.0)
    logits[0, 4:19, 1] = 10.0  # feature 1 only, and never near the ends; seven steps are averaged
    generator.entry_gate.forward = lambda h: logits
    generator.feature_gate.forward = lambda pooled: torch.zeros(1, F, 1)
    generator.residual_head.forward = lambda h: torch.ones(1, 30, F, 1)
    gates = generator(x, *condition(log_weight=-9.0, n=1))  # a small weight: long windows
    assert (gates[..., [0, 2, 3, 4]] == 0).all()
    # 10 · (2 k / 7 − 1) where k of seven steps are open; a gate is exactly 0 or 1 beyond ±ln 11 = ±2.4.
    inside = torch.tensor([min(7, max(0, t + 3 - 4 + 1), max(0, 19 - (t - 3))) for t in range(30)])
    assert inside[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7] and inside[18:].tolist() == [4, 3, 2, 1] + [0] * 8
    torch.testing.assert_close(gates[0, :, 1], hard_concrete(10.0 * (2 * inside / 7 - 1), training=False))
    assert (gates[0, 5:18, 1] == 1).all() and (gates[0, :3, 1] == 0).all() and (gates[0, 20:, 1] == 0).all()
    # A large weight: an average of three steps has sharper ends.
    fine = generator(x, *condition(log_weight=9.0, n=1))[0, :, 1]
    inside = torch.tensor([min(3, max(0, t + 1 - 4 + 1), max(0, 19 - (t - 1))) for t in range(30)])
    torch.testing.assert_close(fine, hard_concrete(10.0 * (2 * inside / 3 - 1), training=False))


def test_a_single_step_does_not_open_a_gate():
    generator, x = build("window"), torch.randn(1, 30, F)
    logits = torch.full((1, 30, F, 1), -10.0)
    logits[0, 10, 1] = 20.0  # averaged over seven steps: −40 / 7
    generator.entry_gate.forward = lambda h: logits
    generator.feature_gate.forward = lambda pooled: torch.zeros(1, F, 1)
    assert (generator(x, *condition(n=1)) == 0).all()


def test_logits_of_features_and_entries_are_added():
    generator, x = build("window"), torch.randn(1, 30, F)
    generator.residual_head.forward = lambda h: torch.ones(1, 30, F, 1)
    generator.entry_gate.forward = lambda h: torch.full((1, 30, F, 1), 1.0)
    generator.feature_gate.forward = lambda pooled: torch.tensor([-1.0, 4.0, -9.0, -1.5, 0.0]).reshape(1, F, 1)
    logits = torch.tensor([0.0, 5.0, -8.0, -0.5, 1.0])
    torch.testing.assert_close(generator(x, *condition(n=1)), hard_concrete(logits, training=False).expand(1, 30, F))


def test_gates_are_mostly_open_at_first():
    generator, x = build("window"), series()
    assert generator.feature_gate[-1].bias.tolist() == generator.entry_gate.bias.tolist() == [1.0]
    assert (generator(x, *condition()) != 0).float().mean() > 0.9


def test_gates_are_noisy_in_training_only():
    generator, x = build("window"), series()
    assert torch.equal(generator(x, *condition()), generator(x, *condition()))
    generator.train()
    assert not torch.equal(generator(x, *condition()), generator(x, *condition()))


# Parts.


def test_the_parts_of_each_kind():
    plain, feature, window = build("none"), build("feature"), build()
    assert isinstance(plain.residual_head, SparsityLayer) and plain.feature_gate is None and plain.entry_gate is None
    assert (
        isinstance(feature.residual_head, SparsityLayer)
        and feature.feature_gate is not None
        and feature.entry_gate is None
    )
    assert (
        isinstance(window.residual_head, torch.nn.Linear)
        and window.feature_gate is not None
        and window.entry_gate is not None
    )
    assert all(isinstance(g.backbone, Mixer) and len(g.backbone.blocks) == 2 for g in (plain, feature, window))


def test_a_recurrent_backbone_gets_series_and_condition_at_every_step():
    backbone = build("none", backbone="lstm").backbone
    assert isinstance(backbone, PerStep) and backbone.backbone.layers[0].input_size == F + EMBEDDING + 1


@each_backbone
def test_the_size_it_was_built_with_is_kept(backbone):
    generator = build(backbone=backbone)
    assert (generator.hidden, generator.layers) == (12, 2)


# The functions of the gates.


def test_the_window_mean_by_hand():
    values = torch.tensor([6.0, 0.0, 3.0, -9.0, 0.0, 0.0, 12.0]).reshape(1, 7, 1)  # 7 steps: three wide, at least
    assert window_mean(values).flatten().tolist() == [3.0, 3.0, -2.0, -2.0, -3.0, 4.0, 6.0]  # no padding at the ends
    step = torch.zeros(2, 25, 3)  # five wide
    step[1, 12:, 2] = 5.0
    smooth = window_mean(step)
    assert smooth[1, :, 2].tolist() == pytest.approx([0.0] * 10 + [1.0, 2.0, 3.0, 4.0] + [5.0] * 11)
    assert not smooth[0].any() and not smooth[1, :, :2].any()  # each feature of each series by itself


@pytest.mark.parametrize(("n_steps", "width"), [(1, 3), (2, 3), (19, 3), (20, 5), (29, 5), (30, 7), (35, 7), (100, 21)])
def test_the_width_of_the_window_is_odd_and_grows_with_the_series(n_steps, width):
    point = torch.zeros(1, n_steps, 1)
    point[:, n_steps // 2] = 1.0
    smooth = window_mean(point)
    assert smooth.shape == point.shape
    assert (smooth != 0).sum() == min(width, n_steps)
    assert n_steps < width or smooth.max().item() == pytest.approx(1 / width)


def test_hard_concrete_by_hand():
    logits = torch.tensor([-math.log(3), 0.0, math.log(3)])  # sigmoids 1/4, 1/2, 3/4, stretched to 1.2 s - 0.1
    torch.testing.assert_close(hard_concrete(logits, training=False), torch.tensor([0.2, 0.5, 0.8]))


@pytest.mark.parametrize("training", [True, False])
def test_gates_shut_and_open_exactly(training):
    assert hard_concrete(torch.tensor([-40.0, 40.0]).repeat(500), training).tolist() == [0.0, 1.0] * 500


def test_a_gate_is_exactly_shut_where_the_stretched_sigmoid_is_negative():
    edge = math.log(-LOW / HIGH)
    gates = hard_concrete(torch.tensor([edge - 0.01, edge + 0.01]), training=False)
    assert gates[0] == 0 and 0 < gates[1] < 0.01


def test_the_gradient_is_that_of_the_stretched_sigmoid_and_zero_where_it_is_clipped():
    logits = torch.tensor([-9.0, 0.0, 9.0], requires_grad=True)
    hard_concrete(logits, training=False).sum().backward()
    torch.testing.assert_close(logits.grad, torch.tensor([0.0, 1.2 / 4, 0.0]))


def test_noise_is_drawn_in_training_only():
    logits = torch.zeros(2000)
    noisy = hard_concrete(logits, training=True)
    state = torch.get_rng_state()
    assert (hard_concrete(logits, training=False) == 0.5).all() and torch.equal(state, torch.get_rng_state())
    # Of noisy gates some are shut, some open, some between, and as many on either side.
    assert (noisy == 0).any() and (noisy == 1).any() and ((noisy > 0) & (noisy < 1)).any()
    assert noisy.mean().item() == pytest.approx(0.5, abs=0.04)
    assert torch.isfinite(noisy).all()


def test_noisy_gates_have_a_gradient():
    logits = torch.zeros(200, requires_grad=True)
    hard_concrete(logits, training=True).sum().backward()
    assert (logits.grad >= 0).all() and (logits.grad > 0).float().mean() > 0.5
