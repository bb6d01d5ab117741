"""Nearest: the nearest real series of the target class. It needs no training and is the floor of every table."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, differs, length_mask, missing_entries
from sparcets.core.errors import DataError
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import is_within
from sparcets.core.series import blank, fill_gaps
from sparcets.core.settings import NearestConfig
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers, FitJob, Request
from sparcets.models.views import WITHIN, Goal

log = logging.getLogger(__name__)


class Nearest(BaseExplainer[NearestConfig]):
    """The nearest training series that is labelled *and* predicted as the target, made to obey the constraints.

    For a regressor these are the series whose label and prediction both lie within the target.

    Distance is the root mean square over all entries, standardised per feature; of two at the same distance, the one
    that stands first in the training data is taken. A candidate that no longer convinces the classifier once it is
    constrained gives way to the next nearest.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> clf = sp.TorchClassifier("fcn", sp.ClassifierConfig.tiny()).fit(X, y)
    >>> bool(sp.Nearest(clf).fit(X, y).explain(X[:4], target=1).valid.all())
    True
    """

    config_class = NearestConfig
    _numbers = np.zeros((2, 0, 0))  # of a regressor: labels and predictions (2, series, outputs)
    _has_gaps = False  # whether its series have missing values
    supports_lengths = True
    supports_numbers = True

    def _fit(self, job: FitJob) -> None:
        X, y, lengths, info = job.X, job.y, job.lengths, job.info
        if job.numbers is not None:
            self._X, self._y, self._lengths = X.copy(), y, lengths
            self._has_gaps = missing_entries(X) is not None
            self._numbers = np.stack([job.numbers, self.classifier.outputs_unchecked(X, lengths)])
            return
        accepted = self.classifier.predict_unchecked(X, lengths) == y
        if not accepted.any():
            raise DataError(
                f"{self.classifier.name} predicts none of the {len(X)} training series as it is labelled, so there is "
                "no neighbour to offer. Check that model and labels use the same classes, in the same order."
            )
        for k in sorted(set(range(info.n_classes)) - set(y[accepted].tolist())):
            name = info.class_names[k]
            log.warning("no series labelled %r is predicted as such: as a target it will not be found", name)
        self._X = X[accepted].copy()
        self._y = y[accepted]
        self._lengths = None if lengths is None else lengths[accepted]
        self._has_gaps = missing_entries(self._X) is not None

    def _restrict(self, view: Nearest, goal: Goal) -> None:
        inside = is_within(self._numbers[0], goal.bounds) & is_within(self._numbers[1], goal.bounds)
        view._X, view._y = self._X[inside], np.full(int(inside.sum()), WITHIN, dtype=np.int64)
        view._lengths = None if self._lengths is None else self._lengths[inside]
        view._has_gaps = self._has_gaps

    def _explain(self, request: Request) -> Answers:
        B, n = len(request), request.n
        # Best first; unfilled rows keep the best attempt so far.
        best = np.repeat(request.X, n, axis=0).reshape(B, n, *request.X.shape[1:])
        best_p = np.full((B, request.info.n_classes), -1.0)  # probabilities of the best attempt
        found = np.zeros(B, dtype=np.int64)
        ranked = self._ranked_candidates(request)  # (batch, tries), -1 where there are no more
        for k in range(ranked.shape[1]):
            rows = np.flatnonzero((found < n) & (ranked[:, k] >= 0))
            if not len(rows):
                break
            proposal = self._blend(request, rows, ranked[rows, k])
            admitted = request.apply_limits(proposal, rows)
            lengths = None if request.lengths is None else request.lengths[rows]
            proba = self.classifier.outputs_unchecked(admitted, lengths)
            valid = request.is_reached(proba, rows)
            new = valid & ~_already_there(admitted, best[rows], found[rows])
            p = proba[np.arange(len(rows)), request.target[rows]]
            for i in np.flatnonzero(new):
                best[rows[i], found[rows[i]]] = admitted[i]
                found[rows[i]] += 1
            better = ~valid & (found[rows] == 0) & (p > best_p[rows, request.target[rows]])
            best_p[rows[better]] = proba[better]
            best[rows[better], 0] = admitted[better]
        return self._answers(request, best, best_p, found, ranked)

    def _ranked_candidates(self, request: Request) -> IntArray:
        """Return for each query the rows of its candidates, nearest first, -1 where there are no more."""
        tries = min(self.config.candidates * request.n, max(1, len(self._X)))
        ranked = np.full((len(request), tries), -1, dtype=np.int64)
        for k in np.unique(request.target):
            rows = np.flatnonzero(request.target == k)
            candidates = np.flatnonzero(self._y == k)
            if not len(candidates):
                continue
            others = self._series(candidates, request.X.shape[1])
            queries, real = (request.info.scaler.transform(X.astype(np.float64)) for X in (request.X[rows], others))
            lengths = None if request.lengths is None else request.lengths[rows]
            ends = None if self._lengths is None else self._lengths[candidates]
            has_gaps = request.series.gaps is not None or self._has_gaps
            measure = _distances_with_gaps if has_gaps else _distances
            distance = measure(queries, real, lengths, ends)
            # Rounded: the last bits depend on how many queries are multiplied at once, and with them the order of
            # neighbours at the same distance.
            order = np.argsort(distance.astype(np.float32), axis=1, kind="stable")[:, : ranked.shape[1]]
            ranked[rows, : order.shape[1]] = candidates[order]
        return ranked

    def _series(self, candidates: IntArray, n_steps: int) -> FloatArray:
        """Return training series, padded to the steps of queries that are longer than all of them."""
        series: FloatArray = self._X[candidates]
        return series if series.shape[1] == n_steps else blank(series, None, n_steps)

    def _blend(self, request: Request, rows: IntArray, candidates: IntArray) -> FloatArray:
        """Put each candidate in its query's place; where it has ended already, or has no value, the query stays."""
        proposal = self._series(candidates, request.X.shape[1])
        ends = None if self._lengths is None else self._lengths[candidates]
        if self._has_gaps:
            proposal = fill_gaps(proposal, lengths=ends)
            proposal = np.where(np.isnan(proposal), request.X[rows], proposal)
        if ends is None:
            return proposal
        there = length_mask(ends, len(rows), proposal.shape[1])
        return np.where(there[..., None], proposal, request.X[rows])

    def _answers(
        self, request: Request, best: FloatArray, best_p: FloatArray, found: IntArray, ranked: IntArray
    ) -> Answers:
        B, n = len(request), request.n
        filled = np.arange(n)[None] < found[:, None]  # (batch, n)
        status = np.where(filled, "neighbour", "not_found")
        reason = np.full((B, n), "", dtype=object)
        needed = self._shares_needed(request, np.flatnonzero((found == 0) & (ranked[:, 0] >= 0)), ranked)
        for i, j in np.argwhere(~filled):
            target = request.info.class_names[int(request.target[i])]
            tried = int((ranked[i] >= 0).sum())
            if found[i]:
                plural = "s" if found[i] > 1 else ""
                reason[i, j] = f"only {found[i]} different answer{plural} among the {tried} nearest {target} series"
                best[i, j] = request.X[i]  # a missing answer does not repeat another
            elif not tried:
                reason[i, j] = f"no training series is both labelled and predicted {target}"
            elif request.at_most is None and not differs(best[i, 0], request.X[i]).any():
                reason[i, j] = f"the constraints undo every change that the {tried} nearest {target} series propose"
            else:
                limits, is_class = request.limits_of(i), request.info.outcome is None
                # The number that a regressor reached is told with all answers.
                reached = f"; the best reached p({target}) = {best_p[i, request.target[i]]:.2f}" if is_class else ""
                model = "classifier" if is_class else "model"
                failed = f"none of the {tried} nearest {target} series convinces the {model}{limits}{reached}"
                reason[i, j] = f"{request.why_missed(i, best_p[i], failed)}{needed[i]}"
                best[i, j] = best[i, 0]
        return Answers(
            counterfactual=best.reshape(B * n, *request.X.shape[1:]), status=status.ravel(), reason=reason.ravel()
        )

    def _shares_needed(self, request: Request, rows: IntArray, ranked: IntArray) -> list[str]:
        """Say for queries that a cap on the entries left without an answer which share the nearest series needs.

        Found by halving: a share that is enough, though not always the smallest.
        """
        words = [""] * len(request)
        if request.at_most is None or not len(rows):
            return words
        proposal = self._blend(request, rows, ranked[rows, 0])
        entries = request.n_free()
        too_few, enough = request.at_most[rows], entries[rows] + 1  # one more than all: nothing known to be enough
        while (enough - too_few > 1).any():
            middle = (too_few + enough) // 2
            at_most = request.at_most.copy()
            at_most[rows] = middle
            admitted = replace(request, at_most=at_most).apply_limits(proposal, rows)
            lengths = None if request.lengths is None else request.lengths[rows]
            convinced = request.is_reached(self.classifier.outputs_unchecked(admitted, lengths), rows)
            enough = np.where(convinced, middle, enough)
            too_few = np.where(convinced, too_few, middle)
        for i, count in zip(rows, enough, strict=True):
            words[i] = "; no share is enough for the nearest"
            if count <= entries[i]:
                percent = np.ceil(1000 * count / entries[i]) / 10  # rounded up, so that asking for it is enough
                words[i] = f"; the nearest needs {percent:g} % of the entries that may change"
        return words

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = {"X": self._X, "y": self._y}
        state |= {} if self._lengths is None else {"lengths": self._lengths}
        return state | ({"numbers": self._numbers} if self._numbers.size else {})

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        X, y, lengths = state["X"], state["y"], state.get("lengths")
        if X.shape[1:] != (info.n_steps, info.n_features) or any(
            len(v) != len(X) for v in (y, lengths) if v is not None
        ):
            raise ValueError(f"series of shape {X.shape} do not fit {info.n_steps} steps, {info.n_features} features")
        self._X, self._y, self._lengths = X, y, lengths
        self._has_gaps = missing_entries(X) is not None
        if info.outcome is not None:
            self._numbers = state["numbers"]
            if self._numbers.shape != (2, len(X), info.outcome.n_outputs):
                raise ValueError(f"numbers of shape {self._numbers.shape} do not fit {len(X)} series")


def _distances(a: FloatArray, b: FloatArray, lengths_a: IntArray | None, lengths_b: IntArray | None) -> FloatArray:
    """Return the mean square difference of every pair over the steps both have: (len(a), len(b)).

    From |a - b|² = |a|² + |b|² - 2ab, so that the pairs cost one matrix product instead of an array of differences.
    """
    n_steps = a.shape[1]
    inside_a = length_mask(lengths_a, len(a), n_steps)[..., None]
    inside_b = length_mask(lengths_b, len(b), n_steps)[..., None]
    a, b = a * inside_a, b * inside_b
    cross = a.reshape(len(a), -1) @ b.reshape(len(b), -1).T
    square_a = (a**2).sum(2) @ inside_b[..., 0].T  # |a|² over the steps that b has
    square_b = inside_a[..., 0] @ (b**2).sum(2).T
    common = inside_a[..., 0].astype(np.float64) @ inside_b[..., 0].T
    return np.asarray(np.maximum(square_a + square_b - 2 * cross, 0.0) / common)


def _distances_with_gaps(
    a: FloatArray, b: FloatArray, lengths_a: IntArray | None, lengths_b: IntArray | None
) -> FloatArray:
    """Return the mean square difference of every pair over the entries both have; infinite if they share none."""
    known_a = ~np.isnan(a) & length_mask(lengths_a, *a.shape[:2])[..., None]
    known_b = ~np.isnan(b) & length_mask(lengths_b, *b.shape[:2])[..., None]
    flat_a, flat_b = (np.where(known, x, 0.0).reshape(len(x), -1) for known, x in ((known_a, a), (known_b, b)))
    has_a, has_b = (known.reshape(len(known), -1).astype(np.float64) for known in (known_a, known_b))
    squares = flat_a**2 @ has_b.T + has_a @ (flat_b**2).T - 2 * flat_a @ flat_b.T
    common = has_a @ has_b.T
    return np.asarray(np.divide(np.maximum(squares, 0.0), common, out=np.full(common.shape, np.inf), where=common > 0))


def _already_there(new: FloatArray, best: FloatArray, found: IntArray) -> BoolArray:
    """Mark new answers (batch, time, features) that equal one of the first ``found`` in best (batch, n, …)."""
    same = ~differs(best, new[:, None]).any((2, 3))  # (batch, n)
    return np.asarray((same & (np.arange(best.shape[1])[None] < found[:, None])).any(1))
