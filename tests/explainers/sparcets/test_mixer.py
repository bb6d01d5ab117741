"""The mixer: who hears whom, along time and across features; and the recurrent stand-in with the same calls."""

import pytest
import torch

from sparcets.networks.backbones import build_backbone
from sparcets.explainers.sparcets.mixer import DILATIONS, KERNEL, Exchange, Mixer, PerStep

B, S, T, F, TOLD = 3, 2, 11, 4, 5
C = 16  # with few, the rectifiers of an entry may all be shut by chance, and it hears nothing
each_kind = pytest.mark.parametrize("kind", ["mixer", "lstm", "gru", "tcn"])


def build(kind="mixer", *, n_series=S, n_features=F, blocks=2, seed=0):
    torch.manual_seed(seed)
    if kind == "mixer":
        made = Mixer(n_series=n_series, n_features=n_features, told=TOLD, channels=C, blocks=blocks)
    else:
        backbone = build_backbone(kind, n_series * n_features + TOLD, 4, 1, dropout=0.0)
        made = PerStep(backbone, states=8, channels=C, n_features=n_features)
    return made.double().eval()


def inputs(n=B, n_steps=T, *, n_series=S, n_features=F, seed=1):
    random = torch.Generator().manual_seed(seed)
    draw = {"dtype": torch.float64, "generator": random}
    return torch.randn(n, n_series, n_steps, n_features, **draw), torch.randn(n, TOLD, **draw)


@pytest.fixture(autouse=True)
def _seed_is_given_back():
    with torch.random.fork_rng(devices=[]):
        yield


@each_kind
@pytest.mark.parametrize(
    ("n_series", "n_steps", "n_features"), [(1, 11, 4), (2, 11, 4), (1, 1, 1), (2, 1, 3), (1, 70, 1)]
)
def test_one_vector_per_entry(kind, n_series, n_steps, n_features):
    series, told = inputs(n_steps=n_steps, n_series=n_series, n_features=n_features)
    states = build(kind, n_series=n_series, n_features=n_features, blocks=5)(series, told)
    assert states.shape == (B, n_steps, n_features, C) and torch.isfinite(states).all()


def heard_by(net, feature, step):
    """Return what a vector hears: which entries of the series (S, T, F) and which of the numbers told have a gradient.

    The vector is weighed at random: a sum could cancel what is there.
    """
    series, told = (t.requires_grad_() for t in inputs(n=1))
    weigh = torch.randn(C, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    (net(series, told)[0, step, feature] * weigh).sum().backward()
    return series.grad[0] != 0, torch.zeros(TOLD) != 0 if told.grad is None else told.grad[0] != 0


@each_kind
def test_every_entry_hears_all_features_of_its_step_and_all_that_is_told(kind):
    net = build(kind)
    for feature in range(F):
        for step in (0, T // 2, T - 1):
            series, told = heard_by(net, feature, step)
            assert series[:, step].all(), "of each series, all features at the same step"
            assert told.all()


def test_one_exchange_looks_as_far_as_its_kernel_and_at_the_whole_of_its_own_feature():
    net = build(blocks=1)
    series, _ = heard_by(net, 1, 0)
    assert series[:, :, 1].all()  # the mean over time
    # Of the others, what the first convolution sees around the same step: they were asked about that step alone.
    others = series[:, :, [0, 2, 3]]
    assert others[:, : KERNEL // 2 + 1].all() and not others[:, KERNEL // 2 + 1 :].any()


def test_two_exchanges_are_enough_to_hear_every_entry_of_every_series():
    net = build(blocks=2)
    for feature, step in ((0, 0), (2, T // 2), (3, T - 1)):
        assert heard_by(net, feature, step)[0].all()


def test_without_blocks_an_entry_sees_its_neighbourhood_alone():
    series, told = heard_by(build(blocks=0), 1, 5)
    expected = torch.zeros(S, T, F, dtype=torch.bool)
    expected[:, 5 - KERNEL // 2 : 5 + KERNEL // 2 + 1, 1] = True
    assert torch.equal(series, expected) and not told.any()


def test_blocks_look_farther_in_turn_and_again_from_the_start():
    looks = [block.around.dilation[0] for block in build(blocks=6).blocks]
    assert looks == [*DILATIONS, *DILATIONS[:2]] == [1, 2, 4, 8, 1, 2]


def test_an_exchange_by_hand():
    torch.manual_seed(0)
    block = Exchange(n_features=2, told=1, channels=1, dilation=2).double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter.zero_()
        block.around.weight[:, :, -1] = 1.0  # the last tap: two taps of two steps ahead
        block.gather.weight[0] = torch.tensor([1.0, 10.0])  # feature 0 and ten times feature 1
        block.spread.weight[1, 0] = 1.0  # is told to feature 1 alone
        block.whole.weight[0] = torch.tensor([100.0, 1000.0])  # mean and largest
        block.asked.weight[:] = 1e4
        block.out.weight[:] = 1.0
    h = torch.tensor([[0.0, 1.0, 2.0, 0.0, 1.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    states = h.T.reshape(1, 6, 2, 1)
    changed = (block(states, torch.tensor([[2.0]], dtype=torch.float64)) - states)[0, :, :, 0].T
    ahead = torch.tensor([[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    pooled = torch.tensor([[100 * 1 + 1000 * 2.0], [100 * 1 + 1000 * 1.0]], dtype=torch.float64)
    told_by_all = torch.stack([torch.zeros(6, dtype=torch.float64), h[0] + 10 * h[1]])
    torch.testing.assert_close(changed, ahead + told_by_all + pooled + 2e4)


def test_features_are_told_apart_even_where_they_are_equal():
    series, told = inputs()
    alike = series[..., :1].expand(-1, -1, -1, F)
    states = build()(alike, told)
    assert all(not torch.allclose(states[:, :, 0], states[:, :, f]) for f in range(1, F))
    with torch.no_grad():
        apart = build(blocks=0)
        apart.which.zero_()
    states = apart(alike, told)  # all share the convolution; nothing but their own vector tells them apart
    for f in range(1, F):
        torch.testing.assert_close(states[:, :, 0], states[:, :, f])


@each_kind
def test_what_is_told_and_the_second_series_change_the_states(kind):
    net, (series, told) = build(kind), inputs()
    before = net(series, told)
    for i in range(TOLD):
        other = told.clone()
        other[:, i] += 1
        assert not torch.allclose(net(series, other), before)
    assert not torch.allclose(net(torch.stack([series[:, 0], series[:, 1] + 1], dim=1), told), before)
    assert not torch.allclose(net(series.flip(1), told), before)  # which of them is which


@each_kind
def test_nothing_leaks_over_the_batch(kind):
    net, (series, told) = build(kind), inputs(n=5)
    together = net(series, told)
    order = torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(net(series[order], told[order]), together[order])
    for i in range(5):
        torch.testing.assert_close(net(series[i : i + 1], told[i : i + 1]), together[i : i + 1])
    loud = series.clone()
    loud[0] = 1e3
    torch.testing.assert_close(net(loud, told)[1:], together[1:])


@each_kind
def test_one_seed_gives_the_same_weights_and_another_does_not(kind):
    one, same, other = (build(kind, seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert any(not torch.equal(value, other[name]) for name, value in one.items())


@each_kind
def test_gradients_reach_every_parameter(kind):
    net = build(kind).train()
    net(*inputs()).square().sum().backward()
    assert [name for name, p in net.named_parameters() if p.grad is None or not (p.grad != 0).any()] == []


def test_a_block_starts_as_a_small_correction():
    series, told = inputs(n=20)
    start, end = build(blocks=0)(series, told), build(blocks=4)(series, told)  # one seed: the same first layer
    torch.testing.assert_close(build(blocks=4).first.weight, build(blocks=0).first.weight)
    assert 0 < (end - start).std() < 0.5 * start.std()


def test_a_recurrent_backbone_hears_steps_side_by_side_and_gives_entries_back_in_their_places():
    kept = []

    class Remember(torch.nn.Module):
        def forward(self, x):
            kept.append(x)
            return x[..., : S * F]

    net = PerStep(Remember(), states=S * F, channels=S, n_features=F).double()
    with torch.no_grad():
        net.entries.weight.copy_(torch.eye(S * F))
        net.entries.bias.zero_()
    series, told = inputs()
    states = net(series, told)
    assert kept[0].shape == (B, T, S * F + TOLD)
    assert torch.equal(kept[0][..., S * F :], told[:, None].expand(B, T, TOLD))
    # With nothing in between, all features of the first series come first: F groups of S numbers.
    assert torch.equal(states.flatten(2), series.transpose(1, 2).flatten(2))
