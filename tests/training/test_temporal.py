"""Operations over time: padding and pooling by hand, and convolution as torch's own does it."""

import math

import pytest
import torch
from torch import nn

from sparcets.training import convolutional as temporal
from sparcets.training.convolutional import (
    FEW_STEPS,
    blank_padding,
    convolve,
    inside,
    last_step,
    mean_over_time,
    spread_over_time,
)

H = torch.tensor([[[1.0, 10.0], [3.0, 30.0], [math.nan, math.inf]], [[2.0, 0.0], [4.0, 1.0], [9.0, 8.0]]])
LENGTHS = torch.tensor([2, 3])


def test_inside_marks_the_steps_of_each_series():
    assert inside(LENGTHS, H)[..., 0].tolist() == [[True, True, False], [True, True, True]]
    assert inside(None, H) is None


def test_padding_is_blanked_whatever_it_holds():
    assert blank_padding(H, LENGTHS).tolist() == [
        [[1.0, 10.0], [3.0, 30.0], [0.0, 0.0]],
        [[2.0, 0.0], [4.0, 1.0], [9.0, 8.0]],
    ]
    assert blank_padding(H, None) is H


def test_the_mean_is_over_the_steps_of_the_series():
    assert mean_over_time(H, LENGTHS).tolist() == [[2.0, 20.0], [5.0, 3.0]]
    assert mean_over_time(H[1:], None).tolist() == [[5.0, 3.0]]


def test_the_last_step_is_the_last_of_the_series():
    assert last_step(H, LENGTHS).tolist() == [[3.0, 30.0], [9.0, 8.0]]
    assert last_step(H[1:], None).tolist() == [[9.0, 8.0]]


def test_the_spread_is_the_standard_deviation_over_the_steps_of_the_series():
    expected = torch.tensor([[1.0, 10.0], [math.sqrt(26 / 3), math.sqrt(38 / 3)]])
    torch.testing.assert_close(spread_over_time(H, LENGTHS), expected)
    torch.testing.assert_close(spread_over_time(H[1:], None), expected[1:])


@pytest.mark.parametrize("batch", [1, 3, 2 * FEW_STEPS // 10])  # a matrix product, or an image
@pytest.mark.parametrize(("kernel", "dilation", "bias"), [(1, 1, True), (5, 1, False), (5, 4, True)])
@pytest.mark.parametrize("grad", [False, True])
def test_it_equals_conv1d(batch, kernel, dilation, bias, grad):
    torch.manual_seed(0)
    conv = nn.Conv1d(3, 4, kernel, dilation=dilation, bias=bias)
    x = torch.randn(batch, 10, 3, requires_grad=True)
    past = (kernel - 1) * dilation
    expected = conv(nn.functional.pad(x.transpose(1, 2), (past, 0))).transpose(1, 2)
    with torch.set_grad_enabled(grad):
        got = convolve(conv, x, past, 0)
    torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)
    if grad:
        weight = torch.randn_like(expected)
        (a,) = torch.autograd.grad((got * weight).sum(), x)
        (b,) = torch.autograd.grad((expected * weight).sum(), x)
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
        real = getattr(temporal.F, name)
        monkeypatch.setattr(
            temporal.F, name, lambda *a, _name=name, _real=real, **k: (taken.append(_name), _real(*a, **k))[1]
        )
    conv = nn.Conv1d(3, 4, 3)
    with torch.no_grad():
        convolve(conv, torch.zeros(1, 10, 3), 1, 1)
        convolve(conv, torch.zeros(FEW_STEPS, 10, 3), 1, 1)
    assert taken == ["linear", "conv2d"]
