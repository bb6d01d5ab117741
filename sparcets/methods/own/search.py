"""The order in which a query is answered: generated, else refined by the search, else from a real series.

Each step answers the queries that the ones before left without a believed answer. What is found is offered to
:class:`FoundAnswers`, which keeps the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray, differs
from sparcets.methods.own.candidates import (
    MAX_PRICE,
    FoundAnswers,
    drop_negligible,
    keep_first,
    rank_answers,
    rank_changes,
)
from sparcets.methods.own.ensemble import ASKED, Belief, Ensemble
from sparcets.methods.own.generator import SHORT_WINDOW_DIVISOR
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.operating_point import OperatingPoint
from sparcets.methods.own.pieces import Starts, search_pieces
from sparcets.methods.own.prototypes import NEAREST, STARTS
from sparcets.methods.request import Answers, Request, pause
from sparcets.models.base import Classifier
from sparcets.training.device import threads_for
from sparcets.training.networks import fill_gaps
from sparcets.training.projection import Projection

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
    with threads_for(ASKED["cpu"] * made[0, 0].numel()):
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
        for part in torch.split(new, ASKED[self.x.device.type]) if len(new) else ():
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


Memory: TypeAlias = dict[tuple[int, bytes], Tensor]


@dataclass(eq=False)
class Draft:
    """An answer that is wanted soon: of what is remembered, else of one search.

    Attributes
    ----------
    earlier
        Memory of the same query under other constraints, whose candidates are tried within those of now.
    is_final
        Whether nothing was left out, so that the answer is the one that is always given.
    """

    earlier: Memory = field(default_factory=dict)
    is_final: bool = True


_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)
_draft: ContextVar[Draft | None] = ContextVar("draft", default=None)


@contextmanager
def remember_searches(memory: Memory, draft: Draft | None = None) -> Iterator[None]:
    """Keep the candidates of searches within the block in ``memory``, and take them from there.

    One memory is for one explainer and one set of constraints; queries and targets may differ, and so may caps. With a
    ``draft``, an answer may leave out what would take another search.
    """
    before = _memory.set(memory), _draft.set(draft)
    try:
        yield
    finally:
        _memory.reset(before[0])
        _draft.reset(before[1])


def wanted_draft() -> Draft | None:
    """Return the draft that is wanted, or None if the answer is wanted as it is always given."""
    return _draft.get()


def recall(attempt: int, x: Tensor, target: Tensor, memory: Memory | None = None) -> Tensor | None:
    """Return the candidates of a search if they are remembered, in the memory of the block or in another one."""
    memory = _memory.get() if memory is None else memory
    return None if memory is None else memory.get(_key(attempt, x, target))


def remembered(attempt: int, x: Tensor, target: Tensor, search: Callable[[], Tensor]) -> Tensor:
    """Return the candidates of a search, from the memory if there is one and it has them.

    Parameters
    ----------
    attempt
        Which real series the search starts from.
    x, target
        The queries (batch, time, features) and their targets.
    search
        Computes the candidates.
    """
    memory = _memory.get()
    if memory is None:
        return search()
    key = _key(attempt, x, target)
    if key not in memory:
        memory[key] = search()
    return memory[key]


def _key(attempt: int, x: Tensor, target: Tensor) -> tuple[int, bytes]:
    return attempt, x.cpu().numpy().tobytes() + target.cpu().numpy().tobytes()


# The search starts from real series, by their rank among the nearest, and may deviate from them or not: for some data
# the one convinces by fewer changes, for some the other. Where no answer is believed, once more from others.
ATTEMPTS = (
    ((0, True), (1, True), (2, True), (0, False), (1, False), (2, False)),
    ((3, True), (4, True), (5, True), (3, False), (4, False), (5, False)),
)
TRIMMED = (0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5)  # shares of the changes of an answer that are tried alone
OFFERED = 2  # candidates of a search that are checked exactly, per answer
SEARCH_BATCH = {"cpu": 64, "cuda": 2048}  # queries searched at a time, which bounds the memory


def answer(request: Request, model: FittedModel, classifier: Classifier, point: OperatingPoint) -> Answers:
    """Answer a batch of queries.

    Parameters
    ----------
    request
        The queries.
    model
        The fitted model.
    classifier
        The explained one; it decides what is valid.
    point
        The operating point of the generator.
    """
    search = Search(request, model, classifier, point)
    search.generate()
    search.refine()
    search.trim()
    if not search.leaves_out(search.found.missing()):
        search.copy_neighbours()
        search.flip()
    return search.found.answers()


class Search:
    """Proposals for a batch of queries, and what was found."""

    def __init__(self, request: Request, model: FittedModel, classifier: Classifier, point: OperatingPoint) -> None:
        self.request, self.model, self.point = request, model, point
        self.found = FoundAnswers(request, classifier, model.ensemble)
        self.target = torch.as_tensor(request.target, device=model.device)
        gaps = request.series.gaps is not None
        self.projection = Projection(request.constraints, request.info.scaler, gaps=gaps).to(model.device)
        self.x = model.ensemble.standardise(request.X)  # (batch, time, features); NaN where entries are missing
        self.measured = fill_gaps(self.x, otherwise=0.0) if gaps else self.x  # where changes are measured from

    @cached_property
    def nearest(self) -> IntArray:
        """Rows of the nearest prototypes (batch, NEAREST); -1 where there are no more."""
        return self.model.prototypes.nearest(self.measured, self.request.target, NEAREST)

    def generate(self) -> None:
        """Offer the generator's answers: at the operating point, else the best of all sparsity weights and scales."""
        if self.model.generator is None:
            return
        everywhere = np.arange(len(self.x))
        residual = self._propose(everywhere, self.point.log_sparsity_weight)
        self._offer(everywhere, self._prune(everywhere, self.point.residual_scale * residual), "generated")
        for part in self._parts(self.found.unconvincing()):
            residuals = [self._propose(part, weight) for weight in self.model.log_sparsity_weights]
            scaled = [scale * residual for residual in residuals for scale in self.model.residual_scales]
            candidates = torch.stack([self._prune(part, residual) for residual in scaled])
            self._offer_best(part, candidates, OFFERED * self.request.n, "generated")

    def refine(self) -> None:
        """Offer what the search finds, from real series and from the generator's residual."""
        for attempt in range(len(ATTEMPTS)):
            for part in self._parts(self.found.unconvincing()):
                if self.model.searches and not self._repair(part, attempt):
                    self.refine_rows(part, attempt=attempt)

    def leaves_out(self, rows: IntArray) -> bool:
        """Return whether a draft is wanted, which leaves out further steps for some queries."""
        draft = wanted_draft()
        if draft is None or not len(rows):
            return False
        draft.is_final = False
        return True

    def _repair(self, rows: IntArray, attempt: int) -> bool:
        """Return whether a draft does without a search, with candidates that were found under other constraints."""
        draft = wanted_draft()
        if draft is None or recall(attempt, self.x[rows], self.target[rows]) is not None:
            return False
        earlier = recall(0, self.x[rows], self.target[rows], draft.earlier)
        if attempt == 0 and earlier is not None:
            self.offer_candidates(rows, torch.stack([self._project(rows, candidate) for candidate in earlier]))
        return (attempt > 0 or not len(self.found.missing())) and self.leaves_out(rows)

    def _parts(self, rows: IntArray) -> list[IntArray]:
        """Return some queries in parts whose candidates fit into the memory."""
        size = SEARCH_BATCH[self.x.device.type]
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def refine_rows(self, rows: IntArray, *, attempt: int = 0, explained_alone: bool = False) -> None:
        """Search for some queries, and offer what is found."""
        self.offer_candidates(rows, self.search_rows(rows, attempt=attempt, explained_alone=explained_alone))

    def search_rows(self, rows: IntArray, *, attempt: int = 0, explained_alone: bool = False) -> Tensor:
        """Return the candidates of a search for some queries (candidates, rows, time, features)."""
        if explained_alone:  # depends on the cap
            return self._search_rows(rows, attempt, explained_alone=True)
        return remembered(attempt, self.x[rows], self.target[rows], lambda: self._search_rows(rows, attempt))

    def _search_rows(self, rows: IntArray, attempt: int, *, explained_alone: bool = False) -> Tensor:
        changes, deviates = self._starts(rows, attempt)
        k = len(changes)
        most = self.x.new_ones(len(rows))
        if explained_alone and self.request.at_most is not None:
            # What the classifier alone needs is found within the cap; what all believe, by cutting what they need.
            editable = self.projection.editable_entries(self.x[rows]).sum((-2, -1)).clamp(min=1)
            at_most = torch.as_tensor(self.request.at_most[rows], device=self.x.device)
            most = (at_most.double() / editable).float().clamp(1e-6, 1).expand(len(rows))
        # The starts of one query stand together, so that they are searched together.
        starts = Starts(
            x=self.x[rows].repeat_interleave(k, 0),
            change=torch.stack(changes, 1).flatten(0, 1),
            target=self.target[rows].repeat_interleave(k),
            deviates=torch.tensor(deviates, device=self.x.device).repeat(len(rows)),
            most=most.repeat_interleave(k),
        )
        found = search_pieces(self.model.ensemble, self.projection, starts, explained_alone=explained_alone)
        by_start = torch.stack(found).reshape(len(found), len(rows), k, *self.x.shape[1:])
        return by_start.transpose(1, 2).flatten(0, 1)

    def offer_candidates(self, rows: IntArray, candidates: Tensor) -> None:
        """Offer the best of the candidates (candidates, rows, time, features) of each query."""
        n = len(candidates)
        candidates = self._cut(np.tile(rows, n), candidates.flatten(0, 1)).reshape(candidates.shape)
        self._offer_best(rows, candidates, OFFERED * self.request.n, "refined")
        # The surrogate of a black box may be wrong about all that were chosen.
        missing = np.flatnonzero(np.isin(rows, self.found.missing()))
        if len(missing):
            self._offer(rows[missing], candidates[:, missing].flatten(0, 1), "refined")

    def _offer_best(self, rows: IntArray, candidates: Tensor, n: int, status: str) -> None:
        """Offer the best ``n`` of the candidates (candidates, rows, time, features) of each query.

        They are chosen before the limits are applied exactly, so that the user's classifier is asked about few.
        """
        share = (candidates != 0).flatten(2).float().mean(2)
        best, belief = choose(
            self.model.ensemble, self.x[rows] + candidates, self.target[rows], share, n, self.request.confidence
        )
        chosen = candidates.flatten(0, 1)[row_of(best)]
        self._offer(rows, chosen, status, belief=belief)

    def trim(self) -> None:
        """Offer the largest changes of what the search found alone: fewer may be believed as well."""
        rows = np.flatnonzero((self.found.status == "refined").all(1) & ~self.found.is_unconvincing())
        if not len(rows):
            return
        delta = self.residual(rows, self.found.series[rows, 0])
        rank, n_changes = rank_changes(delta), (delta != 0).sum((1, 2))
        trimmed = [keep_first(delta, rank, (share * n_changes.float()).long()) for share in TRIMMED]
        self._offer_best(rows, torch.stack(trimmed), 1, "refined")

    def flip(self) -> None:
        """Offer what convinces the explained classifier alone to the queries that still lack a valid answer."""
        rows = self.found.missing()
        if len(rows) and self.model.searches:
            self.refine_rows(rows, explained_alone=True)

    def copy_neighbours(self) -> None:
        """Offer whole real series to the queries that still lack a valid answer."""
        for rank in range(NEAREST):
            pause()
            rows = self.found.missing()
            if len(rows):
                rows = rows[self.nearest[rows, rank] >= 0]
            if not len(rows):
                return
            x = self.measured[rows]
            change = self.model.prototypes.select(self.nearest[rows, rank], x) - x
            self._offer(rows, self._cut(rows, self._project(rows, change)), "neighbour")

    def _starts(self, rows: IntArray, attempt: int) -> tuple[list[Tensor], list[bool]]:
        """Return changes to start from (rows, time, features), and whether the search may deviate from each."""
        x = self.measured[rows]
        wanted = [start for start in ATTEMPTS[attempt] if start[0] % STARTS < self.model.starts]
        ranks, deviates = zip(*wanted, strict=True)
        changes = [self.model.prototypes.select(self.nearest[rows, rank], x) - x for rank in ranks]
        if self.model.generator is not None and attempt == 0:
            changes[-1] = self.point.residual_scale * self._propose(rows, self.model.log_sparsity_weights[0])
        return changes, list(deviates)

    def _propose(self, rows: IntArray, log_weight: float) -> Tensor:
        return self.model.propose_each(self.measured[rows], self.target[rows], log_weight)

    def _offer(self, rows: IntArray, delta: Tensor, status: str, belief: Belief | None = None) -> None:
        """Offer residuals (n * rows, time, features) within constraints and cap, n for each of the rows."""
        rows = np.tile(rows, len(delta) // max(1, len(rows)))
        self.found.offer(rows, self._series(rows, delta), status, belief)

    def _prune(self, rows: IntArray, residual: Tensor) -> Tensor:
        """Return a residual of the generator without negligible changes, within constraints and cap."""
        return self._cut(rows, self._project(rows, drop_negligible(residual)))

    def _cut(self, rows: IntArray, delta: Tensor) -> Tensor:
        """Return the largest changes of residuals (rows, time, features) below the cap."""
        if self.request.at_most is None:
            return delta
        # By short windows: below a cap, single large changes count more than whole windows of the usual length.
        at_most = torch.as_tensor(self.request.at_most[rows], device=delta.device)
        return keep_first(delta, rank_changes(delta, SHORT_WINDOW_DIVISOR), at_most)

    def _project(self, rows: IntArray, delta: Tensor) -> Tensor:
        """Return residuals within the constraints."""
        with torch.no_grad():
            projected: Tensor = self.projection(self.x[rows], delta)
        return projected

    def residual(self, rows: IntArray, series: FloatArray) -> Tensor:
        """Return series in the data's own units as standardised residuals, exactly 0 where nothing changes."""
        made = self.model.ensemble.standardise(series)
        changed = torch.as_tensor(differs(series, self.request.X[rows]), device=self.x.device)
        return torch.where(changed, made - self.x[rows], 0.0)

    def _series(self, rows: IntArray, delta: Tensor) -> FloatArray:
        """Return series in the data's own units; where nothing changes, the query's own bits."""
        return self.request.info.scaler.add_delta(self.request.X[rows], delta.cpu().numpy())
