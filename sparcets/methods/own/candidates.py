"""Candidates: the real series that answers may move towards, the choice between proposals, and the best ones so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, differs
from sparcets.core.seeding import generator
from sparcets.core.series import Series
from sparcets.methods.own.ensemble import ASKED, Belief, Ensemble, standardised
from sparcets.methods.own.generator import WINDOW_DIVISOR, window_mean
from sparcets.methods.request import Answers, FitJob, Request, pause
from sparcets.models.base import Classifier
from sparcets.training.device import threads_for

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
    ensemble
        Its selector is asked.
    """

    def __init__(self, request: Request, ensemble: Ensemble) -> None:
        self.request, self.ensemble = request, ensemble
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
        proba = request.classifier.outputs_unchecked(admitted, None)
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
        if request.info.task == "regression":  # the number that was reached is told with all answers
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


PER_CLASS = 200  # prototypes kept per class, at least
MAX_ENTRIES = 2**23  # of all prototypes together: the more there are, the nearer is the nearest
NEAREST = 6  # prototypes tried per query
STARTS = 3  # of them that a search starts from at a time, at most
PROTOTYPE_SEED = "guides"  # name in the seeds; an older word, kept so that the same seed gives the same prototypes


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Training series that are labelled and predicted as their class.

    Attributes
    ----------
    series, classes
        Series, standardised and without gaps, and their classes (n,).
    """

    series: Series
    classes: IntArray

    @classmethod
    def choose(cls, job: FitJob, classifier: Classifier, seed: int) -> Prototypes:
        """Return some series of each class, at random."""
        rng = generator(seed, PROTOTYPE_SEED)
        right = rng.permutation(np.flatnonzero(classifier.predict_unchecked(job.X, job.lengths) == job.y))
        K = job.info.n_classes
        kept = max(PER_CLASS, MAX_ENTRIES // (K * job.X[0].size))
        rows = np.sort(np.concatenate([right[job.y[right] == k][:kept] for k in range(K)]))
        return cls(standardised(job.series[rows], job.info.scaler, gaps=classifier.takes_gaps), job.y[rows])

    def at_length(self, n_steps: int) -> Prototypes:
        """Return the prototypes for queries of ``n_steps`` steps, each resampled to that length.

        A series of the same class that is slower or faster is a series of the class still, from beginning to end.
        """
        if (self.series.steps == n_steps).all():
            return self
        return Prototypes(Series(self.series.resampled(n_steps)), self.classes)

    def __len__(self) -> int:
        return len(self.series)

    def nearest(self, x: Tensor, target: IntArray, n: int) -> IntArray:
        """Return the rows of the ``n`` nearest prototypes of each query's target (batch, n); -1 if there are no more.

        Parameters
        ----------
        x, target
            Standardised queries (batch, time, features) and target classes (batch,).
        n
            How many.
        """
        rows = np.full((len(x), n), -1, dtype=np.int64)
        series = x.reshape(len(x), -1)
        for k in np.unique(target):
            of_class = np.flatnonzero(self.classes == k)
            queries = np.flatnonzero(target == k)
            if not len(of_class):
                continue
            prototypes = torch.as_tensor(self.series.values[of_class], device=x.device).reshape(len(of_class), -1)
            # By differences: by products, the last bits and with them the order of equal ones depend on the number of
            # queries.
            distance = torch.cdist(
                series[torch.as_tensor(queries, device=x.device)].double(),
                prototypes.double(),
                compute_mode="donot_use_mm_for_euclid_dist",
            )
            order = distance.argsort(dim=1, stable=True)[:, :n].cpu().numpy()
            rows[queries[:, None], np.arange(order.shape[1])[None]] = of_class[order]
        return rows

    def select(self, rows: IntArray, x: Tensor) -> Tensor:
        """Return prototypes by their rows (batch, time, features); the query itself where the row is -1."""
        if not len(self):  # a classifier that is wrong about every series leaves no prototypes
            return x
        found = torch.as_tensor(self.series.values[np.maximum(rows, 0)], device=x.device, dtype=x.dtype)
        return torch.where(torch.as_tensor(rows >= 0, device=x.device)[:, None, None], found, x)
