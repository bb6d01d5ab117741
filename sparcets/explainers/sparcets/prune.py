"""Pruning of answers: which changes matter most, and how few of them are enough."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sparcets.explainers.sparcets.generator import WINDOW_DIVISOR, window_mean

HALVINGS = 7  # of the bisection over the number of changes
RESOLUTION = 2**HALVINGS  # the number of changes is found to 1/128 of all changes
SERIES_PER_PASS = {"cpu": 8, "cuda": 4096}  # batch size below which the time of a prediction is roughly constant
NEGLIGIBLE = 0.1  # standard deviations; a window whose mean change is smaller is not reported
TOLERANCE = 1e-4  # probabilities this close are equal
Agreement = Callable[[Tensor, "Tensor | None"], Tensor]


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


@torch.no_grad()
def prune(delta: Tensor, agreement: Agreement, min_agreement: float, at_most: Tensor | None = None) -> Tensor:
    """Return residuals with as few changes as still convince: a bisection over the number of changes, by rank.

    Parameters
    ----------
    delta
        Residuals (batch, time, features).
    agreement
        Function of residuals (k * batch, time, features), the batch repeated k times, that returns the agreement of the
        ensemble (k * batch,). Its second argument is the agreement that is required (k * batch,) or None; values below
        it need not be exact.
    min_agreement
        Agreement (least probability of the target over the ensemble) to be kept; an answer that has less from the start
        keeps what it has.
    at_most
        Number of changes that must not be exceeded (batch,).
    """
    rank = rank_changes(delta)
    n_changes = (delta != 0).sum((1, 2))
    if at_most is not None:
        n_changes = torch.minimum(n_changes, at_most)

    def measure(parts: Tensor, required: Tensor | None) -> Tensor:  # numbers of parts kept (k, batch) to (k, batch)
        kept = torch.where(rank < (n_changes * parts // RESOLUTION)[:, :, None, None], delta, 0.0).flatten(0, 1)
        return agreement(kept, None if required is None else required.repeat(len(parts))).reshape(len(parts), -1)

    too_few = torch.zeros_like(n_changes)  # invariant: too_few parts are not enough, too_few + span are
    span = RESOLUTION
    required: Tensor | None = None
    for halvings in _rounds(len(delta), delta.device.type):
        span >>= halvings
        # All numbers that the next bisections may ask for.
        parts = too_few + span * torch.arange(1, 2**halvings, device=delta.device)[:, None]
        if required is None:
            required, agreed = _first_round(measure, parts, min_agreement, delta)
        else:
            agreed = measure(parts, required)
        too_few = too_few + span * _bisect((agreed < required).long(), halvings)
    return keep_first(delta, rank, n_changes * (too_few + 1) // RESOLUTION)


def _first_round(
    measure: Callable[[Tensor, Tensor | None], Tensor], parts: Tensor, min_agreement: float, delta: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the required agreement of each query (batch,), and that of the parts (k, batch).

    Required is ``min_agreement``, or the agreement of the whole answer where that is less.
    """
    whole = torch.full_like(parts[:1], RESOLUTION)
    if len(parts) == 1:  # many queries: first the whole, then one number of parts at a time
        required = measure(whole, None)[0].clamp(max=min_agreement) - TOLERANCE
        return required, measure(parts, required)
    # Few queries: all at once, assuming that the whole answer reaches ``min_agreement``, which it mostly does.
    both = torch.cat([parts, whole])
    agreed = measure(both, torch.full_like(parts[0], min_agreement, dtype=delta.dtype) - TOLERANCE)
    if delta.device.type == "cpu" and bool((agreed[-1] < min_agreement).any()):
        agreed = measure(both, None)
    return agreed[-1].clamp(max=min_agreement) - TOLERANCE, agreed[:-1]


def _bisect(failed: Tensor, halvings: int) -> Tensor:
    """Return how many of the parts bisection finds not to be enough (batch,).

    ``failed`` (2**halvings - 1, batch) is 1 where that many parts are not enough.

    >>> _bisect(torch.tensor([[1, 1], [1, 0], [1, 0]]), 2)
    tensor([3, 1])
    """
    position = torch.zeros_like(failed[:1])
    for step in reversed([2**i for i in range(halvings)]):
        position = position + step * failed.gather(0, position + (step - 1))
    return position[0]


def _rounds(batch: int, device: str) -> list[int]:
    """Return the number of bisections per round; the result does not depend on it, only the time for few queries.

    >>> _rounds(256, "cpu"), _rounds(1, "cpu")
    ([1, 1, 1, 1, 1, 1, 1], [3, 2, 2])
    """
    ahead = max(1, int(math.log2(max(1, SERIES_PER_PASS.get(device, 1) // batch))))
    rounds = -(-HALVINGS // ahead)
    return [HALVINGS // rounds + (i < HALVINGS % rounds) for i in range(rounds)]
