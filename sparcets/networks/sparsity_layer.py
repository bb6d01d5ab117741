"""The paper's sparsity layer (section 2): two heads, one for rises and one for falls, and exact zeros in between."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


class SparsityLayer(nn.Module):
    """δ = ReLU(δ_pos) − ReLU(δ_neg): both signs are possible, and an exact zero is easy to reach.

    Parameters
    ----------
    inputs, outputs
        Sizes of the last axis.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.positive = nn.Linear(inputs, outputs)
        self.negative = nn.Linear(inputs, outputs)

    def forward(self, h: Tensor) -> Tensor:
        """Return residuals (batch, time, outputs) of states (batch, time, inputs)."""
        return F.relu(self.positive(h)) - F.relu(self.negative(h))
