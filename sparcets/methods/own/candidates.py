"""FoundAnswers: the best answers found so far to a batch of queries, and the reasons where none was found."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, differs
from sparcets.methods.own.ensemble import Belief, Ensemble
from sparcets.methods.own.generator import WINDOW_DIVISOR, window_mean
from sparcets.methods.request import Answers, Request
from sparcets.models.base import Classifier

MAX_OVERLAP = 0.75  # overlap of the changed entries above which two answers count as the same
BELIEVED, VALID = 2.0, 1.0  # ranks of an answer that all families believe, and of one that is valid
MAX_PRICE = 1.6  # an answer that is believed with a lead may change so many times the entries of one without


class FoundAnswers:
    """The ``n`` best distinct answers per query; the user's classifier decides what is valid, the selector the rest.

    Of the answers that are believed, the one with the fewest changes is best; one that is believed with a lead may have
    more. Where none is believed by all families, it is the valid one that most of them believe, with the fewest
    changes; where none is valid, the one nearest to it.

    Parameters
    ----------
    request
        The queries.
    classifier
        The explained one.
    ensemble
        Its selector is asked.
    """

    def __init__(self, request: Request, classifier: Classifier, ensemble: Ensemble) -> None:
        self.request, self.classifier, self.ensemble = request, classifier, ensemble
        B, n = len(request), request.n
        self.rank = np.full((B, n), -1.0)  # of each answer; larger is better, below VALID it is none
        self.series = np.repeat(request.X[:, None], n, axis=1)  # (batch, n, time, features)
        self.status = np.full((B, n), "not_found", dtype="<U9")
        self.proba = np.full((B, n, request.info.n_classes), np.nan)
        self.support = np.full((B, n, len(ensemble.selector.families)), np.nan)  # of each answer, by family
        self.n_convincing = np.zeros(B, dtype=np.int64)  # proposals that are believed with a lead

    def missing(self) -> IntArray:
        """Return the queries that lack a valid answer."""
        return np.flatnonzero((self.rank < VALID).any(1))

    def unconvincing(self) -> IntArray:
        """Return the queries that lack answers that are believed with a lead."""
        return np.flatnonzero(self.is_unconvincing())

    def is_unconvincing(self) -> BoolArray:
        """Mark the queries that lack answers that are believed with a lead (batch,)."""
        return (self.n_convincing < self.request.n) | (self.rank < BELIEVED).any(1)

    def offer(self, rows: IntArray, proposal: FloatArray, status: str, belief: Belief | None = None) -> None:
        """Take proposals that are better than what was found.

        Parameters
        ----------
        rows
            The query of each proposal; one may occur several times, all are asked about in one pass.
        proposal
            Series (rows, time, features) in the data's own units.
        status
            Of the answers that they become.
        belief
            What the families say of the proposals, if they were asked already.
        """
        if not len(rows):
            return
        request = self.request
        admitted = request.apply_limits(proposal, rows)
        lengths = None if request.lengths is None else request.lengths[rows]
        proba = self.classifier.outputs_unchecked(admitted, lengths)
        valid = request.is_reached(proba, rows)
        if belief is None or self._altered(proposal, admitted):
            belief = self._ask(rows, admitted, valid)
        rank = self._rank(rows, admitted, proba, valid, belief)
        support = belief.support.cpu().double().numpy()
        np.add.at(self.n_convincing, rows, belief.convincing.cpu().numpy() & valid)
        if request.n == 1:
            # The best proposal of each query; of equal ones, the first.
            order = np.lexsort((np.arange(len(rows)), -rank, rows))
            best = order[np.unique(rows[order], return_index=True)[1]]
            best = best[rank[best] > self.rank[rows[best], 0]]
            row = rows[best]
            self.rank[row, 0], self.series[row, 0], self.proba[row, 0] = rank[best], admitted[best], proba[best]
            self.support[row, 0] = np.where(valid[best, None], support[best], np.nan)
            self.status[row, 0] = np.where(rank[best] >= VALID, status, "not_found")
            return
        for i, row in enumerate(rows):
            self._insert(int(row), admitted[i], proba[i], support[i], float(rank[i]), status)

    def _altered(self, proposal: FloatArray, admitted: FloatArray) -> bool:
        """Return whether the limits changed proposals by more than what counts as no change at all."""
        return bool((np.abs(admitted - proposal) > self.request.constraints.tolerance).any())

    def _ask(self, rows: IntArray, admitted: FloatArray, valid: BoolArray) -> Belief:
        """Return what the families say of valid proposals; the others have no support."""
        ensemble = self.ensemble
        wanted = torch.as_tensor(self.request.target[rows[valid]], device=ensemble.device)
        said = ensemble.believe(ensemble.standardise(admitted[valid]), wanted)
        where = torch.as_tensor(valid, device=ensemble.device)
        support, margin = said.support.new_zeros(2, len(rows), said.support.shape[1])
        support[where], margin[where] = said.support, said.margin
        return Belief(support, margin, said.lead)

    def _rank(
        self, rows: IntArray, admitted: FloatArray, proba: FloatArray, valid: BoolArray, belief: Belief
    ) -> FloatArray:
        """Return how good proposals are (rows,)."""
        own = proba[np.arange(len(rows)), self.request.target[rows]]
        share = differs(admitted, self.request.X[rows]).mean((1, 2))
        on_device = [torch.as_tensor(values, device=self.ensemble.device) for values in (own, valid, share)]
        rank: FloatArray = rank_answers(on_device[0], on_device[1], belief, on_device[2]).cpu().numpy()
        return rank

    def _insert(
        self, row: int, series: FloatArray, proba: FloatArray, support: FloatArray, rank: float, status: str
    ) -> None:
        """Put one answer in the place of the worst, or of one that changes nearly the same entries."""
        position = int(self.rank[row].argmin())
        if rank >= VALID:
            same = self._is_same(row, series)
            if same.any():  # better than all of them, or not at all
                position = int(np.where(same, self.rank[row], -np.inf).argmax())
        elif (self.rank[row] >= VALID).any():
            return
        if rank > self.rank[row, position]:
            self.rank[row, position], self.series[row, position], self.proba[row, position] = rank, series, proba
            self.support[row, position] = support if rank >= VALID else np.nan
            self.status[row, position] = status if rank >= VALID else "not_found"

    def _is_same(self, row: int, series: FloatArray) -> BoolArray:
        """Mark the valid answers to a query that change nearly the same entries as another (n,)."""
        query = self.request.X[row]
        changed, known = differs(series, query), differs(self.series[row], query)  # (time, features), (n, …)
        overlap = (changed & known).sum((1, 2)) / np.maximum((changed | known).sum((1, 2)), 1)
        return np.asarray((overlap > MAX_OVERLAP) & (self.rank[row] >= VALID))

    def answers(self) -> Answers:
        """Return the answers, the best first, and a reason where there is none."""
        B, n = len(self.request), self.request.n
        order = np.argsort(-self.rank, axis=1, kind="stable")
        each = np.arange(B)[:, None]
        found = (self.rank, self.series, self.status, self.proba, self.support)
        rank, series, status, proba, support = (values[each, order] for values in found)
        reason = np.full((B, n), "", dtype=object)
        for row in self.missing():
            have = int((rank[row] >= VALID).sum())
            only = "only 1 answer was found" if have == 1 else f"only {have} different answers were found"
            reason[row, have:] = only if have else "not even one answer was found; the first has the best attempt"
            if not have:
                reason[row, 0] = self._reason(row)
            series[row, max(1, have) :] = self.request.X[row]  # further attempts are not answers
            proba[row, max(1, have) :] = np.nan
            support[row, have:] = np.nan
        shape = self.request.X.shape[1:]
        return Answers(
            counterfactual=series.reshape(B * n, *shape),
            status=status.reshape(-1),
            reason=reason.reshape(-1).astype(str),
            proba=proba.reshape(B * n, -1),
            families=self.ensemble.selector.families,
            support=support.reshape(B * n, -1),
        )

    def _reason(self, row: int) -> str:
        request, proba = self.request, self.proba[row, int(self.rank[row].argmax())]  # of the best attempt
        name, within = request.info.class_names[int(request.target[row])], request.limits_of(row)
        if request.info.outcome is not None:  # the number that was reached is told with all answers
            return request.why_missed(row, proba, f"no change was found that brings the model to {name}{within}")
        p = float(np.nan_to_num(proba[int(request.target[row])]))
        failed = f"no change was found that the classifier calls {name!r}{within}; p({name}) reached {p:.2f}"
        return request.why_missed(row, proba, failed)


def rank_answers(proba: Tensor, valid: Tensor, belief: Belief, share: Tensor) -> Tensor:
    """Return how good answers are (answers,); larger is better.

    Parameters
    ----------
    proba, valid
        Probability of the target by the explained classifier, and whether it is the prediction (answers,).
    belief
        What the families say of them.
    share
        Share of entries changed (answers,).
    """
    changed = share.double()
    paid = torch.where(belief.convincing, changed / MAX_PRICE, changed)
    n_families = belief.support.shape[1]
    doubted = VALID + 0.99 * (belief.n_believing.double() + 1 - changed) / (n_families + 1)
    return torch.where(
        valid, torch.where(belief.believed, BELIEVED + 0.99 * (1 - paid), doubted), 0.99 * proba.double()
    )


NEGLIGIBLE = 0.13  # standard deviations; a window whose mean change is smaller is not reported


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
