"""The search: gates on the way from a query to a start, opened as little as convinces the whole ensemble.

A start is a change that is known to be enough, or nearly: the difference to a real series of the target class, or the
residual of the generator. The search learns which of it is needed. Its price of an open gate rises step by step, so
that one run passes through the whole trade-off between few changes and agreement; what it holds on the way are the
candidates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.explainers.sparcets.ensemble import Ensemble, target_log_proba
from sparcets.explainers.sparcets.generator import gate_openness, hard_concrete_noise, stretch
from sparcets.explainers.sparcets.prune import drop_negligible
from sparcets.training.losses import EXPLAINED_WEIGHT
from sparcets.training.projection import Projection
from sparcets.training.threads import threads_for

ROWS = {"cpu": 12, "cuda": 768}  # rows searched at a time; more are faster for many queries, and slower for one
STEPS, WARM_UP = 160, 20  # all steps, and those at the lowest price
EVERY = 14  # steps between two candidates
PRICE = (0.5, 24.0)  # of opening all gates, at first and at last
KNOTS = 8  # of a gate over time, linear in between
LR, LR_VALUE = 0.3, 0.1
BETAS = (0.8, 0.95)
INITIAL_LOGIT = 1.5
DEVIATION = 0.3  # weight of the squared deviation from the start
SMALLEST_GATE = 0.3  # gates below it are shut
MAX_LOSS = 6.0  # of one head: bounds what a hopeless one contributes
ASKED = 2  # members asked per step
URGENCY = 0.2  # how fast the weight of a head grows that is not convinced


@dataclass(frozen=True, eq=False)
class Starts:
    """Where the search of some queries begins; several rows may belong to one query.

    Attributes
    ----------
    x, change
        Queries and changes to start from (rows, time, features), standardised.
    target
        Target classes (rows,).
    deviates
        Whether the values may deviate from the start (rows,); if not, only how much of it is taken.
    """

    x: Tensor
    change: Tensor
    target: Tensor
    deviates: Tensor

    def part(self, first: int, size: int) -> Starts:
        """Return ``size`` rows from the given one on; beyond the end, the last one is repeated."""
        rows = torch.arange(first, first + size, device=self.x.device).clamp(max=len(self.x) - 1)
        return Starts(self.x[rows], self.change[rows], self.target[rows], self.deviates[rows])


def search_gates(
    ensemble: Ensemble, projection: Projection, starts: Starts, *, explained_alone: bool = False
) -> list[Tensor]:
    """Return candidate residuals (rows, time, features) of rising sparsity, one tensor per price.

    Parameters
    ----------
    ensemble
        The classifiers to be convinced.
    projection
        The constraints.
    starts
        Queries and changes to start from.
    explained_alone
        Whether the explained classifier alone is to be convinced.
    """
    # Always as many rows at a time: sums over another number of rows differ in their last bits, which a search
    # amplifies. So an answer does not depend on the queries that it is searched with.
    n, T, n_features = starts.x.shape
    size = ROWS[starts.x.device.type]
    with threads_for(size * T * n_features):
        parts = [
            _search_rows(ensemble, projection, starts.part(first, size), explained_alone) for first in range(0, n, size)
        ]
    return [torch.cat(candidates)[:n] for candidates in zip(*parts, strict=True)]


def _search_rows(ensemble: Ensemble, projection: Projection, starts: Starts, explained_alone: bool) -> list[Tensor]:
    """Search all rows at once; see :func:`search_gates`."""
    x, target = starts.x, starts.target
    B, T, n_features = x.shape
    knots = min(KNOTS, T)
    members, heads = ensemble.members(), ensemble.heads()
    if explained_alone:
        members, heads = members[:1], heads[:1]
    levels = ensemble.levels[: heads[-1].stop, target].log()  # (heads, rows)
    share = torch.full((len(levels), 1), (1 - EXPLAINED_WEIGHT) / max(1, len(levels) - 1), device=x.device)
    share[0] = EXPLAINED_WEIGHT if len(levels) > 1 else 1.0
    urgency = torch.zeros_like(levels)
    by_time = torch.full((B, knots, n_features), INITIAL_LOGIT / 2, device=x.device, requires_grad=True)
    by_feature = torch.full((B, 1, n_features), INITIAL_LOGIT / 2, device=x.device, requires_grad=True)
    value = torch.zeros(B, knots, n_features, device=x.device, requires_grad=True)
    own = starts.deviates[:, None, None].to(x.dtype)
    gates, values = [by_time, by_feature], [value]
    optimiser = torch.optim.Adam([{"params": gates, "lr": LR}, {"params": values, "lr": LR_VALUE}], betas=BETAS)
    # One draw for all rows, so that the answer to a query does not depend on the others.
    noise = torch.Generator().manual_seed(0)
    found = []
    for step in range(STEPS):
        logits = _over_time(by_time, T) + by_feature
        gate = stretch(hard_concrete_noise(logits, torch.rand((1, T, n_features), generator=noise).to(x.device)))
        deviation = own * _over_time(value, T)
        delta = projection(x, gate * (starts.change + deviation))
        weight = share * urgency.exp()
        weight = weight / weight.sum(0)
        loss = _price(step) * gate_openness(logits).mean((1, 2)) + DEVIATION * (gate * deviation).square().mean((1, 2))
        raw = ensemble.to_raw(x + delta)
        turns = _turns(step, len(members))
        for i in turns:
            missing = levels[heads[i]] - target_log_proba(members[i](raw), target)
            missing = missing.clamp(0, MAX_LOSS)
            # A member that is asked every other step counts twice.
            loss = loss + len(members) / len(turns) * (weight[heads[i]] * missing).sum(0)
            urgency[heads[i]] += URGENCY * missing.detach().clamp(max=2)
        # The losses of the rows share nothing, so the gradient of their sum is each row's own.
        optimiser.zero_grad()
        torch.autograd.backward(loss.sum(), inputs=[*gates, *values])
        optimiser.step()
        if _is_candidate(step):
            with torch.no_grad():
                gate = stretch(torch.sigmoid(_over_time(by_time, T) + by_feature))
                gate = torch.where(gate < SMALLEST_GATE, 0.0, gate)
                change = gate * (starts.change + own * _over_time(value, T))
                found.append(projection(x, drop_negligible(change)))
    return found


def _turns(step: int, n_members: int) -> list[int]:
    """Return the members that are asked in a step: two at a time, in turn, since most of the time goes into them.

    >>> [_turns(step, 5) for step in range(5)]
    [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]
    """
    return [(ASKED * step + i) % n_members for i in range(min(ASKED, n_members))]


def prices() -> list[float]:
    """Return the prices at which the search holds a candidate, ascending.

    >>> len(prices()), prices()[0], round(prices()[-1], 6)
    (11, 0.5, 24.0)
    """
    return [_price(step) for step in range(STEPS) if _is_candidate(step)]


def _is_candidate(step: int) -> bool:
    return step == STEPS - 1 or (step >= WARM_UP - 1 and (step - WARM_UP + 1) % EVERY == 0)


def _price(step: int) -> float:
    """Return the price of opening all gates at some step: constant at first, then rising by a constant factor."""
    progress = max(0, step - WARM_UP) / (STEPS - WARM_UP - 1)
    return PRICE[0] * math.exp(progress * math.log(PRICE[1] / PRICE[0]))


def _over_time(knots: Tensor, T: int) -> Tensor:
    """Return values at all steps (rows, time, features) of values at knots, linear in between."""
    if knots.shape[1] == T:
        return knots
    return F.interpolate(knots.transpose(1, 2), size=T, mode="linear", align_corners=True).transpose(1, 2)
