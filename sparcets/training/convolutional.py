"""Fully convolutional network (Wang, Yan, Oates 2017)."""

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


class ConvBlock(nn.Module):
    """Convolution over time and batch normalisation: (batch, time, inputs) to (batch, time, outputs).

    Padding is read as zeros, as beyond the end of a series that is not padded, and does not count in the statistics.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, padding="same", bias=False)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return (batch, time, outputs), zero where there is padding."""
        sides = self.conv.kernel_size[0] // 2
        y = convolve(self.conv, blank_padding(x, lengths), sides, sides)  # (B, T, C)
        mask = inside(lengths, x)
        if mask is None:
            normal: Tensor = self.norm(y.flatten(0, 1)).reshape(y.shape)  # (B, T, C)
            return normal
        steps = mask[..., 0]  # (B, T)
        return torch.zeros_like(y).index_put((steps,), self.norm(y[steps]))


class Fcn(nn.Module):
    """Three convolutions (kernels 7, 5, 3; widths 2, 4 and 2 times ``hidden``) and the mean over time.

    ``layers`` has no meaning here: three blocks are the architecture.
    """

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [n_features, 2 * hidden, 4 * hidden, 2 * hidden]
        self.blocks = nn.ModuleList(
            ConvBlock(a, b, k) for a, b, k in zip(widths[:-1], widths[1:], (7, 5, 3), strict=True)
        )
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        for block in self.blocks:
            x = F.relu(block(x, lengths))  # (B, T, C)
        logits: Tensor = self.head(self.dropout(mean_over_time(x, lengths)))  # (B, K)
        return logits


class ResidualBlock(nn.Module):
    """Three convolutions (kernels 7, 5, 3) around a shortcut: (batch, time, inputs) to (batch, time, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = ConvBlock(inputs, outputs, 7)
        self.second = ConvBlock(outputs, outputs, 5)
        self.third = ConvBlock(outputs, outputs, 3)
        self.shortcut = ConvBlock(inputs, outputs, 1)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return (batch, time, outputs)."""
        y = F.relu(self.first(x, lengths))
        y = F.relu(self.second(y, lengths))
        return F.relu(self.third(y, lengths) + self.shortcut(x, lengths))


class ResNet(nn.Module):
    """``layers`` + 1 residual blocks (widths 1, 2, 2, … times ``hidden``) and the mean over time."""

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [n_features, hidden] + [2 * hidden] * layers
        self.blocks = nn.ModuleList(ResidualBlock(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        for block in self.blocks:
            x = block(x, lengths)  # (B, T, C)
        logits: Tensor = self.head(self.dropout(mean_over_time(x, lengths)))  # (B, K)
        return logits


KERNEL = 5


class CausalBlock(nn.Module):
    """Two causal convolutions of one dilation around a shortcut: (batch, time, inputs) to (batch, time, outputs)."""

    def __init__(self, inputs: int, outputs: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.past = (KERNEL - 1) * dilation  # padding on the left only: a step sees no later one
        self.first = nn.Conv1d(inputs, outputs, KERNEL, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, KERNEL, dilation=dilation)
        self.shortcut = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, time, outputs)."""
        y = F.relu(convolve(self.first, x, self.past, 0))
        y = self.dropout(y) if self.training else y  # an idle call costs a fifth of a small network's time
        y = F.relu(convolve(self.second, y, self.past, 0))
        y = self.dropout(y) if self.training else y
        return F.relu(y + (x if self.shortcut is None else convolve(self.shortcut, x, 0, 0)))


class CausalStack(nn.Module):
    """Blocks of doubling dilation: (batch, time, inputs) to (batch, time, hidden)."""

    def __init__(self, inputs: int, hidden: int, blocks: int, dropout: float) -> None:
        super().__init__()
        sizes = [inputs] + [hidden] * blocks
        self.blocks = nn.ModuleList(
            CausalBlock(a, b, 2**i, dropout) for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector per step; it depends on that step and earlier ones only."""
        for block in self.blocks:
            x = block(x)  # (B, T, H)
        return x


class Tcn(nn.Module):
    """A causal stack (``layers`` + 2 blocks, twice ``hidden`` wide) and the mean over time."""

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.backbone = CausalStack(n_features, 2 * hidden, layers + 2, dropout)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        h = self.backbone(blank_padding(x, lengths))  # (B, T, 2H); causal, so padding cannot reach back
        logits: Tensor = self.head(mean_over_time(h, lengths))  # (B, K)
        return logits
