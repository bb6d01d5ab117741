"""Batches of a size that a model accepts: smaller ones are padded, larger ones are split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.errors import ConfigError

Batch = tuple[int, int]


def check_batch(batch: Any) -> Batch | None:
    """Return the smallest and the largest batch that a model accepts, or None for any.

    >>> check_batch([2, 64])
    (2, 64)
    """
    if batch is None:
        return None
    sizes = tuple(batch) if isinstance(batch, (tuple, list)) else ()
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in sizes)
    if len(sizes) != 2 or not whole or not 1 <= sizes[0] <= sizes[1]:
        raise ConfigError(
            f"batch must be the smallest and the largest number of series that the model accepts, such as (2, 64), "
            f"got {batch!r}."
        )
    return int(sizes[0]), int(sizes[1])


def call_in_batches(call: Callable[[Any], Any], x: Any, batch: Batch) -> Any:
    """Call a model on series (batch, …) in batches it accepts, and return its outputs, one row per series.

    Parameters
    ----------
    call
        The model: series to outputs, arrays or tensors.
    x
        Series, an array or a tensor. A batch that is too small is padded by repeating its last series, whose further
        outputs are dropped.
    batch
        Smallest and largest number of series.
    """
    outputs = [call(padded(part, batch[0]))[: len(part)] for part in _parts(x, batch[1])]
    return torch.cat(outputs) if isinstance(x, Tensor) else np.concatenate(outputs)


def _parts(x: Any, largest: int) -> Iterator[Any]:
    return (x[start : start + largest] for start in range(0, len(x), largest))


def padded(x: Any, smallest: int) -> Any:
    """Return series, or anything else (batch, …), with the last one repeated until there are ``smallest`` of them.

    >>> padded(torch.tensor([1, 2]), 4)
    tensor([1, 2, 2, 2])
    """
    missing = smallest - len(x)
    if missing <= 0:
        return x
    if isinstance(x, Tensor):
        return torch.cat([x, x[-1:].expand(missing, *x.shape[1:])])
    return np.concatenate([x, np.repeat(x[-1:], missing, axis=0)])
