"""From one vector per step to one per series, blind to padding."""

from __future__ import annotations

import torch
from torch import Tensor


def inside(lengths: Tensor | None, x: Tensor) -> Tensor | None:
    """Return which steps belong to each series, (batch, time, 1), or None where nothing is padded."""
    if lengths is None:
        return None
    steps = torch.arange(x.shape[1], device=x.device)
    return (steps[None] < lengths.to(x.device)[:, None])[..., None]  # (B, T, 1)


def blank_padding(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Set what lies beyond each series' length to zero."""
    mask = inside(lengths, x)
    return x if mask is None else x.masked_fill(~mask, 0.0)  # not x * mask: 0 times infinity is NaN


def mean_over_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Average over the steps of each series: (batch, time, hidden) to (batch, hidden)."""
    mask = inside(lengths, h)
    if mask is None:
        return h.mean(1)
    return h.masked_fill(~mask, 0.0).sum(1) / mask.sum(1)


def spread_over_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Return the standard deviation over the steps of each series: (batch, time, hidden) to (batch, hidden)."""
    apart = h - mean_over_time(h, lengths)[:, None]
    return mean_over_time(apart.square(), lengths).sqrt()


def last_step(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Take the last step of each series: (batch, time, hidden) to (batch, hidden)."""
    if lengths is None:
        return h[:, -1]
    return h[torch.arange(len(h), device=h.device), lengths.to(h.device) - 1]
