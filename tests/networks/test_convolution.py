"""Convolution with the features last equals torch's own, whatever road it takes; so does the last step of a bi-LSTM."""

import pytest
import torch
from torch import nn

from sparcets.networks import temporal
from sparcets.networks.temporal import FEW, convolve
from sparcets.networks.recurrent import BiGru, BiLstm, Recurrent


@pytest.mark.parametrize("batch", [1, 3, 2 * FEW // 10])  # a matrix product, or an image
@pytest.mark.parametrize(("kernel", "dilation", "bias"), [(1, 1, True), (5, 1, False), (5, 4, True)])
@pytest.mark.parametrize("grad", [False, True])
def test_it_equals_conv1d(batch, kernel, dilation, bias, grad):
    torch.manual_seed(0)
    conv = nn.Conv1d(3, 4, kernel, dilation=dilation, bias=bias)
    x = torch.randn(batch, 10, 3, requires_grad=True)
    past = (kernel - 1) * dilation
    wanted = conv(nn.functional.pad(x.transpose(1, 2), (past, 0))).transpose(1, 2)
    with torch.set_grad_enabled(grad):
        got = convolve(conv, x, past, 0)
    torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)
    if grad:
        weight = torch.randn_like(wanted)
        (a,) = torch.autograd.grad((got * weight).sum(), x)
        (b,) = torch.autograd.grad((wanted * weight).sum(), x)
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_other_types_and_series_that_are_no_block_of_memory():
    conv = nn.Conv1d(3, 4, 3).double()
    x = torch.randn(5, 3, 10, dtype=torch.float64)
    torch.testing.assert_close(convolve(conv, x.transpose(1, 2), 0, 0).transpose(1, 2), conv(x))
    x, conv = x.float(), conv.float()
    with torch.no_grad():
        torch.testing.assert_close(convolve(conv, x.transpose(1, 2), 0, 0).transpose(1, 2), conv(x))


def test_both_roads_are_taken(monkeypatch):
    taken = []
    for name in ("linear", "conv2d"):
        real = getattr(convolution.F, name)
        monkeypatch.setattr(
            convolution.F, name, lambda *a, _name=name, _real=real, **k: (taken.append(_name), _real(*a, **k))[1]
        )
    conv = nn.Conv1d(3, 4, 3)
    with torch.no_grad():
        convolve(conv, torch.zeros(1, 10, 3), 1, 1)
        convolve(conv, torch.zeros(FEW, 10, 3), 1, 1)
    assert taken == ["linear", "conv2d"]


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
def test_the_last_step_alone_is_the_last_of_all(cell, layers):
    torch.manual_seed(0)
    network = Recurrent(3, 5, layers, 0.0, cell)
    x = torch.randn(4, 7, 3, requires_grad=True)
    whole, alone = network(x)[:, -1], network.last(x)
    torch.testing.assert_close(alone, whole)
    (a,), (b,) = (torch.autograd.grad((h * h).sum(), x) for h in (alone, whole))
    torch.testing.assert_close(a, b)


@pytest.mark.parametrize("kind", [BiLstm, BiGru])
def test_a_series_that_is_not_padded_says_the_same_as_one_that_could_be(kind):
    torch.manual_seed(0)
    network = kind(3, 2, 4, 2, 0.0).eval()
    x = torch.randn(4, 7, 3)
    torch.testing.assert_close(network(x), network(x, torch.full((4,), 7)))
