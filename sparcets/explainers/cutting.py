"""Cutting answers: which changes matter most, and how few of them are enough."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

HALVINGS = 7  # of the number of kept entries: to 1/128 of what there was
STRETCHES = 5  # a change is judged with this part of its feature around it
SLACK = 1e-4  # probabilities this close are the same


def rank_changes(delta: Tensor) -> Tensor:
    """Return the rank of every entry of residuals (batch, time, features), 0 for the one to keep longest.

    The size of a change is judged with that of its neighbours in time, so that whole stretches come and go rather than
    single points: a person reads "elbow, 0.4 to 0.7 s".
    """
    B, T, n_features = delta.shape
    size = delta.abs()
    width = max(3, T // STRETCHES) | 1  # odd
    smooth = F.avg_pool1d(size.transpose(1, 2), width, stride=1, padding=width // 2, count_include_pad=False)
    score = torch.where(size > 0, smooth.transpose(1, 2), -1.0).reshape(B, T * n_features)
    order = score.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order)
    places = torch.arange(T * n_features, device=delta.device).expand_as(order)
    return rank.scatter_(1, order, places).reshape(B, T, n_features)


def keep_first(delta: Tensor, rank: Tensor, n: Tensor) -> Tensor:
    """Return residuals of which the first ``n`` (batch,) by rank are kept."""
    return torch.where(rank < n[:, None, None], delta, torch.zeros_like(delta))


@torch.no_grad()
def cut(delta: Tensor, agreement: Callable[[Tensor], Tensor], level: float, at_most: Tensor | None = None) -> Tensor:
    """Return residuals with as few changes as still convince.

    Parameters
    ----------
    delta
        Residuals (batch, time, features).
    agreement
        Of residuals like these, how far all voices agree (batch,).
    level
        Agreement to be kept; an answer that has less keeps what it has.
    at_most
        Number of changes that must not be exceeded (batch,), whatever that costs.
    """
    rank = rank_changes(delta)
    high = (delta != 0).sum((1, 2))
    if at_most is not None:
        high = torch.minimum(high, at_most)
    wanted = agreement(keep_first(delta, rank, high)).clamp(max=level) - SLACK
    low = torch.zeros_like(high)
    for _ in range(HALVINGS):
        middle = (low + high) // 2
        enough = agreement(keep_first(delta, rank, middle)) >= wanted
        high, low = torch.where(enough, middle, high), torch.where(enough, low, middle)
    return keep_first(delta, rank, high)
