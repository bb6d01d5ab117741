"""Residual network for time series (Wang, Yan, Oates 2017)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.networks.fcn import ConvBlock
from sparcets.networks.temporal import mean_over_time


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
