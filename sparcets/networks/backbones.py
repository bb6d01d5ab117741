"""Backbones of generators and discriminators: one vector per time step, by recurrence or by convolution."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparcets.networks.recurrent import Recurrent
from sparcets.networks.tcn import CausalStack
from sparcets.networks.temporal import reversed_in_time


class TwoWayStack(nn.Module):
    """A causal stack in each direction of time, side by side: every step sees past and future, as with a bi-LSTM.

    (batch, time, inputs) to (batch, time, 2 * hidden).
    """

    def __init__(self, inputs: int, hidden: int, blocks: int, dropout: float) -> None:
        super().__init__()
        self.forwards = CausalStack(inputs, hidden, blocks, dropout)
        self.backwards = CausalStack(inputs, hidden, blocks, dropout)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the states of all steps."""
        past = self.forwards(x)  # (B, T, H); causal, so padding cannot reach back
        future = reversed_in_time(self.backwards(reversed_in_time(x, lengths)), lengths)  # (B, T, H)
        return torch.cat([past, future], dim=2)  # (B, T, 2H)


def build_backbone(kind: str, inputs: int, hidden: int, layers: int, dropout: float) -> nn.Module:
    """Return a backbone from (batch, time, inputs) to (batch, time, 2 * hidden).

    Parameters
    ----------
    kind
        ``"lstm"``, ``"gru"`` or ``"tcn"``, the three that the paper names.
    inputs, hidden, layers, dropout
        Sizes; a TCN has two more blocks than ``layers``, so that its reach covers the usual lengths.
    """
    if kind == "tcn":
        return TwoWayStack(inputs, hidden, layers + 2, dropout)
    return Recurrent(inputs, hidden, layers, dropout, nn.LSTM if kind == "lstm" else nn.GRU)
