"""A network with one output as a network of two classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class OneLogit(nn.Module):
    """Turns one output z (batch, 1) into logits (batch, 2), 0 and z: their softmax is 1 − sigmoid(z) and sigmoid(z).

    So the cross-entropy of the two equals the binary cross-entropy of the sigmoid.

    >>> class Doubled(nn.Module):
    ...     def forward(self, x, lengths=None):
    ...         return 2 * x
    >>> OneLogit(Doubled())(torch.tensor([[3.0]])).tolist()
    [[0.0, 6.0]]
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the logits."""
        z: Tensor = self.network(x, lengths)
        return torch.cat([torch.zeros_like(z), z], dim=1)
