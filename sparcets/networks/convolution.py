"""Convolution over time with the features last in memory, as series are: on a CPU two to three times as fast."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEW = 400  # steps of all series together; below, one matrix product is faster than setting up a convolution


def convolve(conv: nn.Conv1d, x: Tensor, before: int, after: int) -> Tensor:
    """Return (batch, time, outputs) of series (batch, time, inputs), with zeros before and after them.

    Parameters
    ----------
    conv
        Weights, bias and dilation; its own padding is not used.
    x
        Series (batch, time, inputs).
    before, after
        Zeros on either side.

    Examples
    --------
    >>> conv, x = nn.Conv1d(3, 2, 5, padding=2), torch.ones(4, 9, 3)
    >>> torch.allclose(convolve(conv, x, 2, 2), conv(x.transpose(1, 2)).transpose(1, 2), atol=1e-6)
    True
    """
    (dilation,), (kernel,) = conv.dilation, conv.kernel_size
    # What is traced for ONNX must not depend on the size of the batch that it was traced with.
    traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or x.device.type != "cpu" or x.dtype != torch.float32:
        y = F.pad(x.transpose(1, 2), (before, after))  # (B, I, T)
        return F.conv1d(y, conv.weight, conv.bias, dilation=dilation).transpose(1, 2)
    padded = F.pad(x, (0, 0, before, after)).contiguous()  # (B, T', I)
    B, T, inputs = padded.shape
    steps = T - (kernel - 1) * dilation
    if B * steps <= FEW and not torch.is_grad_enabled():
        strides = (T * inputs, inputs, dilation * inputs, 1)
        windows = padded.as_strided((B, steps, kernel, inputs), strides).reshape(B * steps, kernel * inputs)
        weight = conv.weight.permute(0, 2, 1).reshape(-1, kernel * inputs)  # (O, K * I)
        return F.linear(windows, weight, conv.bias).reshape(B, steps, -1)
    # As an image of one row: that is what PyTorch knows this layout for.
    image = padded.transpose(1, 2)[:, :, None]  # (B, I, 1, T')
    made = F.conv2d(image, conv.weight[:, :, None], conv.bias, dilation=(1, dilation))  # (B, O, 1, T)
    return made[:, :, 0].transpose(1, 2)
