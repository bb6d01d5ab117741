"""Filling of missing values (NaN) in tensors, with gradients to the values that fill them."""

from __future__ import annotations

import torch
from torch import Tensor

from sparcets.networks.temporal import inside


def fill_gaps(
    x: Tensor, rule: str = "forward", lengths: Tensor | None = None, *, otherwise: float = torch.nan
) -> Tensor:
    """Return series (batch, time, features) without gaps, as :func:`sparcets.gaps.fill_gaps` does for arrays.

    Nothing here waits for the device, so that it can be part of a CUDA graph.

    Examples
    --------
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
