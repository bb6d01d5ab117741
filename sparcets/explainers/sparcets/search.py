"""The order in which a query is answered: generated, else refined, else from a real series, else a reason in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.classifiers.base import Classifier
from sparcets.explainers.request import Answers, Request
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.found_answers import FoundAnswers
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explainers.sparcets.operating_point import OperatingPoint, best_residuals
from sparcets.explainers.sparcets.prototypes import NEAREST
from sparcets.explainers.sparcets.prune import drop_negligible, keep_first, rank_changes
from sparcets.training.projection import Projection

STEPS = 80  # of the refinement
LR = 0.05
DISTANCE = 0.3  # weight of ‖δ‖₁ / (T·F) against the cross-entropy of the ensemble
Proposal = tuple[str, IntArray, FloatArray]  # status, rows, series in the data's own units


def answer(request: Request, model: FittedModel, classifier: Classifier, point: OperatingPoint) -> Answers:
    """Answer a batch of queries; the user's own classifier decides whether a proposal is taken.

    Parameters
    ----------
    request
        The queries.
    model
        The fitted model.
    classifier
        The explained one.
    point
        The operating point.
    """
    search = _Search(request, model, classifier, point)
    for status, rows, series in search.proposals():
        search.found.offer(rows, series, status)
    return search.found.answers()


class _Search:
    """Proposals for a batch of queries, in the order in which they are tried."""

    def __init__(self, request: Request, model: FittedModel, classifier: Classifier, point: OperatingPoint) -> None:
        self.request, self.model, self.scale = request, model, point.residual_scale
        self.found = FoundAnswers(request, classifier)
        self.target = torch.as_tensor(request.target, device=model.device)
        self.projection = Projection(request.constraints, request.info.scaler).to(model.device)
        # The default weight first, then its neighbours.
        self.weights = sorted(model.log_sparsity_weights, key=lambda weight: abs(weight - point.log_sparsity_weight))
        standardised = request.info.scaler.transform(request.X).astype(np.float32)
        self.x = torch.as_tensor(standardised, device=model.device)  # (batch, time, features)
        self.start = torch.zeros_like(self.x)  # residuals of the generator, where the refinement starts

    @cached_property
    def nearest(self) -> IntArray:
        """Rows of the nearest prototypes (batch, NEAREST)."""
        return self.model.prototypes.nearest(self.x, self.request.target, NEAREST)

    def proposals(self) -> Iterator[Proposal]:
        """Yield proposals for the queries that still lack an answer."""
        yield from self._generated()
        yield from self._refined()
        yield from self._neighbours()

    def _generated(self) -> Iterator[Proposal]:
        uses_prototype, capped = self.model.generator.uses_prototype, self.request.at_most is not None
        if uses_prototype or capped:  # which prototype, or which of the changes, is best has to be tried
            rows = self.found.incomplete_rows()
            yield "generated", rows, self._series(rows, self._best_residuals(rows))
        ranks = range(NEAREST if uses_prototype else 1)
        tries = [(weight, rank) for weight in self.weights for rank in ranks]
        for number, (weight, rank) in enumerate(tries):
            rows = self.found.incomplete_rows()
            if not len(rows):
                return
            x, target = self.x[rows], self.target[rows]
            prototype = self.model.prototypes.select(self.nearest[rows, rank], x) if uses_prototype else None
            delta = self._project(rows, self.scale * self.model.propose(x, target, weight, prototype))
            if number == 0:
                self.start[rows] = delta
            yield "generated", rows, self._series(rows, self._cap(rows, drop_negligible(delta)))
            left = rows[self.found.n_found[rows] == 0]
            if len(left) and self.request.at_most is None:  # perhaps the negligible changes are needed
                yield "generated", left, self._series(left, delta[np.isin(rows, left)])

    def _best_residuals(self, rows: IntArray) -> Tensor:
        """Return the best residuals of all sparsity weights, scales and, if used, prototypes."""
        x = self.x[rows]
        prototypes: list[Tensor | None] = [None]
        if self.model.generator.uses_prototype:
            prototypes = [self.model.prototypes.select(self.nearest[rows, rank], x) for rank in range(NEAREST)]
        return best_residuals(
            self.model,
            x,
            self.target[rows],
            prototypes=prototypes,
            project=self.projection,
            at_most=self._at_most(rows),
            n_entries=x.shape[1] * int(self.request.constraints.mutable.sum()),
        )

    def _refined(self) -> Iterator[Proposal]:
        for elsewhere in (False, True):
            rows = self.found.incomplete_rows()
            if elsewhere:  # without an earlier answer, this would repeat the first run
                rows = rows[self.found.n_found[rows] > 0]
            if not len(rows):
                return
            free = torch.as_tensor(self._editable(rows, elsewhere=elsewhere), device=self.x.device)
            x, target = self.x[rows], self.target[rows]
            delta = refine(self.model.ensemble, self.projection, x, self.start[rows], target, free)
            yield "refined", rows, self._series(rows, self._prune(rows, delta))

    def _neighbours(self) -> Iterator[Proposal]:
        for rank in range(NEAREST):
            rows = self.found.incomplete_rows()
            if len(rows):
                rows = rows[self.nearest[rows, rank] >= 0]
            if not len(rows):
                return
            x = self.x[rows]
            delta = self._project(rows, self.model.prototypes.select(self.nearest[rows, rank], x) - x)
            yield "neighbour", rows, self._series(rows, self._prune(rows, delta))
            left = rows[self.found.n_found[rows] == 0]
            if len(left) and self.request.at_most is None:
                yield "neighbour", left, self._series(left, delta[np.isin(rows, left)])

    def _project(self, rows: IntArray, delta: Tensor) -> Tensor:
        """Return residuals within the constraints."""
        with torch.no_grad():
            projected: Tensor = self.projection(self.x[rows], delta)
        return projected

    def _prune(self, rows: IntArray, delta: Tensor) -> Tensor:
        """Return residuals that change every entry at first, pruned to what is needed and to the cap."""
        self._record_need(rows, delta)
        return self.model.prune(self.x[rows], delta, self.target[rows], self._at_most(rows))

    def _cap(self, rows: IntArray, delta: Tensor) -> Tensor:
        self._record_need(rows, delta)
        at_most = self._at_most(rows)
        return delta if at_most is None else keep_first(delta, rank_changes(delta), at_most)

    def _at_most(self, rows: IntArray) -> Tensor | None:
        at_most = self.request.at_most
        return None if at_most is None else torch.as_tensor(at_most[rows], device=self.x.device)

    def _record_need(self, rows: IntArray, delta: Tensor) -> None:
        """Record how many changes would be enough without the cap, for the reason where nothing is found within it."""
        unknown = np.flatnonzero(self.found.uncapped_changes[rows] < 0)
        if self.request.at_most is None or not len(unknown):
            return
        some = rows[unknown]
        pruned = self.model.prune(self.x[some], delta[unknown], self.target[some])
        agrees = self.model.ensemble.agreement(self.x[some] + pruned, self.target[some]).cpu().numpy() > 0.5
        count = (pruned != 0).sum((1, 2)).cpu().numpy()
        self.found.uncapped_changes[some] = np.where(agrees, count, -1)

    def _series(self, rows: IntArray, delta: Tensor) -> FloatArray:
        """Return series in the data's own units; where nothing changes, the query's own bits."""
        return self.request.info.scaler.add_delta(self.request.X[rows], delta.cpu().numpy())

    def _editable(self, rows: IntArray, *, elsewhere: bool) -> BoolArray:
        """Return the entries that may change (rows, time, features); ``elsewhere``: not those of earlier answers."""
        free: BoolArray = np.broadcast_to(self.request.constraints.editable, self.x[rows].shape).copy()
        if elsewhere:
            # Missing answers hold the query itself, and so exclude nothing.
            free &= (self.found.series[rows] == self.request.X[rows, None]).all(1)
        return free


def refine(
    ensemble: Ensemble, projection: Projection, x: Tensor, start: Tensor, target: Tensor, free: Tensor
) -> Tensor:
    """Return residuals that convince the ensemble as far as a few gradient steps can, all queries at once.

    Parameters
    ----------
    ensemble
        The classifiers.
    projection
        The constraints.
    x, start
        Queries and the residuals to start from (batch, time, features), standardised.
    target
        Target classes (batch,).
    free
        Entries that may change (batch, time, features).
    """
    delta = (start * free).clone().requires_grad_(True)
    optimiser = torch.optim.Adam([delta], lr=LR)
    for _ in range(STEPS):
        optimiser.zero_grad()
        projected = projection(x, delta * free)
        log_proba = ensemble.log_proba(x + projected)  # (M, B, K)
        losses = torch.stack([F.nll_loss(member, target, reduction="none") for member in log_proba]).mean(0)
        # The losses of the queries share nothing, so the gradient of their sum is each query's own.
        loss = (losses + DISTANCE * projected.abs().mean((1, 2))).sum()
        loss.backward(inputs=[delta])
        optimiser.step()
    with torch.no_grad():
        refined: Tensor = projection(x, delta * free)
    return refined.detach()
