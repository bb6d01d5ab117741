"""The mixer: what each state depends on, along time and across features; and recurrent backbones with the same call."""

import pytest
import torch

from sparcets.methods.own.generator import DILATIONS, KERNEL, Mixer, MixerBlock, PerStep
from sparcets.training.generator import build_backbone

B, S, T, F, CONDITION = 3, 2, 11, 4, 5
C = 16  # with few, the rectifiers of an entry may all be shut by chance
each_kind = pytest.mark.parametrize("kind", ["mixer", "lstm", "gru", "tcn"])


@pytest.fixture(autouse=True)
def _random_state_is_restored():
    with torch.random.fork_rng(devices=[]):
        yield


def build(kind="mixer", *, n_series=S, n_features=F, blocks=2, seed=0):
    torch.manual_seed(seed)
    net: torch.nn.Module
    if kind == "mixer":
        net = Mixer(n_series=n_series, n_features=n_features, condition_size=CONDITION, channels=C, blocks=blocks)
    else:
        backbone = build_backbone(kind, n_series * n_features + CONDITION, 4, 1, dropout=0.0)
        net = PerStep(backbone, states=8, channels=C, n_features=n_features)
    return net.double().eval()


def inputs(n=B, n_steps=T, *, n_series=S, n_features=F):
    """Return series and conditions."""
    draw = {"dtype": torch.float64, "generator": torch.Generator().manual_seed(1)}
    return torch.randn(n, n_series, n_steps, n_features, **draw), torch.randn(n, CONDITION, **draw)


@each_kind
@pytest.mark.parametrize(
    ("n_series", "n_steps", "n_features"), [(1, 11, 4), (2, 11, 4), (1, 1, 1), (2, 1, 3), (1, 70, 1)]
)
def test_one_state_vector_per_entry(kind, n_series, n_steps, n_features):
    series, condition = inputs(n_steps=n_steps, n_series=n_series, n_features=n_features)
    states = build(kind, n_series=n_series, n_features=n_features, blocks=5)(series, condition)
    assert states.shape == (B, n_steps, n_features, C) and torch.isfinite(states).all()


# What a state depends on.


def receptive_field(net, feature, step):
    """Return which entries of the series (S, T, F) and of the condition a state vector depends on, by gradients.

    The vector is weighted at random: in a plain sum, gradients could cancel.
    """
    series, condition = (t.requires_grad_() for t in inputs(n=1))
    weights = torch.randn(C, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    (net(series, condition)[0, step, feature] * weights).sum().backward()
    return series.grad[0] != 0, torch.zeros(CONDITION) != 0 if condition.grad is None else condition.grad[0] != 0


@each_kind
def test_every_state_depends_on_all_features_of_its_step_and_on_the_whole_condition(kind):
    net = build(kind)
    for feature in range(F):
        for step in (0, T // 2, T - 1):
            series, condition = receptive_field(net, feature, step)
            assert series[:, step].all() and condition.all()


def test_one_block_sees_its_own_feature_at_all_steps_and_the_others_within_the_kernel():
    series, _ = receptive_field(build(blocks=1), 1, 0)
    assert series[:, :, 1].all()  # the mean over time
    # Of the others, what the first convolution sees around the same step: features are exchanged step by step.
    others = series[:, :, [0, 2, 3]]
    assert others[:, : KERNEL // 2 + 1].all() and not others[:, KERNEL // 2 + 1 :].any()


def test_two_blocks_see_every_entry_of_every_series():
    net = build(blocks=2)
    for feature, step in ((0, 0), (2, T // 2), (3, T - 1)):
        assert receptive_field(net, feature, step)[0].all()


def test_dilations_grow_and_start_again():
    dilations = [block.temporal.dilation[0] for block in build(blocks=6).blocks]
    assert dilations == [*DILATIONS, *DILATIONS[:2]] == [1, 2, 4, 8, 1, 2]


def test_a_block_by_hand():
    block = MixerBlock(n_features=2, condition_size=1, channels=1, dilation=2).double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.zero_()
        block.temporal.weight[:, :, -1] = 1.0  # the last tap: four steps ahead
        block.gather.weight[0] = torch.tensor([1.0, 10.0])  # feature 0 and ten times feature 1
        block.scatter.weight[1, 0] = 1.0  # reach feature 1 only
        block.pooled.weight[0] = torch.tensor([100.0, 1000.0])  # mean and maximum
        block.condition.weight[:] = 1e4
        block.out.weight[:] = 1.0
    h = torch.tensor([[0.0, 1.0, 2.0, 0.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    states = h.T.reshape(1, 6, 2, 1)
    update = (block(states, torch.tensor([[2.0]], dtype=torch.float64)) - states)[0, :, :, 0].T
    ahead = torch.tensor([[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    pooled = torch.tensor([[100 * 1 + 1000 * 2.0], [100 * 1 + 1000 * 1.0]], dtype=torch.float64)
    exchanged = torch.stack([torch.zeros(6, dtype=torch.float64), h[0] + 10 * h[1]])
    torch.testing.assert_close(update, ahead + exchanged + pooled + 2e4)


def test_equal_features_have_different_states_by_their_embedding():
    series, condition = inputs()
    equal = series[..., :1].expand(-1, -1, -1, F)
    states = build()(equal, condition)
    assert all(not torch.allclose(states[:, :, 0], states[:, :, f]) for f in range(1, F))
    net = build(blocks=0)
    with torch.no_grad():
        net.feature_embedding.zero_()
    states = net(equal, condition)  # all share the convolution
    for f in range(1, F):
        torch.testing.assert_close(states[:, :, 0], states[:, :, f])


@each_kind
def test_states_depend_on_each_value_of_the_condition_and_on_the_order_of_the_series(kind):
    net, (series, condition) = build(kind), inputs()
    before = net(series, condition)
    for i in range(CONDITION):
        other = condition.clone()
        other[:, i] += 1
        assert not torch.allclose(net(series, other), before)
    assert not torch.allclose(net(torch.stack([series[:, 0], series[:, 1] + 1], dim=1), condition), before)
    assert not torch.allclose(net(series.flip(1), condition), before)


# Weights.


def test_a_block_starts_as_a_small_correction():
    series, condition = inputs(n=20)
    start, end = (build(blocks=blocks)(series, condition) for blocks in (0, 4))  # one seed: the same first layer
    torch.testing.assert_close(build(blocks=4).first.weight, build(blocks=0).first.weight)
    assert 0 < (end - start).std() < 0.5 * start.std()


def test_per_step_concatenates_series_and_condition_and_returns_entries_in_their_order():
    received = []

    class Recorder(torch.nn.Module):
        def forward(self, x, lengths):
            received.append(x)
            return x[..., : S * F]

    net = PerStep(Recorder(), states=S * F, channels=S, n_features=F).double()
    with torch.no_grad():
        net.entries.weight.copy_(torch.eye(S * F))
        net.entries.bias.zero_()
    series, condition = inputs()
    states = net(series, condition)
    assert received[0].shape == (B, T, S * F + CONDITION)
    assert torch.equal(received[0][..., S * F :], condition[:, None].expand(B, T, CONDITION))
    # With the identity in between, all features of the first series come first: F groups of S numbers.
    assert torch.equal(states.flatten(2), series.transpose(1, 2).flatten(2))
