"""Pruning of answers: which changes matter most, and which are negligible."""

from __future__ import annotations

import torch
from torch import Tensor

from sparcets.explainers.sparcets.generator import WINDOW_DIVISOR, window_mean

NEGLIGIBLE = 0.13  # standard deviations; a window whose mean change is smaller is not reported


def drop_negligible(delta: Tensor) -> Tensor:
    """Return standardised residuals (batch, time, features) with exact zeros where the change is negligible.

    A gate opens for a whole window, and where no change is needed the generator's residual is next to nothing.

    >>> delta = torch.tensor([0.01, -0.02, 0.01, 0.5, 0.9, 0.6, 0.0, 0.02]).reshape(1, 8, 1)
    >>> drop_negligible(delta).flatten()
    tensor([0.0000, 0.0000, 0.0100, 0.5000, 0.9000, 0.6000, 0.0000, 0.0000])
    """
    size = window_mean(delta.abs())  # over a window, so that a change that crosses zero stays in one piece
    return torch.where(size < NEGLIGIBLE, 0.0, delta)


def rank_changes(delta: Tensor, divisor: int = WINDOW_DIVISOR) -> Tensor:
    """Return the rank of every entry of residuals (batch, time, features); 0 is the most important.

    Entries are ranked by the mean change of the window around them, so that whole windows are kept or dropped rather
    than single points. The larger ``divisor``, the shorter the windows.
    """
    B, T, n_features = delta.shape
    size = delta.abs()
    score = torch.where(size > 0, window_mean(size, divisor), -1.0).reshape(B, T * n_features)
    order = score.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order)
    positions = torch.arange(T * n_features, device=delta.device).expand_as(order)
    return rank.scatter_(1, order, positions).reshape(B, T, n_features)


def keep_first(delta: Tensor, rank: Tensor, n: Tensor) -> Tensor:
    """Return residuals of which the first ``n`` (batch,) by rank are kept."""
    return torch.where(rank < n[:, None, None], delta, torch.zeros_like(delta))
