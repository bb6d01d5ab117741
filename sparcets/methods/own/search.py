"""The order in which a query is answered, generated, else searched, else from a real series; and the search.

Each step answers the queries that the ones before left without a believed answer. What is found is offered to
:class:`FoundAnswers`, which keeps the best.

The search finds which pieces of a change convince the whole ensemble. A start is a change that is known to be enough,
or nearly: the difference to a real series of the target class, or the residual of the generator. It is cut into pieces
where it crosses zero, so that a piece can be left out without a jump in the series. In every round, the gradients of
the members say what each piece contributes, and the pieces that contribute most per entry are kept: fewer after a round
that convinced the members, more after one that did not. The values may deviate from the start, smoothly and where
members are to be convinced. What the rounds hold are the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray, differs
from sparcets.methods.own.candidates import (
    NEAREST,
    STARTS,
    FoundAnswers,
    choose,
    drop_negligible,
    keep_first,
    rank_changes,
    row_of,
)
from sparcets.methods.own.ensemble import Belief, Ensemble, target_log_proba
from sparcets.methods.own.generator import SHORT_WINDOW_DIVISOR, window_mean
from sparcets.methods.own.model import FittedModel
from sparcets.methods.request import Answers, Request, pause
from sparcets.training.device import threads_for
from sparcets.training.networks import fill_gaps
from sparcets.training.projection import Projection

if TYPE_CHECKING:
    from sparcets.methods.own.operating_point import OperatingPoint

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


def answer(request: Request, model: FittedModel, point: OperatingPoint) -> Answers:
    """Answer a batch of queries of one length, by a fitted model and the operating point of its generator."""
    search = Search(request, model, point)
    search.generate()
    search.refine()
    search.trim()
    if not search.leaves_out(search.found.missing()):
        search.copy_neighbours()
        search.flip()
    return search.found.answers()


class Search:
    """Proposals for a batch of queries, and what was found."""

    def __init__(self, request: Request, model: FittedModel, point: OperatingPoint) -> None:
        self.request, self.model, self.point = request, model, point
        self.found = FoundAnswers(request, model.ensemble)
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


ROWS = {"cpu": 6, "cuda": 6144}  # rows searched at a time: those of one query, or of many
FIRST = (0.0, -0.6, -1.2)  # logarithm of the share of entries kept in the first rounds
STEPS = (0.4, 0.25, 0.15)  # by which it then falls or rises, round by round
LADDER = (-0.5, -0.35, -0.22, -0.1, 0.1, 0.25, 0.4)  # further shares tried at last, relative to the last one
PARTS = 14  # pieces of a feature, at most
SMOOTHED = 20  # a change is averaged over 1/20 of the series before it is cut
MEMORY = 0.8  # weight of the earlier rounds in what a piece contributes
MAX_WEIGHT = 5.0  # of a head that is far from convinced
ENOUGH = 0.2  # log-odds of the target at which a head counts as convinced, at most
FEW_HEADS = 4  # with more, one of the auxiliary heads may remain unconvinced
SPREADS = (3, 8)  # deviations are smooth over so many parts of the series
RATE, DECAY, INERTIA = 0.3, 0.06, 0.7  # of the deviations, per round
# Where the explained classifier alone is to be convinced, by any change that does it: larger deviations, more rounds.
RATE_ALONE, FURTHER = 0.5, 20 * (0.0,)
MAX_DEVIATION = 3.0  # standard deviations: no values that no series has
CONVINCED_RATE = 0.5  # of it where the members are convinced already


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
        Whether the values may deviate from the start (rows,); if not, only parts of it are taken.
    most
        Largest share of the editable entries that is kept (rows,).
    """

    x: Tensor
    change: Tensor
    target: Tensor
    deviates: Tensor
    most: Tensor

    def part(self, first: int, size: int) -> Starts:
        """Return ``size`` rows from the given one on; beyond the end, the last one is repeated."""
        rows = torch.arange(first, first + size, device=self.x.device).clamp(max=len(self.x) - 1)
        return Starts(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def search_pieces(
    ensemble: Ensemble, projection: Projection, starts: Starts, *, explained_alone: bool = False
) -> list[Tensor]:
    """Return candidate residuals (rows, time, features), one tensor per round and one per step of the ladder.

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
    n, size = len(starts.x), ROWS[starts.x.device.type]
    members = _Members(ensemble, projection, explained_alone=explained_alone)
    with threads_for(size * starts.x[0].numel()):
        parts = [_search_rows(members, starts.part(first, size)) for first in range(0, n, size)]
    return [torch.cat(candidates)[:n] for candidates in zip(*parts, strict=True)]


def _search_rows(members: _Members, starts: Starts) -> tuple[Tensor, ...]:
    """Search all rows at once; see :func:`search_pieces`."""
    x, projection = starts.x, members.projection
    pieces = Pieces(x, starts.change, projection)
    rate = (RATE_ALONE if len(members.members) == 1 else RATE) * starts.deviates[:, None, None].to(x.dtype)
    values, velocity = starts.change, torch.zeros_like(x)
    kept, mask = x.new_zeros(len(x)), torch.ones_like(x)
    weight, held = None, []
    for step in (*FIRST[1:], *STEPS, *(FURTHER if members.alone else ())):
        pause()
        gradient, convinced, weight = members.ask(starts, mask * values, weight)
        pieces.credit(gradient * values)
        velocity = INERTIA * velocity + (1 - INERTIA) * _smooth_direction(gradient * mask, mask)
        needed = torch.where(convinced, CONVINCED_RATE, torch.ones_like(kept))[:, None, None]
        deviation = (values - starts.change + rate * needed * velocity) * (1 - DECAY)
        deviation = deviation.clamp(-MAX_DEVIATION, MAX_DEVIATION)
        values = starts.change + deviation
        kept = torch.full_like(kept, step) if step < 0 else torch.where(convinced, kept - step, kept + step)
        kept = torch.minimum(kept, starts.most.log())
        mask = pieces.keep(kept)
        held.append(mask * values)
    held += [pieces.keep(torch.minimum(kept + step, starts.most.log())) * values for step in LADDER]
    candidates: Tensor = projection(x.repeat(len(held), 1, 1), drop_negligible(torch.cat(held)))
    return candidates.chunk(len(held))


class _Members:
    """The classifiers to be convinced; see :func:`search_pieces`."""

    def __init__(self, ensemble: Ensemble, projection: Projection, *, explained_alone: bool) -> None:
        self.ensemble, self.projection, self.alone = ensemble, projection, explained_alone
        self.members = ensemble.members()[: 1 if explained_alone else None]
        n_heads = ensemble.heads()[len(self.members) - 1].stop
        self.levels = ensemble.levels[:n_heads].log()  # (heads, classes)

    def ask(self, starts: Starts, delta: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return in which direction changes convince, whether the members are (rows,), and the weights of the heads.

        A head counts the more the less it is convinced, since the least convinced family decides.

        Parameters
        ----------
        starts, delta
            The queries, and the changes of them (rows, time, features).
        weight
            Weights of the heads (heads, rows) in the round before.
        """
        wanted = _log_odds(self.levels[:, starts.target])  # (heads, rows)
        change = delta.detach().requires_grad_()
        raw = self.ensemble.to_raw(starts.x + self.projection(starts.x, change))
        log_proba = torch.cat([member(raw) for member in self.members])
        odds = _log_odds(target_log_proba(log_proba, starts.target))
        now = (1 / F.softplus(odds.detach() - wanted)).clamp(max=MAX_WEIGHT)
        now = now if weight is None else (now + weight) / 2
        # The losses of the rows share nothing, so the gradient of their sum is each row's own.
        (gradient,) = torch.autograd.grad((now * odds).sum(), change)
        enough = odds >= wanted.clamp(max=ENOUGH)
        n_left = (~enough[1:]).sum(0)
        convinced = enough[0] & (n_left <= (1 if len(enough) > FEW_HEADS else 0))
        return gradient, convinced, now


def _log_odds(log_proba: Tensor) -> Tensor:
    log_proba = log_proba.clamp(max=-1e-6)
    return log_proba - torch.log1p(-log_proba.exp())


def _smooth_direction(gradient: Tensor, mask: Tensor) -> Tensor:
    """Return a gradient (rows, time, features) smoothed over time at several scales, of unit size in each row."""
    total = torch.zeros_like(gradient)
    for parts in SPREADS:
        smooth = window_mean(window_mean(gradient, parts), parts) * mask
        total = total + smooth / smooth.square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-12)
    return total / len(SPREADS)


class Pieces:
    """The pieces of a change, and what each has contributed so far.

    Parameters
    ----------
    x, change
        Queries, and changes of them (rows, time, features), standardised.
    projection
        The constraints: which entries may change; features that change together only are cut alike.
    """

    def __init__(self, x: Tensor, change: Tensor, projection: Projection) -> None:
        self.groups = projection.groups()
        for members in self.groups:
            first = change.index_select(2, members[:1])
            change = change.index_copy(2, members, first.expand(-1, -1, len(members)))
        self.piece = cut_pieces(change)  # (rows, time, features)
        self.editable = projection.editable_entries(x).expand_as(change)
        self.size = self._sum(self.editable.to(change.dtype)).clamp(min=1)  # (rows, pieces, features)
        self.n_entries = self.editable.sum((1, 2))
        self.credits = torch.zeros_like(self.size)

    def credit(self, gain: Tensor) -> None:
        """Add what the entries (rows, time, features) contribute, to first order."""
        of_piece = self._sum(torch.where(self.editable, gain, 0.0)) / self.size
        self.credits = MEMORY * self.credits + of_piece / of_piece.abs().mean((1, 2), keepdim=True).clamp(min=1e-12)

    def keep(self, log_share: Tensor) -> Tensor:
        """Return masks (rows, time, features) of the best pieces, with shares (rows,) of the editable entries."""
        score = self.credits.gather(1, self.piece)
        for members in self.groups:
            shared = score.index_select(2, members).mean(2, keepdim=True)
            score = score.index_copy(2, members, shared.expand(-1, -1, len(members)))
        score = torch.where(self.editable, score, -torch.inf).flatten(1)
        order = score.argsort(dim=1, descending=True, stable=True)
        n = (log_share.exp() * self.n_entries + 1e-3).floor()
        kept = (torch.arange(score.shape[1], device=score.device) < n[:, None]).to(log_share.dtype)
        return torch.zeros_like(score).scatter_(1, order, kept).reshape(self.piece.shape)

    def _sum(self, values: Tensor) -> Tensor:
        """Return sums over each piece (rows, pieces, features)."""
        B, T, n_features = values.shape
        return values.new_zeros(B, min(PARTS, T), n_features).scatter_add_(1, self.piece, values)


def cut_pieces(change: Tensor) -> Tensor:
    """Return the piece that every entry of changes (rows, time, features) belongs to, counted in each feature.

    Pieces end where the change, smoothed a little, crosses zero; none is shorter than a fourteenth of the series.

    >>> change = torch.tensor([1.0, 2, 1, -1, -2, -1, 1, 1]).reshape(1, 8, 1)
    >>> cut_pieces(change).flatten().tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    T = change.shape[1]
    shortest = max(2, -(-T // PARTS))
    smooth = window_mean(change, SMOOTHED)
    crosses = (smooth[:, 1:] > 0) != (smooth[:, :-1] > 0)
    piece = torch.zeros(change.shape, dtype=torch.int64, device=change.device)
    last = torch.zeros_like(piece[:, 0])
    for t in range(shortest, T - shortest + 1):
        starts = crosses[:, t - 1] & (t - last >= shortest)
        last = torch.where(starts, t, last)
        piece[:, t] = starts
    return piece.cumsum(1).clamp(max=PARTS - 1)
