"""The gated generator: what it may touch, what it hears, what its gates shut, and where a guide leads it."""

import pytest
import torch

from sparcets.explainers.sparcets.generator import EMBEDDING, GatedGenerator
from sparcets.explainers.sparcets.generator import STRETCHES, hard_concrete, over_stretches
from sparcets.explainers.sparcets.mixer import Mixer, PerStep
from sparcets.networks.sparsity_layer import SparsityLayer

B, T, F = 4, 9, 5
GATES = ["none", "feature", "stretch"]
each_kind = pytest.mark.parametrize(("gate", "guided"), [(gate, guided) for guided in (False, True) for gate in GATES])
each_backbone = pytest.mark.parametrize("backbone", ["mixer", "lstm", "gru", "tcn"])


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def generator(gate="stretch", guided=False, *, backbone="mixer", mutable=(0, 1, 2, 3, 4), n_features=F):
    built = GatedGenerator(
        n_features=n_features,
        mutable=list(mutable),
        n_targets=3,
        backbone=backbone,
        hidden=12,
        layers=2,
        gate=gate,
        guided=guided,
    )
    if isinstance(built.amount, SparsityLayer):
        with torch.no_grad():  # by chance it may start with both heads shut; here it starts with both open
            built.amount.positive.bias.fill_(0.5)
            built.amount.negative.bias.fill_(0.4)
    return built.eval()


def asked(k=1, strength=0.0, n=B):
    return torch.full((n,), k), torch.full((n,), strength)


def series():
    return torch.randn(B, T, F), torch.randn(B, T, F)


@each_kind
@each_backbone
@pytest.mark.parametrize("mutable", [(1, 3), (4,)])
def test_immutable_features_get_an_exact_zero(gate, guided, backbone, mutable):
    built, (x, guide) = generator(gate, guided, backbone=backbone, mutable=mutable), series()
    delta = built(x, *asked(), guide)
    fixed = [f for f in range(F) if f not in mutable]
    assert delta.shape == x.shape
    assert (delta[..., fixed] == 0).all() and torch.equal((x + delta)[..., fixed], x[..., fixed])
    assert (delta[..., list(mutable)] != 0).any()
    assert (built.train()(x, *asked(), guide)[..., fixed] == 0).all()


def test_what_may_not_change_is_heard_all_the_same():
    built, (x, _) = generator(mutable=(1,)), series()
    other = x.clone()
    other[..., 4] += 1
    assert not torch.allclose(built(x, *asked())[..., 1], built(other, *asked())[..., 1])


def test_all_features_share_the_heads():
    few, many = generator(n_features=3, mutable=(0,)), generator(n_features=40, mutable=range(40))
    heads = [
        {name: p.shape for name, p in built.named_parameters() if not name.startswith("states")}
        for built in (few, many)
    ]
    assert heads[0] == heads[1] and len(heads[0]) > 5


@each_kind
@each_backbone
def test_query_target_and_strength_are_heard(gate, guided, backbone):
    built, (x, guide) = generator(gate, guided, backbone=backbone), series()
    delta = built(x, *asked(0), guide)
    assert not torch.allclose(delta, built(x, *asked(2), guide))
    assert not torch.allclose(delta, built(x, *asked(0, 1.0), guide))
    assert not torch.allclose(delta, built(x.flip(1), *asked(0), guide))
    mixed = built(x, torch.tensor([0, 2, 0, 2]), torch.zeros(B), guide)
    torch.testing.assert_close(mixed[::2], delta[::2])


@each_backbone
@pytest.mark.parametrize("gate", GATES)
def test_a_guided_change_lies_between_the_query_and_its_guide(gate, backbone):
    built, (x, guide) = generator(gate, True, backbone=backbone), series()
    delta, way = built(x, *asked(), guide), guide - x
    share = delta / way
    assert (share >= 0).all() and (share <= 1 + 1e-6).all()
    assert (delta != 0).any()
    assert (built(x, *asked(), x) == 0).all()  # a guide that is the query leads nowhere
    with torch.no_grad():
        built.entries.weight.zero_()
        built.entries.bias.fill_(50.0)  # all gates open: the whole way
    torch.testing.assert_close(built(x, *asked(), guide), way)


@pytest.mark.parametrize("gate", GATES)
def test_a_guide_is_looked_at_and_not_only_followed(gate):
    built, (x, guide) = generator(gate, True), series()
    other = guide.clone()
    other[:, 0, 0] += 3  # one entry: the gates of the rest know of it
    share, again = ((built(x, *asked(), g) / (g - x))[:, 2:, 1:] for g in (guide, other))
    assert not torch.allclose(share, again)


@each_backbone
@pytest.mark.parametrize("gate", ["feature", "stretch"])
def test_a_shut_feature_never_changes_and_the_others_do(gate, backbone):
    built, (x, _) = generator(gate, backbone=backbone), series()
    plain = built.features.forward
    built.features.forward = lambda pooled: plain(pooled) - 50.0 * (torch.arange(F)[:, None] == 2)  # (B, F, 1)
    delta = built(x, *asked())
    assert (delta[..., 2] == 0).all()
    assert all((delta[..., f] != 0).any() for f in (0, 1, 3, 4))


@pytest.mark.parametrize("guided", [True, False])
def test_shut_stretches_change_nothing(guided):
    built, (x, guide) = generator("stretch", guided), series()
    with torch.no_grad():
        built.entries.bias[:] = -50.0
    assert (built(x, *asked(), guide) == 0).all()


# Stretches.


def test_logits_are_averaged_over_a_fifth_of_the_series_by_hand():
    assert STRETCHES == 5
    logits = torch.tensor([6.0, 0.0, 3.0, -9.0, 0.0, 0.0, 12.0]).reshape(1, 7, 1)  # 7 steps: three wide, at least
    assert over_stretches(logits).flatten().tolist() == [3.0, 3.0, -2.0, -2.0, -3.0, 4.0, 6.0]  # ends: of what is there
    step = torch.zeros(2, 25, 3)  # five wide
    step[1, 12:, 2] = 5.0
    smooth = over_stretches(step)
    assert smooth[1, :, 2].tolist() == pytest.approx([0.0] * 10 + [1.0, 2.0, 3.0, 4.0] + [5.0] * 11)
    assert not smooth[0].any() and not smooth[1, :, :2].any()  # each feature of each series for itself


@pytest.mark.parametrize(("n_steps", "width"), [(1, 3), (2, 3), (19, 3), (20, 5), (29, 5), (30, 7), (35, 7), (100, 21)])
def test_the_width_is_odd_and_grows_with_the_series(n_steps, width):
    point = torch.zeros(1, n_steps, 1)
    point[:, n_steps // 2] = 1.0
    smooth = over_stretches(point)
    assert smooth.shape == point.shape
    assert (smooth != 0).sum() == min(width, n_steps)
    assert n_steps < width or smooth.max().item() == pytest.approx(1 / width)


@pytest.mark.parametrize("guided", [True, False])
def test_gates_are_those_of_the_averaged_logits_and_open_for_a_whole_stretch(guided):
    built = generator("stretch", guided)
    x, guide = torch.randn(1, 30, F), torch.randn(1, 30, F)
    logits = torch.full((1, 30, F, 1), -10.0)
    logits[0, 4:19, 1] = 10.0  # feature 1 alone, and never near the ends; seven steps are averaged
    built.entries.forward = lambda h: logits
    built.features.forward = lambda pooled: torch.zeros(1, F, 1)
    if guided:
        way = guide - x
    else:
        built.amount.forward = lambda h: torch.ones(1, 30, F, 1)
        way = torch.ones_like(x)
    delta = built(x, *asked(strength=-9.0, n=1), guide)  # cheap entries: long stretches
    opened = delta / way
    assert (opened[..., [0, 2, 3, 4]] == 0).all()
    # 10 · (2 k / 7 − 1) where k of seven steps are open; a gate is exactly 0 or 1 beyond ±ln 11 = ±2.4.
    inside = torch.tensor([min(7, max(0, t + 3 - 4 + 1), max(0, 19 - (t - 3))) for t in range(30)])
    assert inside[:9].tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 7] and inside[18:].tolist() == [4, 3, 2, 1] + [0] * 8
    expected = hard_concrete(10.0 * (2 * inside / 7 - 1), training=False)
    torch.testing.assert_close(opened[0, :, 1], expected)
    assert (opened[0, 5:18, 1] == 1).all() and (opened[0, :3, 1] == 0).all() and (opened[0, 20:, 1] == 0).all()
    dear = (built(x, *asked(strength=9.0, n=1), guide) / way)[0, :, 1]  # an average of three steps has sharper ends
    few = torch.tensor([min(3, max(0, t + 1 - 4 + 1), max(0, 19 - (t - 1))) for t in range(30)])
    torch.testing.assert_close(dear, hard_concrete(10.0 * (2 * few / 3 - 1), training=False))


def test_a_point_that_stands_alone_does_not_open_a_gate():
    built, x = generator("stretch"), torch.randn(1, 30, F)
    logits = torch.full((1, 30, F, 1), -10.0)
    logits[0, 10, 1] = 20.0  # averaged over seven steps: −40 / 7
    built.entries.forward = lambda h: logits
    built.features.forward = lambda pooled: torch.zeros(1, F, 1)
    assert (built(x, *asked(n=1)) == 0).all()


def test_features_and_stretches_decide_together():
    built, x = generator("stretch"), torch.randn(1, 30, F)
    built.amount.forward = lambda h: torch.ones(1, 30, F, 1)
    built.entries.forward = lambda h: torch.full((1, 30, F, 1), 1.0)
    built.features.forward = lambda pooled: torch.tensor([-1.0, 4.0, -9.0, -1.5, 0.0]).reshape(1, F, 1)
    expected = hard_concrete(torch.tensor([0.0, 5.0, -8.0, -0.5, 1.0]), training=False)
    torch.testing.assert_close(built(x, *asked(n=1)), expected.expand(1, 30, F))


# What is built.


def test_what_is_built_for_each_gate():
    plain, feature, stretch, guided = generator("none"), generator("feature"), generator(), generator("none", True)
    assert isinstance(plain.amount, SparsityLayer) and plain.features is None and plain.entries is None
    assert isinstance(feature.amount, SparsityLayer) and feature.features is not None and feature.entries is None
    assert isinstance(stretch.amount, torch.nn.Linear) and stretch.features is not None and stretch.entries is not None
    assert guided.amount is None and guided.features is None and guided.entries is not None
    assert all(isinstance(g.states, Mixer) and len(g.states.blocks) == 2 for g in (plain, guided))
    assert [g.states.first.in_channels for g in (plain, guided)] == [1, 2]  # the guide is heard as well


def test_a_recurrent_backbone_hears_all_at_every_step():
    plain, guided = (generator("none", guided, backbone="lstm") for guided in (False, True))
    assert isinstance(plain.states, PerStep)
    inputs = [g.states.backbone.layers[0].input_size for g in (plain, guided)]
    assert inputs == [F + EMBEDDING + 1, 2 * F + EMBEDDING + 1]


@each_backbone
def test_the_size_it_was_built_with_is_known(backbone):
    built = generator(backbone=backbone)
    assert (built.hidden, built.layers, built.guided) == (12, 2, False)


def test_gates_are_rather_open_at_first():
    built, (x, _) = generator("stretch"), series()
    assert built.features[-1].bias.tolist() == built.entries.bias.tolist() == [1.0]
    assert (built(x, *asked()) != 0).float().mean() > 0.9


def test_without_guidance_a_guide_is_not_even_looked_at():
    built, (x, guide) = generator(), series()
    assert torch.equal(built(x, *asked()), built(x, *asked(), guide))


@each_kind
@each_backbone
def test_gradients_reach_every_parameter(gate, guided, backbone):
    built, (x, guide) = generator(gate, guided, backbone=backbone).train(), series()
    built(x, torch.tensor([0, 1, 2, 0]), torch.randn(B), guide).square().sum().backward()
    assert [n for n, p in built.named_parameters() if p.grad is None or not (p.grad != 0).any()] == []


def test_gates_are_noisy_in_training_alone():
    built, (x, _) = generator("stretch"), series()
    assert torch.equal(built(x, *asked()), built(x, *asked()))
    built.train()
    assert not torch.equal(built(x, *asked()), built(x, *asked()))
