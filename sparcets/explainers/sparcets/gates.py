"""Gates that are exactly open, exactly shut, or in between, and have a gradient (Louizos et al. 2018)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

TEMPERATURE = 0.5
WINDOW = 5  # windows have this fraction of the length of a series: 1/5
SHORT_WINDOW = 40  # and this where few entries may change: 1/40
LOW, HIGH = -0.1, 1.1  # the sigmoid is stretched to this range and clipped to [0, 1], which gives exact zeros


def hard_concrete(logits: Tensor, training: bool) -> Tensor:
    """Return gates in [0, 1], shaped as their logits; with noise in training, without afterwards.

    >>> hard_concrete(torch.tensor([-9.0, 0.0, 9.0]), training=False)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if training:
        u = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
        logits = (torch.log(u) - torch.log1p(-u) + logits) / TEMPERATURE
    return (torch.sigmoid(logits) * (HIGH - LOW) + LOW).clamp(0, 1)


def gate_openness(logits: Tensor) -> Tensor:
    """Return the probability that a noisy gate is not exactly shut, shaped as the logits; it has a gradient everywhere.

    >>> gate_openness(torch.tensor([-9.0, 0.0, 9.0])).round(decimals=2)
    tensor([0.0000, 0.7700, 1.0000])
    """
    return torch.sigmoid(logits - TEMPERATURE * math.log(-LOW / HIGH))


def window_mean(values: Tensor, fraction: int = WINDOW) -> Tensor:
    """Return values (batch, time, features) averaged over a window around each step, of 1/fraction of the series.

    >>> window_mean(torch.tensor([0.0, 0.0, 3.0, 0.0, 0.0]).reshape(1, 5, 1)).flatten()
    tensor([0., 1., 1., 1., 0.])
    """
    width = max(3, values.shape[1] // fraction) | 1  # odd
    pad = (width // 2, 0)
    return F.avg_pool2d(values[:, None], (width, 1), stride=1, padding=pad, count_include_pad=False)[:, 0]
