"""Cutting answers: which changes matter most, and how few of them are enough."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from sparcets.networks.gates import STRETCHES, over_stretches

HALVINGS = 7  # of the number of kept entries: to 1/128 of what there was
AHEAD = {"cpu": 8, "cuda": 4096}  # rows that cost about as much as one: few queries ask for several halvings at once
PARTS = 2**HALVINGS
FAINT = 0.1  # standard deviations; a stretch that changes less is not worth telling anybody
SLACK = 1e-4  # probabilities this close are the same
Agreement = Callable[[Tensor, Tensor | None], Tensor]


def without_faint(delta: Tensor) -> Tensor:
    """Return residuals (batch, time, features), standardised, with exact zeros where they hardly change anything.

    A gate opens for a whole stretch, and where nothing is needed the generator passes next to nothing through it.
    Nobody is convinced by that, and nobody should have to read it.

    >>> delta = torch.tensor([0.01, -0.02, 0.01, 0.5, 0.9, 0.6, 0.0, 0.02]).reshape(1, 8, 1)
    >>> without_faint(delta).flatten()
    tensor([0.0000, 0.0000, 0.0100, 0.5000, 0.9000, 0.6000, 0.0000, 0.0000])
    """
    loud = over_stretches(delta.abs())  # what crosses zero now and then stays in one piece
    return torch.where(loud < FAINT, 0.0, delta)


def rank_changes(delta: Tensor, parts: int = STRETCHES) -> Tensor:
    """Return the rank of every entry of residuals (batch, time, features), 0 for the one to keep longest.

    The size of a change is judged with that of its neighbours in time, so that whole stretches come and go rather than
    single points: a person reads "elbow, 0.4 to 0.7 s". The more ``parts`` a series has, the shorter they are.
    """
    B, T, n_features = delta.shape
    size = delta.abs()
    score = torch.where(size > 0, over_stretches(size, parts), -1.0).reshape(B, T * n_features)
    order = score.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order)
    places = torch.arange(T * n_features, device=delta.device).expand_as(order)
    return rank.scatter_(1, order, places).reshape(B, T, n_features)


def keep_first(delta: Tensor, rank: Tensor, n: Tensor) -> Tensor:
    """Return residuals of which the first ``n`` (batch,) by rank are kept."""
    return torch.where(rank < n[:, None, None], delta, torch.zeros_like(delta))


@torch.no_grad()
def cut(delta: Tensor, agreement: Agreement, level: float, at_most: Tensor | None = None) -> Tensor:
    """Return residuals with as few changes as still convince.

    Parameters
    ----------
    delta
        Residuals (batch, time, features).
    agreement
        Of residuals like these, how far all voices agree. It is asked about several cuts of the whole batch at once:
        (cuts * batch, time, features), the first cut of all queries first; gives (cuts * batch,). It is also told how
        much would be enough (cuts * batch,), where that is known: less than that need not be exact.
    level
        Agreement to be kept; an answer that has less keeps what it has.
    at_most
        Number of changes that must not be exceeded (batch,), whatever that costs.
    """
    rank = rank_changes(delta)
    whole = (delta != 0).sum((1, 2))
    if at_most is not None:
        whole = torch.minimum(whole, at_most)

    def agreed(parts: Tensor, enough: Tensor | None) -> Tensor:  # (cuts, batch)
        kept = torch.where(rank < (whole * parts // PARTS)[:, :, None, None], delta, 0.0).flatten(0, 1)
        return agreement(kept, None if enough is None else enough.repeat(len(parts))).reshape(len(parts), -1)

    few = torch.zeros_like(whole)  # so many parts are not enough; one part more than that will be, in the end
    every = torch.full_like(few, PARTS)[None]
    wanted: Tensor | None = None
    span = PARTS
    for halvings in _rounds(len(delta), delta.device.type):
        span >>= halvings
        asked = few + span * torch.arange(1, 2**halvings, device=delta.device)[:, None]  # all that they may ask about
        if wanted is None and halvings == 1:  # many queries are asked about one cut at a time
            wanted = agreed(every, None)[0].clamp(max=level) - SLACK
        if wanted is None:  # few about all at once, as if the whole convinced, which it mostly does
            asked = torch.cat([asked, every])
            said = agreed(asked, torch.full_like(few, level, dtype=delta.dtype) - SLACK)
            if delta.device.type == "cpu" and bool((said[-1] < level).any()):
                said = agreed(asked, None)
            wanted, said = said[-1].clamp(max=level) - SLACK, said[:-1]
        else:
            said = agreed(asked, wanted)
        missed = (said < wanted).long()
        place = torch.zeros_like(whole)[None]
        for step in reversed([2**i for i in range(halvings)]):
            place = place + step * missed.gather(0, place + (step - 1))
        few = few + span * place[0]
    return keep_first(delta, rank, whole * (few + 1) // PARTS)


def _rounds(batch: int, device: str) -> list[int]:
    """Return how many halvings are looked ahead in each round; the answer is the same, only sooner for few queries.

    >>> _rounds(256, "cpu"), _rounds(1, "cpu")
    ([1, 1, 1, 1, 1, 1, 1], [3, 2, 2])
    """
    ahead = max(1, int(math.log2(max(1, AHEAD.get(device, 1) // batch))))
    rounds = -(-HALVINGS // ahead)
    return [HALVINGS // rounds + (i < HALVINGS % rounds) for i in range(rounds)]
