"""Parts of the networks: padding and pooling by hand; convolutions, attention and recurrence as torch's own do it."""

import math

import pytest
import torch
from torch import nn

from sparcets.training import architectures


@pytest.mark.parametrize("batch", [1, 3, 2 * architectures.FEW_STEPS // 10])  # a matrix product, or an image
@pytest.mark.parametrize(("kernel", "dilation", "bias"), [(1, 1, True), (5, 1, False), (5, 4, True)])
@pytest.mark.parametrize("grad", [False, True])
def test_it_equals_conv1d(batch, kernel, dilation, bias, grad):
    torch.manual_seed(0)
    conv = nn.Conv1d(3, 4, kernel, dilation=dilation, bias=bias)
    x = torch.randn(batch, 10, 3, requires_grad=True)
    past = (kernel - 1) * dilation
    expected = conv(nn.functional.pad(x.transpose(1, 2), (past, 0))).transpose(1, 2)
    with torch.set_grad_enabled(grad):
        got = architectures.convolve(conv, x, past, 0)
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    if grad:
        weight = torch.randn_like(expected)
        (a,) = torch.autograd.grad((got * weight).sum(), x)
        (b,) = torch.autograd.grad((expected * weight).sum(), x)
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


# Causal convolutions.


def stack(blocks):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return architectures.CausalStack(3, 8, blocks, dropout=0.2).double().eval()


def test_a_step_sees_no_later_one_and_two_kernels_of_each_dilation_back():
    net, x = stack(3), torch.randn(2, 40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    before = net(x)
    for t in (0, 17, 39):
        changed = x.clone()
        changed[:, t:] += 1.0
        after = net(changed)
        assert torch.equal(after[:, :t], before[:, :t]) and not torch.equal(after[:, t], before[:, t])
    blocks = 2
    reach = 2 * (architectures.KERNEL - 1) * sum(2**i for i in range(blocks))  # 24 steps
    assert reach == 24
    x = torch.randn(64, reach + 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    stack(blocks)(x)[:, -1].square().sum().backward()
    seen = x.grad.abs().amax((0, 2)) > 0
    assert seen.tolist() == [False] + [True] * (reach + 1)


# The transformer, whose layers are written out by hand.


def test_positions_are_sines_and_cosines_of_the_step():
    codes = architectures.positions(3, 4, torch.device("cpu"))
    slow = 10000.0 ** (-2 / 4)
    expected = [[math.sin(t), math.sin(t * slow), math.cos(t), math.cos(t * slow)] for t in range(3)]
    torch.testing.assert_close(codes, torch.tensor(expected))


def test_an_encoder_layer_is_torchs_own_with_the_same_weights():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        ours = architectures.EncoderLayer(8, dropout=0.0)
        theirs = nn.TransformerEncoderLayer(
            8, architectures.HEADS, 16, 0.0, activation="gelu", batch_first=True, norm_first=True
        )
        x = torch.randn(3, 5, 8)
    names = {"norm1": ours.norm_attention, "norm2": ours.norm_network, "self_attn.out_proj": ours.output}
    names |= {"linear1": ours.network[0], "linear2": ours.network[2]}
    state = {f"{k}.{part}": getattr(m, part) for k, m in names.items() for part in ("weight", "bias")}
    state |= {"self_attn.in_proj_weight": ours.projection.weight, "self_attn.in_proj_bias": ours.projection.bias}
    theirs.load_state_dict(state)
    lengths = torch.tensor([5, 2, 4])
    there = torch.arange(5)[None] < lengths[:, None]
    theirs.train()  # its evaluation mode takes another road
    expected = theirs(x, src_key_padding_mask=~there)
    torch.testing.assert_close(ours(x, there[:, None, None])[there], expected[there])
    torch.testing.assert_close(ours(x, None), theirs(x))


# Recurrent layers.


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_the_last_step_alone_is_the_last_of_all(cell, layers):
    torch.manual_seed(0)
    network = architectures.Recurrent(3, 5, layers, 0.0, cell)
    x = torch.randn(4, 7, 3, requires_grad=True)
    whole, alone = network(x)[:, -1], network.last(x)
    torch.testing.assert_close(alone, whole)
    (a,), (b,) = (torch.autograd.grad((h * h).sum(), x) for h in (alone, whole))
    torch.testing.assert_close(a, b)
