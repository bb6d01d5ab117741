"""The gated generator: what it may touch, what it hears, what its gates shut, and where a guide leads it."""

import pytest
import torch

from sparcets.networks.gated import EMBEDDING, GatedGenerator
from sparcets.networks.sparsity_layer import SparsityLayer

B, T, F = 4, 9, 5
KINDS = [("none", False), ("feature", False), ("entry", False), ("none", True), ("feature", True), ("entry", True)]
each_kind = pytest.mark.parametrize(("gate", "guided"), KINDS)
each_backbone = pytest.mark.parametrize("backbone", ["lstm", "gru", "tcn"])


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def generator(gate="feature", guided=False, *, backbone="lstm", mutable=(0, 1, 2, 3, 4)):
    return GatedGenerator(
        n_features=F,
        mutable=list(mutable),
        n_targets=3,
        backbone=backbone,
        hidden=6,
        layers=1,
        gate=gate,
        guided=guided,
    ).eval()


def asked(k=1, strength=0.0):
    return torch.full((B,), k), torch.full((B,), strength)


def series():
    return torch.randn(B, T, F), torch.randn(B, T, F)


@each_kind
@pytest.mark.parametrize("mutable", [(1, 3), (4,)])
def test_immutable_features_get_an_exact_zero(gate, guided, mutable):
    built, (x, guide) = generator(gate, guided, mutable=mutable), series()
    delta = built(x, *asked(), guide)
    fixed = [f for f in range(F) if f not in mutable]
    assert delta.shape == x.shape
    assert (delta[..., fixed] == 0).all() and torch.equal((x + delta)[..., fixed], x[..., fixed])
    assert (delta[..., list(mutable)] != 0).any()
    assert all(p.shape[0] == len(mutable) for n, p in built.named_parameters() if n.startswith(("residual", "entries")))


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


@pytest.mark.parametrize("gate", ["none", "feature", "entry"])
def test_a_guided_change_lies_between_the_query_and_its_guide(gate):
    built, (x, guide) = generator(gate, True), series()
    delta, way = built(x, *asked(), guide), guide - x
    share = delta / way
    assert (share >= 0).all() and (share <= 1 + 1e-6).all()
    assert (delta != 0).any()
    assert (built(x, *asked(), x) == 0).all()  # a guide that is the query leads nowhere
    with torch.no_grad():
        built.entries.weight.zero_()
        built.entries.bias.fill_(50.0)  # all gates open: the whole way
    torch.testing.assert_close(built(x, *asked(), guide), way)


@pytest.mark.parametrize("gate", ["feature", "entry"])
def test_a_shut_feature_never_changes_and_the_others_do(gate):
    built, (x, _) = generator(gate), series()
    with torch.no_grad():
        built.features[-1].bias[2] = -50.0
    delta = built(x, *asked())
    assert (delta[..., 2] == 0).all()
    assert all((delta[..., f] != 0).any() for f in (0, 1, 3, 4))


@pytest.mark.parametrize("guided", [True, False])
def test_shut_entries_change_nothing(guided):
    built, (x, guide) = generator("entry", guided), series()
    with torch.no_grad():
        built.entries.bias[:] = -50.0
    assert (built(x, *asked(), guide) == 0).all()


def test_what_is_built_for_each_gate():
    plain, feature, entry, guided = generator("none"), generator(), generator("entry"), generator("none", True)
    assert isinstance(plain.residual, SparsityLayer) and plain.features is None and plain.entries is None
    assert isinstance(feature.residual, SparsityLayer) and feature.features is not None and feature.entries is None
    assert isinstance(entry.residual, torch.nn.Linear) and entry.features is not None and entry.entries is not None
    assert guided.residual is None and guided.features is None and guided.entries is not None
    inputs = [g.backbone.layers[0].input_size for g in (plain, guided)]
    assert inputs == [F + EMBEDDING + 1, 2 * F + EMBEDDING + 1]  # the guide is heard as well


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
    built, (x, _) = generator("entry"), series()
    assert torch.equal(built(x, *asked()), built(x, *asked()))
    built.train()
    assert not torch.equal(built(x, *asked()), built(x, *asked()))
