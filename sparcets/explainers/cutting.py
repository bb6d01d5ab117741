"""Cutting answers: which changes matter most, and how few of them are enough."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

HALVINGS = 7  # of the number of kept entries: to 1/128 of what there was
AHEAD = {"cpu": 8, "cuda": 4096}  # rows that cost about as much as one: few queries ask for several halvings at once
SLACK = 1e-4  # probabilities this close are the same


def rank_changes(delta: Tensor) -> Tensor:
    """Return the rank of every entry of residuals (batch, time, features), 0 for the one to keep longest.

    The size of a change is judged with that of its neighbours in time, so that whole stretches come and go rather than
    single points: a person reads "elbow, 0.4 to 0.7 s".
    """
    B, T, n_features = delta.shape
    size = delta.abs()
    width = max(3, T // 12) | 1  # odd
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
        Of residuals like these, how far all voices agree. It is asked about several cuts of the whole batch at once:
        (cuts * batch, time, features), the first cut of all queries first; gives (cuts * batch,).
    level
        Agreement to be kept; an answer that has less keeps what it has.
    at_most
        Number of changes that must not be exceeded (batch,), whatever that costs.
    """
    rank = rank_changes(delta)
    high = (delta != 0).sum((1, 2))
    if at_most is not None:
        high = torch.minimum(high, at_most)

    def agreed(numbers: Tensor) -> Tensor:  # (cuts, batch)
        kept = torch.where(rank < numbers[:, :, None, None], delta, torch.zeros_like(delta))
        return agreement(kept.flatten(0, 1)).reshape(numbers.shape)

    low, wanted = torch.zeros_like(high), None
    for halvings in _rounds(len(delta), delta.device.type):
        tree = _middles(low, high, halvings)
        asked = torch.cat([high[None], *tree] if wanted is None else tree)
        # Many queries are asked about one cut at a time, few about all at once.
        said = torch.cat([agreed(n[None]) for n in asked]) if halvings == 1 else agreed(asked)
        if wanted is None:
            wanted, said = said[0].clamp(max=level) - SLACK, said[1:]
        node = torch.zeros_like(high)[None]  # where each query stands in its tree of halvings
        for i, middles in enumerate(tree):
            heard = said[2**i - 1 : 2 ** (i + 1) - 1]  # of the 2**i middles of this halving
            middle, enough = middles.gather(0, node)[0], heard.gather(0, node)[0] >= wanted
            high, low = torch.where(enough, middle, high), torch.where(enough, low, middle)
            node = 2 * node + (~enough)[None]
    return keep_first(delta, rank, high)


def _rounds(batch: int, device: str) -> list[int]:
    """Return how many halvings are looked ahead in each round; the answer is the same, only sooner for few queries.

    >>> _rounds(256, "cpu"), _rounds(1, "cpu")
    ([1, 1, 1, 1, 1, 1, 1], [3, 2, 2])
    """
    ahead = max(1, int(math.log2(max(1, AHEAD.get(device, 1) // batch))))
    rounds = -(-HALVINGS // ahead)
    return [HALVINGS // rounds + (i < HALVINGS % rounds) for i in range(rounds)]


def _middles(low: Tensor, high: Tensor, halvings: int) -> list[Tensor]:
    """Return all numbers (2**i, batch) that the next halvings may ask about, by how those before them end."""
    lows, highs, tree = low[None], high[None], []
    for _ in range(halvings):
        middles = (lows + highs) // 2
        tree.append(middles)
        # Enough: the lower half goes on, else the upper; in turn, so that node i has the children 2i and 2i + 1.
        lows = torch.stack([lows, middles], dim=1).flatten(0, 1)
        highs = torch.stack([middles, highs], dim=1).flatten(0, 1)
    return tree
