"""Temporal convolutional network: causal, dilated, residual (Bai, Kolter, Koltun 2018)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.networks.temporal import blank_padding, convolve, mean_over_time

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
