"""What networks share: padding and gaps, which are asked about here; sizes, compared before a network is built."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor, nn


def inside(lengths: Tensor | None, x: Tensor) -> Tensor | None:
    """Return which steps belong to each series, (batch, time, 1), or None where nothing is padded."""
    if lengths is None:
        return None
    steps = torch.arange(x.shape[1], device=x.device)
    return (steps[None] < lengths.to(x.device)[:, None])[..., None]  # (B, T, 1)


def blank_padding(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Set what lies beyond each series' length to zero."""
    mask = inside(lengths, x)
    if mask is None:
        return x
    mask = mask.reshape(*mask.shape, *[1] * (x.ndim - mask.ndim))
    return x.masked_fill(~mask, 0.0)  # not x * mask: 0 times infinity is NaN


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


def reversed_in_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Return series (batch, time, hidden) backwards, each from its own end; padding stays where it is."""
    if lengths is None:
        return h.flip(1)
    steps = torch.arange(h.shape[1], device=h.device)[None]  # (1, T)
    end = lengths.to(h.device)[:, None]
    return h.gather(1, torch.where(steps < end, end - 1 - steps, steps)[..., None].expand_as(h))


def last_step(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Take the last step of each series: (batch, time, hidden) to (batch, hidden)."""
    if lengths is None:
        return h[:, -1]
    return h[torch.arange(len(h), device=h.device), lengths.to(h.device) - 1]


def true_steps(x: Tensor, lengths: Tensor | None) -> Tensor | int:
    """Return the number of steps of each series (batch,), or that of all if nothing is padded."""
    return x.shape[1] if lengths is None else lengths


def lengths_of(lengths: Any, rows: Any) -> Any:
    """Return the lengths of some series, or None if nothing is padded; for arrays and tensors."""
    return None if lengths is None else lengths[rows]


def check_sizes(hidden: int, layers: int, shapes: Collection[Sequence[int]]) -> None:
    """Raise ValueError if weights of these shapes are too few for the network that is about to be built.

    A damaged number in a file may ask for a network that does not fit in memory.

    >>> check_sizes(8, 1, [(8, 3), (8,)])
    >>> check_sizes(8000, 1, [(8, 3), (8,)])
    Traceback (most recent call last):
    ValueError: a network of 8000 hidden units and 1 layers has other weights
    """
    if layers > len(shapes) or hidden > max((size for shape in shapes for size in shape), default=0):
        raise ValueError(f"a network of {hidden} hidden units and {layers} layers has other weights")


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


def fill_gaps(
    x: Tensor, rule: str = "forward", lengths: Tensor | None = None, *, otherwise: float = torch.nan
) -> Tensor:
    """Return series (batch, time, features) without gaps, as ``Series.filled`` does for arrays.

    Nothing here waits for the device, so that it can be part of a CUDA graph.

    >>> x = torch.tensor([torch.nan, 1.0, torch.nan, 3.0]).reshape(1, 4, 1)
    >>> fill_gaps(x).flatten().tolist(), fill_gaps(x, "mean").flatten().tolist()
    ([1.0, 1.0, 1.0, 3.0], [2.0, 1.0, 2.0, 3.0])
    """
    gaps = x.isnan()
    mask = inside(lengths, x)
    known = ~gaps if mask is None else ~gaps & mask
    if rule == "mean":
        total = torch.where(known, x, 0.0).sum(1, keepdim=True, dtype=torch.float64)
        value = (total / known.sum(1, keepdim=True).clamp(min=1)).to(x.dtype).expand_as(x)
    else:
        steps = torch.arange(x.shape[1], device=x.device)[:, None]
        last = torch.where(known, steps, -1).cummax(1).values
        first = known.int().argmax(1, keepdim=True)
        value = x.gather(1, torch.where(last < 0, first, last))
    value = torch.where(known.any(1, keepdim=True), value, otherwise)
    return torch.where(gaps, value, x)
