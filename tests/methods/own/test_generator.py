"""The gated generator: what it may change, what it depends on, and what its gates shut."""

import math

import pytest
import torch
import torch.nn.functional as functional
from hypothesis import given
from hypothesis import strategies as st

import sparcets as sp
from sparcets.methods.own.generator import (
    HIGH,
    LOW,
    NEGLIGIBLE,
    Critic,
    GatedGenerator,
    Mixer,
    ModelSizes,
    configured_sizes,
    default_sizes,
    drop_negligible,
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


# The critic.


def critic(layers=2, hidden=8):
    return Critic(n_features=F, n_targets=3, hidden=hidden, layers=layers)


def all_of_class(k):
    return torch.full((6,), k)


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_one_logit_per_series_that_depends_on_every_entry(layers):
    x = torch.randn(6, T, F, requires_grad=True)
    logits = critic(layers).eval()(x, all_of_class(1))
    assert logits.shape == (6,)
    logits.sum().backward()
    assert (x.grad != 0).all()


def test_the_class_enters_by_projection():
    net, x = critic().eval(), torch.randn(6, T, F)
    with torch.no_grad():
        logits = torch.stack([net(x, all_of_class(k)) for k in range(3)])
        h = functional.leaky_relu(net.layers[0](x.transpose(1, 2)), 0.2)
        pooled = (h + functional.leaky_relu(net.layers[1](h), 0.2)).mean(2)
        table = net.class_embedding.weight
        for k in range(3):  # a class adds the inner product of its row and the pooled states, and nothing else
            torch.testing.assert_close(logits[k] - logits[0], pooled @ (table[k] - table[0]))
    assert not torch.allclose(logits[0], logits[1])
    classes = torch.tensor([0, 1, 2, 0, 1, 2])
    torch.testing.assert_close(net(x, classes), logits[classes, torch.arange(6)])


def test_every_weight_keeps_a_spectral_norm_of_about_one_while_it_trains():
    net = critic(3)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    real, fake = torch.randn(6, T, F) + 3, torch.randn(6, T, F)
    losses = []
    for _ in range(40):
        optimiser.zero_grad()
        loss = (net(fake, all_of_class(0)) - net(real, all_of_class(0))).mean()
        losses.append(loss.item())
        loss.backward()
        optimiser.step()
    assert losses[-1] < losses[0] - 0.5  # it does train
    net.eval()
    unnormalised = []
    for module in (*net.layers, net.head, net.class_embedding):
        assert torch.linalg.matrix_norm(module.weight.flatten(1), ord=2).item() <= 1.1
        unnormalised.append(torch.linalg.matrix_norm(module.parametrizations.weight.original.flatten(1), ord=2).item())
    assert max(unnormalised) > 1.5  # the parameters have grown: it is the normalisation that bounds the weights


# Sizes by the data and the device; settings take precedence.

SMALL, LARGE = {"hidden": 16, "layers": 4, "batch_size": 32}, {"hidden": 32, "layers": 6, "batch_size": 128}


@pytest.mark.parametrize(
    ("n_series", "n_features", "on_gpu", "sizes"),
    [
        *(
            (n, 12, False, {**SMALL, "steps": s})
            for n, s in ((0, 500), (4, 501), (40, 510), (1580, 895), (10**6, 1100))
        ),
        (999, 12, True, {**SMALL, "steps": 749}),
        (1000, 32, True, {**LARGE, "steps": 1800}),
        (10**7, 33, True, {**SMALL, "batch_size": 128, "steps": 1800}),
    ],
)
def test_sizes_follow_the_data_and_the_device(n_series, n_features, on_gpu, sizes):
    assert default_sizes(n_series, n_features, on_gpu=on_gpu) == ModelSizes(**sizes)
    assert configured_sizes(sp.ExplainerConfig(), n_series, n_features, on_gpu=on_gpu) == ModelSizes(**sizes)


@pytest.mark.parametrize("name", ["generator.hidden", "generator.layers", "train.batch_size"])
def test_a_setting_replaces_its_own_size_and_no_other(name):
    sizes = configured_sizes(sp.ExplainerConfig().override(f"{name}=7"), 5000, 12, on_gpu=True)
    assert sizes == ModelSizes(**{**LARGE, name.partition(".")[2]: 7, "steps": 1800})


# What is negligible.


def test_a_negligible_window_is_dropped_and_the_small_end_of_a_large_one_is_kept():
    delta = torch.zeros(1, 60, 2)
    delta[0, 5:30, 0] = 0.09  # a little less than a tenth, for long
    delta[0, 10:30, 1] = 0.8
    delta[0, 30, 1] = 0.01  # next to large changes
    kept = drop_negligible(delta)
    assert not kept[..., 0].any() and torch.equal(kept[..., 1], delta[..., 1])


@given(st.integers(1, 80), st.integers(0, 1000), st.floats(0.01, 1.0))
def test_what_is_not_negligible_keeps_its_bits(n_steps, seed, size):
    delta = size * torch.randn(3, n_steps, 4, generator=torch.Generator().manual_seed(seed))
    kept = drop_negligible(delta)
    dropped = (kept == 0) & (delta != 0)
    assert torch.equal(kept[~dropped], delta[~dropped])
    width = max(3, n_steps // 5) | 1
    assert not dropped[delta.abs() >= NEGLIGIBLE * width].any()
