"""The choice between many candidates for each query, with as few questions to the selector as possible.

The sparsest believed candidate is wanted. Most candidates are refused by the family that is cheapest to ask, so the
others are asked about what is left, from the fewest changes upwards, until no better candidate can follow.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sparcets.explainers.pauses import pause
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.found_answers import MAX_PRICE, rank_answers
from sparcets.explainers.sparcets.selector import BATCH, Belief
from sparcets.training.threads import threads_for

CHEAP = ("intervals", "quantiles")  # families that are asked about all candidates, the cheapest first
AT_A_TIME = 4  # candidates of each query that the other families are asked about


@torch.no_grad()
def choose(
    ensemble: Ensemble, made: Tensor, target: Tensor, share: Tensor, n: int, confidence: float | None = None
) -> tuple[Tensor, Belief]:
    """Return the best ``n`` candidates of each query (n, queries), and what the families say of them (n * queries).

    Parameters
    ----------
    ensemble
        Its explained classifier and its selector are asked.
    made
        Candidates (candidates, queries, time, features), standardised.
    target
        Target classes (queries,).
    share
        Share of entries that each candidate changes (candidates, queries).
    n
        How many candidates of each query.
    confidence
        The least probability that the explained classifier has to give, or None.
    """
    with threads_for(BATCH["cpu"] * made[0, 0].numel()):
        return _choose(_Inquiry(ensemble, made.flatten(0, 1), target.repeat(len(made)), confidence), share, n)


def _choose(asked: _Inquiry, share: Tensor, n: int) -> tuple[Tensor, Belief]:
    families = asked.ensemble.selector.families
    alive = torch.ones_like(share, dtype=torch.bool).flatten()
    for name in (*(name for name in CHEAP[:1] if name in families), None, *CHEAP[1:]):
        if name is None:
            alive &= asked.is_valid(alive)
        elif name in families:
            alive &= asked.believes(name, alive)
    rest = [name for name in families if name not in CHEAP]
    paid = torch.full_like(share, torch.inf).flatten()
    ordered, order = torch.where(alive.reshape(share.shape), share, torch.inf).sort(dim=0, stable=True)
    row = row_of(order).reshape(order.shape)
    n = min(n, len(share))
    for first in range(0, len(share), AT_A_TIME):
        # What follows changes more, so that it is at best worth its changes divided by the price of a lead.
        worst = paid.reshape(share.shape).kthvalue(n, dim=0).values
        is_open = (ordered[first] < torch.inf) & (ordered[first] / MAX_PRICE < worst)
        if not is_open.any():
            break
        now = torch.zeros_like(alive)
        now[row[first : first + AT_A_TIME, is_open].flatten()] = True
        now &= alive
        for name in rest:
            asked.believes(name, now)
        belief = asked.belief()
        price = torch.where(belief.convincing, share.flatten() / MAX_PRICE, share.flatten())
        paid = torch.where(now & belief.believed, price, paid)
    # Where no candidate is believed, the one that most families believe is wanted: all have to be asked.
    doubted = torch.isinf(paid.reshape(share.shape)).all(0).expand_as(share).flatten()
    valid = asked.is_valid(doubted)
    for name in families:
        asked.believes(name, doubted & valid)
    belief = asked.belief()
    rank = rank_answers(asked.own, asked.valid, belief, share.flatten())
    best = rank.reshape(share.shape).argsort(dim=0, descending=True, stable=True)[:n]
    chosen = torch.zeros_like(alive)
    chosen[row_of(best)] = True
    for name in families:
        asked.believes(name, chosen)
    return best, asked.belief().select(row_of(best))


def row_of(best: Tensor) -> Tensor:
    """Return the rows of candidates (n, queries) in a list of all, query by query within each candidate."""
    return (best * best.shape[1] + torch.arange(best.shape[1], device=best.device)).flatten()


class _Inquiry:
    """What has been said of candidates so far; nobody is asked twice about one."""

    def __init__(self, ensemble: Ensemble, x: Tensor, target: Tensor, confidence: float | None) -> None:
        self.ensemble, self.x, self.target, self.confidence = ensemble, x, target, confidence
        families = ensemble.selector.families
        self.own = x.new_zeros(len(x))  # probability of the target by the explained classifier
        self.valid = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        self.support, self.margin = x.new_zeros(2, len(x), len(families))
        self.known = {name: torch.zeros_like(self.valid) for name in (*families, None)}

    def is_valid(self, rows: Tensor) -> Tensor:
        """Ask the explained classifier about some candidates (mask), and return what it is known to accept."""
        new = (rows & ~self.known[None]).nonzero()[:, 0]
        for part in torch.split(new, BATCH[self.x.device.type]) if len(new) else ():
            pause()
            log_proba, target = self.ensemble.explained_log_proba(self.x[part]), self.target[part]
            self.own[part] = log_proba.gather(1, target[:, None])[:, 0].exp().float()
            self.valid[part] = (log_proba.argmax(1) == target) & (self.own[part] >= (self.confidence or 0.0))
        self.known[None] |= rows
        return self.valid

    def believes(self, name: str, rows: Tensor) -> Tensor:
        """Ask a family about some candidates (mask), and return what it is known to believe."""
        column = self.ensemble.selector.families.index(name)
        new = (rows & ~self.known[name]).nonzero()[:, 0]
        if len(new):
            x = self.x[new]
            said = self.ensemble.selector.ask_family(name, x, self.ensemble.to_raw(x), self.target[new])
            self.support[new, column], self.margin[new, column] = said
        self.known[name] |= rows
        agrees: Tensor = self.support[:, column] > 0.5
        return agrees

    def belief(self) -> Belief:
        """Return what the families have said; who was not asked does not support a candidate."""
        return Belief(self.support, self.margin, self.ensemble.selector.leads(self.x))
