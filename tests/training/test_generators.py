"""Generators: which features they change, and which inputs and gradients reach them."""

import pytest
import torch

from sparcets.training.generator import EMBEDDING, Generator

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
    return Generator(
        n_features=F,
        mutable=list(mutable),
        n_targets=n_targets,
        backbone=backbone,
        hidden=6,
        layers=layers,
        dropout=0.0,
        head=head,
        low=LOW,
        high=HIGH,
    ).eval()


def targets(k):
    return torch.full((B,), k)


@each_head
@each_backbone
@pytest.mark.parametrize("mutable", [(0, 1, 2, 3, 4), (1, 3), (4,)])
def test_immutable_features_get_an_exact_zero_and_the_head_has_no_outputs_for_them(head, backbone, mutable):
    built, x = generator(head, backbone, mutable=mutable), torch.randn(B, T, F)
    delta = built(x, targets(1))
    fixed = [f for f in range(F) if f not in mutable]
    assert delta.shape == x.shape
    assert torch.equal((x + delta)[..., fixed], x[..., fixed])
    assert all((delta[..., f] != 0).any() for f in mutable) or head == "sparse"
    linear = built.head.positive if head == "sparse" else built.head
    assert linear.out_features == len(mutable)


def test_immutable_features_are_inputs_though_they_are_not_changed():
    built, x = generator("residual", mutable=(1,)), torch.randn(B, T, F)
    other = x.clone()
    other[..., 0] += 1
    assert not torch.equal(built(x, targets(1)), built(other, targets(1)))


@each_head
@each_backbone
def test_residuals_depend_on_the_query_and_on_its_own_target(head, backbone):
    built, x = generator(head, backbone), torch.randn(B, T, F)
    assert not torch.allclose(x + built(x, targets(0)), x + built(x, targets(2)))
    assert not torch.allclose(built(x, targets(0)), built(x.flip(1), targets(0)))
    mixed = built(x, torch.tensor([0, 2, 0, 2]))
    torch.testing.assert_close(mixed[1::2], built(x, targets(2))[1::2])


def test_a_single_target_needs_no_embedding():
    alone, several = generator(n_targets=1), generator(n_targets=2)
    widths = [g.backbone.layers[0].input_size for g in (alone, several)]
    assert widths == [F, F + EMBEDDING]
    x = torch.randn(B, T, F)
    assert torch.equal(alone(x, targets(0)), alone(x, targets(7)))  # the target is not even looked at


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
