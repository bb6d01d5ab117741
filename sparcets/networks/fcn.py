"""Fully convolutional network (Wang, Yan, Oates 2017)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.networks.temporal import blank_padding, convolve, inside, mean_over_time


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
