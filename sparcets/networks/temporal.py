"""Operations over time that the networks share: masking of padding, pooling, and convolution."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

FEW_STEPS = 400  # of all series together; below, one matrix product is faster than setting up a convolution


def inside(lengths: Tensor | None, x: Tensor) -> Tensor | None:
    """Return which steps belong to each series, (batch, time, 1), or None where nothing is padded."""
    if lengths is None:
        return None
    steps = torch.arange(x.shape[1], device=x.device)
    return (steps[None] < lengths.to(x.device)[:, None])[..., None]  # (B, T, 1)


def blank_padding(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Set what lies beyond each series' length to zero."""
    mask = inside(lengths, x)
    return x if mask is None else x.masked_fill(~mask, 0.0)  # not x * mask: 0 times infinity is NaN


def mean_over_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Average over the steps of each series: (batch, time, hidden) to (batch, hidden)."""
    mask = inside(lengths, h)
    if mask is None:
        return h.mean(1)
    return h.masked_fill(~mask, 0.0).sum(1) / mask.sum(1)


def spread_over_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the standard deviation over the steps of each series: (batch, time, hidden) to (batch, hidden)."""
    apart = h - mean_over_time(h, lengths)[:, None]
    return mean_over_time(apart.square(), lengths).sqrt()


def reversed_in_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Return series (batch, time, hidden) backwards, each from its own end; padding stays where it is."""
    if lengths is None:
        return h.flip(1)
    steps = torch.arange(h.shape[1], device=h.device)[None]  # (1, T)
    end = lengths.to(h.device)[:, None]
    return h.gather(1, torch.where(steps < end, end - 1 - steps, steps)[..., None].expand_as(h))


def last_step(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Take the last step of each series: (batch, time, hidden) to (batch, hidden)."""
    if lengths is None:
        return h[:, -1]
    return h[torch.arange(len(h), device=h.device), lengths.to(h.device) - 1]


def convolve(conv: nn.Conv1d, x: Tensor, before: int, after: int) -> Tensor:
    """Return (batch, time, outputs) of series (batch, time, inputs), with zeros before and after them.

    Features stay last in memory; on a CPU that is two to three times as fast as ``nn.Conv1d`` with its transposes.

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
    # A trace for ONNX must not depend on the size of the batch it was traced with.
    traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or x.device.type != "cpu" or x.dtype != torch.float32:
        y = F.pad(x.transpose(1, 2), (before, after))  # (B, I, T)
        return F.conv1d(y, conv.weight, conv.bias, dilation=dilation).transpose(1, 2)
    padded = F.pad(x, (0, 0, before, after)).contiguous()  # (B, T', I)
    B, T, inputs = padded.shape
    steps = T - (kernel - 1) * dilation
    if B * steps <= FEW_STEPS and not torch.is_grad_enabled():
        strides = (T * inputs, inputs, dilation * inputs, 1)
        windows = padded.as_strided((B, steps, kernel, inputs), strides).reshape(B * steps, kernel * inputs)
        weight = conv.weight.permute(0, 2, 1).reshape(-1, kernel * inputs)  # (O, K * I)
        return F.linear(windows, weight, conv.bias).reshape(B, steps, -1)
    # As an image of one row: PyTorch supports this memory layout for images only.
    image = padded.transpose(1, 2)[:, :, None]  # (B, I, 1, T')
    made = F.conv2d(image, conv.weight[:, :, None], conv.bias, dilation=(1, dilation))  # (B, O, 1, T)
    return made[:, :, 0].transpose(1, 2)
