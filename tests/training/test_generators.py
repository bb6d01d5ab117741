"""Generators and discriminators: which features are changed, and which inputs and gradients reach them."""

import pytest
import torch

from sparcets.training.generator import Discriminator, Generator, SparsityLayer, build_backbone

B, T, F = 4, 9, 5
HEADS, BACKBONES = ["sparse", "residual", "series"], ["lstm", "gru", "tcn"]
LOW, HIGH = torch.tensor([-1.0, -2, 0, -1, 3]), torch.tensor([1.0, 2, 5, 1, 4])

each_head = pytest.mark.parametrize("head", HEADS)
each_backbone = pytest.mark.parametrize("backbone", BACKBONES)


@pytest.fixture(autouse=True)
def _seeded():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def generator(head="sparse", backbone="lstm", *, mutable=(0, 1, 2, 3, 4), n_targets=3, layers=1):
    known = {"n_targets": n_targets, "backbone": backbone, "hidden": 6, "layers": layers, "dropout": 0.0, "head": head}
    return Generator(n_features=F, mutable=list(mutable), low=LOW, high=HIGH, **known).eval()


def targets(k):
    return torch.full((B,), k)


@each_head
@each_backbone
@pytest.mark.parametrize("mutable", [(0, 1, 2, 3, 4), (1, 3), (4,)])
def test_immutable_features_get_an_exact_zero_and_the_head_has_no_outputs_for_them(head, backbone, mutable):
    built, x = generator(head, backbone, mutable=mutable), torch.randn(B, T, F)
    delta = built(x, targets(1))
    fixed = [f for f in range(F) if f not in mutable]
    assert delta.shape == x.shape and torch.equal((x + delta)[..., fixed], x[..., fixed])
    assert all((delta[..., f] != 0).any() for f in mutable) or head == "sparse"
    linear = built.head.positive if head == "sparse" else built.head
    assert linear.out_features == len(mutable)


@each_head
@each_backbone
def test_residuals_depend_on_the_query_and_on_its_own_target(head, backbone):
    built, x = generator(head, backbone), torch.randn(B, T, F)
    assert not torch.allclose(x + built(x, targets(0)), x + built(x, targets(2)))
    assert not torch.allclose(built(x, targets(0)), built(x.flip(1), targets(0)))
    mixed = built(x, torch.tensor([0, 2, 0, 2]))
    torch.testing.assert_close(mixed[1::2], built(x, targets(2))[1::2])


@pytest.mark.parametrize("mutable", [(0, 1, 2, 3, 4), (1, 4)])
def test_whole_series_stay_within_the_data_s_range_however_far_the_head_goes(mutable):
    built, x = generator("series", mutable=mutable), 10 * torch.randn(B, T, F)
    with torch.no_grad():
        built.head.weight.mul_(1000)
    series = (x + built(x, targets(1)))[..., list(mutable)]
    low, high = LOW[list(mutable)], HIGH[list(mutable)]
    assert (series >= low - 1e-5).all() and (series <= high + 1e-5).all()
    torch.testing.assert_close(series.amax((0, 1)), high, atol=1e-4, rtol=0)  # the whole range is in reach
    torch.testing.assert_close(series.amin((0, 1)), low, atol=1e-4, rtol=0)


@each_head
@each_backbone
def test_gradients_reach_every_parameter_of_the_generator(head, backbone):
    built = generator(head, backbone, layers=2).train()
    built(torch.randn(B, T, F), torch.tensor([0, 1, 2, 0])).square().sum().backward()
    assert [n for n, p in built.named_parameters() if p.grad is None or not (p.grad != 0).any()] == []


# Discriminators: one logit from the series and the class it claims.


@pytest.mark.parametrize("backbone", ["lstm", "gru", "tcn"])
def test_the_logit_depends_on_the_claimed_class_and_on_every_series(backbone):
    built, x = Discriminator(n_features=F, n_targets=3, backbone=backbone, hidden=6, layers=1), torch.randn(B, T, F)
    logits = built(x, targets(0))
    assert logits.shape == (B,) and not torch.allclose(logits, built(x, targets(2)))
    moved = x.clone()
    moved[:, 2, 1] += 1
    assert (logits != built(moved, targets(0))).all()


# Parts of both.


@pytest.mark.parametrize("kind", ["lstm", "gru", "tcn"])
def test_every_step_of_a_backbone_depends_on_past_and_future(kind):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        built = build_backbone(kind, 5, 6, 1, 0.0).eval()
        x = torch.randn(1, 9, 5, requires_grad=True)
    states = built(x)
    assert states.shape == (1, 9, 12)
    states[0, 4].sum().backward()
    assert (x.grad[0] != 0).any(1).all()


def layer():
    """Return a layer with δ_pos = (h0, h1 − 1) and δ_neg = (−h0 − 1, 1)."""
    result = SparsityLayer(2, 2)
    with torch.no_grad():
        result.positive.weight.copy_(torch.eye(2))
        result.positive.bias.copy_(torch.tensor([0.0, -1.0]))
        result.negative.weight.copy_(torch.tensor([[-1.0, 0.0], [0.0, 0.0]]))
        result.negative.bias.copy_(torch.tensor([-1.0, 1.0]))
    return result


def test_by_hand_on_two_series_of_three_steps():
    h = torch.tensor([[[2.0, 0.0], [0.5, 3.0], [-0.5, 2.0]], [[-3.0, 1.0], [0.0, 1.5], [-1.0, 5.0]]])
    #   relu(h0) - relu(-h0 - 1)    relu(h1 - 1) - 1
    expected = [[[2.0, -1.0], [0.5, 1.0], [0.0, 0.0]], [[-2.0, -1.0], [0.0, -0.5], [0.0, 3.0]]]
    assert layer()(h).tolist() == expected
