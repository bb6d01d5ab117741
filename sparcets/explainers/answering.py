"""Answering with the default recipe: generated, else refined, else from a real neighbour, else a reason in words."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.classifiers.base import Classifier
from sparcets.explainers.choosing import choose
from sparcets.explainers.cutting import keep_first, rank_changes, without_faint
from sparcets.explainers.recipe import NEAREST, Recipe
from sparcets.explainers.refining import refine
from sparcets.explainers.request import Answers, Request
from sparcets.trade_off import Place
from sparcets.training.projection import Projection

SAME = 0.75  # of the entries that two answers change, changed by both: then they are one


def answer(request: Request, recipe: Recipe, classifier: Classifier, place: Place) -> Answers:
    """Answer a batch of queries; whatever is offered, the user's own classifier decides whether it is taken.

    Parameters
    ----------
    request
        The queries.
    recipe
        What was fitted.
    classifier
        The user's.
    place
        Where on the trade-off the answers should be.
    """
    search = _Search(request, recipe, classifier, place)
    for status, rows, proposal in search.proposals():
        search.board.offer(rows, proposal, status)
    return search.board.answers()


class _Board:
    """The answers found so far: up to ``n`` distinct valid ones per query, else the best attempt."""

    def __init__(self, request: Request, classifier: Classifier) -> None:
        self.request, self.classifier = request, classifier
        B, n = len(request), request.n
        self.found = np.zeros(B, dtype=np.int64)
        self.series = np.repeat(request.X[:, None], n, axis=1)  # (batch, n, time, features)
        self.status = np.full((B, n), "not_found", dtype="<U9")
        self.changes = np.zeros((B, n), dtype=np.int64)
        self.proba = np.full((B, n, request.info.n_classes), np.nan)
        self.attempt, self.attempt_proba = request.X.copy(), np.full((B, request.info.n_classes), np.nan)
        self.reached = np.full(B, -1.0)
        self.needed = np.full(B, -1, dtype=np.int64)  # changes of an answer that was valid before the cap cut it

    def open_rows(self) -> IntArray:
        """Return the queries that lack an answer."""
        return np.flatnonzero(self.found < self.request.n)

    def offer(self, rows: IntArray, proposal: FloatArray, status: str) -> None:
        """Take what is valid and new among proposals (rows, time, features) in the data's own units."""
        request = self.request
        admitted = request.admit(proposal, rows)
        lengths = None if request.lengths is None else request.lengths[rows]
        proba = self.classifier.predict_proba(admitted, lengths)
        target = request.target[rows]
        p = proba[np.arange(len(rows)), target]
        valid = proba.argmax(1) == target
        closer = ~valid & (p > self.reached[rows])
        row = rows[closer]
        self.reached[row], self.attempt[row], self.attempt_proba[row] = p[closer], admitted[closer], proba[closer]
        place = self.found[rows]
        new = valid & (place < request.n)
        if place.any():
            new &= ~self._already_there(rows, admitted)
        row, place, taken = rows[new], place[new], admitted[new]
        self.series[row, place], self.status[row, place], self.proba[row, place] = taken, status, proba[new]
        self.changes[row, place] = (taken != request.X[row]).sum((1, 2))
        self.found[row] += 1

    def _already_there(self, rows: IntArray, admitted: FloatArray) -> BoolArray:
        """Mark proposals that change nearly the same entries as an answer to the same query: nothing new in them."""
        query = self.request.X[rows][:, None]
        changed, known = admitted[:, None] != query, self.series[rows] != query  # (rows, 1 or n, time, features)
        common = (changed & known).sum((2, 3)) / np.maximum((changed | known).sum((2, 3)), 1)
        return np.asarray(((common > SAME) & (np.arange(self.request.n) < self.found[rows, None])).any(1))

    def answers(self) -> Answers:
        """Return the answers, those that change least first, and a reason where there is none."""
        B, n = len(self.request), self.request.n
        if n > 1:
            missing = np.arange(n) >= self.found[:, None]
            order = np.argsort(np.where(missing, self.request.X[0].size + 1, self.changes), axis=1, kind="stable")
            each = np.arange(B)[:, None]
            self.series, self.status, self.proba = (v[each, order] for v in (self.series, self.status, self.proba))
        none = self.found == 0
        self.series[none, 0], self.proba[none, 0] = self.attempt[none], self.attempt_proba[none]
        reason = np.full((B, n), "", dtype=object)
        for row in self.open_rows():  # those that lack an answer
            have = int(self.found[row])
            only = "only 1 answer was found" if have == 1 else f"only {have} different answers were found"
            reason[row, have:] = only if have else self._reason(row)
        shape = self.request.X.shape[1:]
        return Answers(
            counterfactual=self.series.reshape(B * n, *shape),
            status=self.status.reshape(-1),
            reason=reason.reshape(-1).astype(str),
            proba=self.proba.reshape(B * n, -1),
        )

    def _reason(self, row: int) -> str:
        request = self.request
        name = request.info.class_names[int(request.target[row])]
        limits = []
        if request.at_most is not None:
            entries = max(1, int(request.mutable_entries()[row]))
            limits.append(f"at most {int(request.at_most[row])} of {entries} entries changed")
            if self.needed[row] > request.at_most[row]:
                limits[-1] += f" ({self.needed[row] / entries:.2f} of them were enough without that limit)"
        limits += request.constraints.kinds()
        within = f" within the constraints ({'; '.join(limits)})" if limits else ""
        reached = max(float(self.reached[row]), 0.0)
        return f"no change was found that the classifier calls {name!r}{within}; p({name}) reached {reached:.2f}"


class _Search:
    """What is proposed, in which order."""

    def __init__(self, request: Request, recipe: Recipe, classifier: Classifier, place: Place) -> None:
        self.request, self.recipe, self.loudness = request, recipe, place.loudness
        self.board = _Board(request, classifier)
        self.target = torch.as_tensor(request.target, device=recipe.device)
        self.projection = Projection(request.constraints, request.info.scaler).to(recipe.device)
        # The usual strength first, then its neighbours on the ladder.
        self.strengths = sorted(recipe.strengths, key=lambda s: abs(s - place.strength))
        standardised = request.info.scaler.transform(request.X).astype(np.float32)
        self.x = torch.as_tensor(standardised, device=recipe.device)  # (batch, time, features)
        self.last = torch.zeros_like(self.x)  # the generator's residuals, as far as they were asked for

    @cached_property
    def near(self) -> IntArray:
        """The nearest guides (batch, NEAREST); looked for only where somebody needs them."""
        return self.recipe.nearest_guides(self.x, self.request.target, NEAREST)

    def proposals(self) -> Iterator[tuple[str, IntArray, FloatArray]]:
        """Yield status, rows and series in the data's own units; only for queries that still lack an answer."""
        yield from self._generated()
        yield from self._refined()
        yield from self._neighbours()

    def _generated(self) -> Iterator[tuple[str, IntArray, FloatArray]]:
        guided, capped = self.recipe.generator.guided, self.request.at_most is not None
        if guided or capped:  # one pass is not enough to know which real series, or which of the changes, serve best
            rows = self.board.open_rows()
            yield "generated", rows, self._series(rows, self._chosen(rows))
        ways = range(NEAREST if guided else 1)
        tries = [(strength, way) for strength in self.strengths for way in ways]
        for number, (strength, way) in enumerate(tries):
            rows = self.board.open_rows()
            if not len(rows):
                return
            x, target = self.x[rows], self.target[rows]
            guide = self.recipe.guide_tensors(self.near[rows, way], x) if guided else None
            delta = self._held(rows, self.loudness * self.recipe.propose(x, target, strength, guide))
            if number == 0:
                self.last[rows] = delta
            yield "generated", rows, self._series(rows, self._capped(rows, without_faint(delta)))
            left = np.intersect1d(self.board.open_rows(), rows[self.board.found[rows] == 0])
            if len(left) and self.request.at_most is None:  # perhaps it takes what is faint
                kept = delta[np.isin(rows, left)]
                yield "generated", left, self._series(left, kept)

    def _chosen(self, rows: IntArray) -> Tensor:
        """Return the best residuals of all strengths, and of all guides where some are followed."""
        x = self.x[rows]
        guides: list[Tensor | None] = [None]
        if self.recipe.generator.guided:
            guides = [self.recipe.guide_tensors(self.near[rows, way], x) for way in range(NEAREST)]
        return choose(
            self.recipe,
            x,
            self.target[rows],
            guides=guides,
            hold=self.projection,
            at_most=self._at_most(rows),
            entries=x.shape[1] * int(self.request.constraints.mutable.sum()),
        )

    def _refined(self) -> Iterator[tuple[str, IntArray, FloatArray]]:
        for elsewhere in (False, True):
            rows = self.board.open_rows()
            if elsewhere:  # without an earlier answer, it would be the same descent again
                rows = rows[self.board.found[rows] > 0]
            if not len(rows):
                return
            free = torch.as_tensor(self._editable(rows, elsewhere=elsewhere), device=self.x.device)
            x, target = self.x[rows], self.target[rows]
            delta = refine(self.recipe, self.projection, x, self.last[rows], target, free)
            yield "refined", rows, self._series(rows, self._cut(rows, delta))

    def _neighbours(self) -> Iterator[tuple[str, IntArray, FloatArray]]:
        for way in range(NEAREST):
            rows = self.board.open_rows()
            if len(rows):
                rows = rows[self.near[rows, way] >= 0]
            if not len(rows):
                return
            x = self.x[rows]
            delta = self._held(rows, self.recipe.guide_tensors(self.near[rows, way], x) - x)
            yield "neighbour", rows, self._series(rows, self._cut(rows, delta))
            left = rows[self.board.found[rows] == 0]
            if len(left) and self.request.at_most is None:
                yield "neighbour", left, self._series(left, delta[np.isin(rows, left)])

    def _held(self, rows: IntArray, delta: Tensor) -> Tensor:
        """Return residuals within the constraints."""
        with torch.no_grad():
            held: Tensor = self.projection(self.x[rows], delta)
        return held

    def _cut(self, rows: IntArray, delta: Tensor) -> Tensor:
        """Return what changed everything at first, a descent or a whole real series, cut to what is needed."""
        self._note_what_is_needed(rows, delta)
        return self.recipe.shorten(self.x[rows], delta, self.target[rows], self._at_most(rows))

    def _capped(self, rows: IntArray, delta: Tensor) -> Tensor:
        self._note_what_is_needed(rows, delta)
        at_most = self._at_most(rows)
        return delta if at_most is None else keep_first(delta, rank_changes(delta), at_most)

    def _at_most(self, rows: IntArray) -> Tensor | None:
        at_most = self.request.at_most
        return None if at_most is None else torch.as_tensor(at_most[rows], device=self.x.device)

    def _note_what_is_needed(self, rows: IntArray, delta: Tensor) -> None:
        """Remember how many changes would have been enough, for the reason of those that the cap leaves out."""
        unknown = np.flatnonzero(self.board.needed[rows] < 0)
        if self.request.at_most is None or not len(unknown):
            return
        some = rows[unknown]
        free = self.recipe.shorten(self.x[some], delta[unknown], self.target[some])
        agrees = self.recipe.agreement(self.x[some] + free, self.target[some]).cpu().numpy() > 0.5
        count = (free != 0).sum((1, 2)).cpu().numpy()
        self.board.needed[some] = np.where(agrees, count, -1)

    def _series(self, rows: IntArray, delta: Tensor) -> FloatArray:
        """Return series in the data's own units; where nothing changes, the query's own bits."""
        return self.request.info.scaler.move(self.request.X[rows], delta.cpu().numpy())

    def _editable(self, rows: IntArray, *, elsewhere: bool) -> BoolArray:
        """Return the entries that may change (rows, time, features); ``elsewhere``: not those of earlier answers."""
        free: BoolArray = np.broadcast_to(self.request.constraints.editable, self.x[rows].shape).copy()
        if elsewhere:
            # Places without an answer hold the query itself, and so forbid nothing.
            free &= (self.board.series[rows] == self.request.X[rows, None]).all(1)
        return free
