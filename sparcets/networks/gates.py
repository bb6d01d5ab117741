"""Gates that are exactly open, exactly shut, or in between, and still have a gradient (Louizos et al. 2018)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

TEMPERATURE = 0.5
STRETCHES = 5  # what belongs together in time is this part of a series
SHORT = 40  # where few entries may change, this part
LOW, HIGH = -0.1, 1.1  # a sigmoid stretched beyond 0 and 1 and cut off there: that is how exact zeros come about


def hard_concrete(logits: Tensor, training: bool) -> Tensor:
    """Return gates in [0, 1], shaped as their logits: noisy in training, the plain ones afterwards.

    >>> hard_concrete(torch.tensor([-9.0, 0.0, 9.0]), training=False)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if training:
        u = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
        logits = (torch.log(u) - torch.log1p(-u) + logits) / TEMPERATURE
    return (torch.sigmoid(logits) * (HIGH - LOW) + LOW).clamp(0, 1)


def openness(logits: Tensor) -> Tensor:
    """Return the probability that a noisy gate is not exactly shut, shaped as the logits; it has a gradient everywhere.

    >>> openness(torch.tensor([-9.0, 0.0, 9.0])).round(decimals=2)
    tensor([0.0000, 0.7700, 1.0000])
    """
    return torch.sigmoid(logits - TEMPERATURE * math.log(-LOW / HIGH))


def over_stretches(values: Tensor, parts: int = STRETCHES) -> Tensor:
    """Return values (batch, time, features) averaged over the stretch around each step, one of so many of a series.

    >>> over_stretches(torch.tensor([0.0, 0.0, 3.0, 0.0, 0.0]).reshape(1, 5, 1)).flatten()
    tensor([0., 1., 1., 1., 0.])
    """
    width = max(3, values.shape[1] // parts) | 1  # odd
    pad = (width // 2, 0)
    return F.avg_pool2d(values[:, None], (width, 1), stride=1, padding=pad, count_include_pad=False)[:, 0]
