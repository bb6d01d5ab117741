"""Nearest: the nearest real series of the target class. It needs no training and is the baseline of every table."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.errors import DataError
from sparcets.core.info import SeriesInfo
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, compare_pairs, differs
from sparcets.core.settings import NearestConfig
from sparcets.core.target import is_within
from sparcets.methods.base import BaseExplainer
from sparcets.methods.request import Answers, FitJob, Request

log = logging.getLogger(__name__)


class Nearest(BaseExplainer[NearestConfig]):
    """The nearest training series that is labelled *and* predicted as the target, made to obey the constraints.

    For a regressor, label and prediction both lie within the target.

    Distance is the root mean square over all entries, standardised per feature; of two at the same distance, the
    first in the training data is used. If a candidate is not valid under the constraints, the next nearest is tried.

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
    # Candidates among the training series, and their classes; for a regressor, labels and predictions (2, series,
    # outputs).
    _series: Series
    _y: IntArray
    _numbers: FloatArray
    supports_lengths = True
    supports_numbers = True

    def _fit(self, job: FitJob) -> None:
        y, info = job.y, job.info
        said = self.classifier.outputs_unchecked(job.series)
        if info.outcome:
            self._series, self._y = job.series.with_values(job.X.copy()), y
            self._numbers = np.stack([job.numbers, said])
            return
        accepted = said.argmax(1) == y
        if not accepted.any():
            raise DataError(
                f"{self.classifier.name} predicts none of the {len(job)} training series as it is labelled, so there "
                "is no neighbour to offer. Check that model and labels use the same classes, in the same order."
            )
        for k in sorted(set(range(info.n_classes)) - set(y[accepted].tolist())):
            name = info.class_names[k]
            log.warning("no series labelled %r is predicted as such: as a target it will not be found", name)
        self._series, self._y, self._numbers = job.series[accepted], y[accepted], np.zeros((2, 0, 0))

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
            proba = _proba(request, admitted, rows)
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
        """Return the rows of each query's candidates, nearest first, -1 where there are no more."""
        known, scaler = self._known(request), request.info.scaler
        tries = min(self.config.candidates * request.n, max(1, len(known)))
        ranked = np.full((len(request), tries), -1, dtype=np.int64)
        for k in np.unique(request.target):
            rows = np.flatnonzero(request.target == k)
            candidates = known[self._y[known] == k]
            if not len(candidates):
                continue
            pair = request.series[rows], self._candidates(candidates, request)
            distance = _distances(*(one.with_values(one.values.astype(float)).standardised(scaler) for one in pair))
            # Rounded, because the last bits depend on the number of queries multiplied at once, and would decide the
            # order of neighbours at the same distance.
            order = np.argsort(distance.astype(np.float32), axis=1, kind="stable")[:, : ranked.shape[1]]
            ranked[rows, : order.shape[1]] = candidates[order]
        return ranked

    def _known(self, request: Request) -> IntArray:
        """Return the candidates for a request and their classes: for a regressor, those within the goal, as class 0."""
        if request.goal is None:
            return np.arange(len(self._series))
        labels, said = self._numbers
        return np.flatnonzero(is_within(labels, request.goal.bounds) & is_within(said, request.goal.bounds))

    def _candidates(self, rows: IntArray, request: Request) -> Series:
        """Return training series, padded to the steps of queries that are longer than all of them."""
        series = self._series[rows]
        return series if series.n_steps == request.series.n_steps else series.padded(request.series.n_steps)

    def _blend(self, request: Request, rows: IntArray, candidates: IntArray) -> FloatArray:
        """Replace each query by its candidate; where that has ended or has no value, the query's value stays."""
        proposal = self._candidates(candidates, request).filled()
        return np.where(proposal.measured, proposal.values, request.X[rows])

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
                failed = f"none of the {tried} nearest {target} series convinces {request.attempt_words(i, best_p[i])}"
                reason[i, j] = f"{request.why_missed(i, best_p[i], failed)}{needed[i]}"
                best[i, j] = best[i, 0]
        return Answers(
            counterfactual=best.reshape(B * n, *request.X.shape[1:]), status=status.ravel(), reason=reason.ravel()
        )

    def _shares_needed(self, request: Request, rows: IntArray, ranked: IntArray) -> list[str]:
        """Describe the share of entries that the nearest series needs, for queries without an answer under the cap.

        It is found by bisection: the share is enough, but not always the smallest.
        """
        words = [""] * len(request)
        if request.at_most is None or not len(rows):
            return words
        proposal = self._blend(request, rows, ranked[rows, 0])
        entries = request.n_free()
        too_few, enough = request.at_most[rows], entries[rows] + 1  # one more than all: no known share is enough
        while (enough - too_few > 1).any():
            middle = (too_few + enough) // 2
            at_most = request.at_most.copy()
            at_most[rows] = middle
            admitted = replace(request, at_most=at_most).apply_limits(proposal, rows)
            convinced = request.is_reached(_proba(request, admitted, rows), rows)
            enough = np.where(convinced, middle, enough)
            too_few = np.where(convinced, too_few, middle)
        for i, count in zip(rows, enough, strict=True):
            words[i] = "; no share is enough for the nearest"
            if count <= entries[i]:
                percent = np.ceil(1000 * count / entries[i]) / 10  # rounded up, so that passing it is enough
                words[i] = f"; the nearest needs {percent:g} % of the entries that may change"
        return words

    def _state(self) -> dict[str, Any]:
        state = {"X": self._series.values, "y": self._y, "lengths": self._series.lengths}
        state |= {"numbers": self._numbers} if self._numbers.size else {}
        return {name: array for name, array in state.items() if array is not None}

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        X, n = state["X"], len(state["X"])
        expected = {"X": (n, info.n_steps, info.n_features), "y": (n,), "lengths": (n,)}
        if info.outcome:
            expected["numbers"] = (2, n, info.outcome.n_outputs)
        other = {name: array.shape for name, array in state.items() if array.shape != expected.get(name)}
        if other or not expected.keys() - {"lengths"} <= state.keys():
            raise ValueError(f"arrays of shapes {other} do not fit {n} series, {info.n_steps} steps, {info.predicts}")
        self._series, self._y = Series(X, state.get("lengths")), state["y"]
        self._numbers = state.get("numbers", np.zeros((2, 0, 0)))


def _proba(request: Request, made: FloatArray, rows: IntArray) -> FloatArray:
    """Return the explained model's probabilities for proposals for some of the queries."""
    return request.classifier.outputs_unchecked(request.series[rows].with_values(made))


def _distances(a: Series, b: Series) -> FloatArray:
    """Return the mean square difference of every pair over shared entries; infinite if there are none."""
    squares, _, common = compare_pairs(a, b)
    return np.asarray(np.divide(np.maximum(squares, 0.0), common, out=np.full(common.shape, np.inf), where=common > 0))


def _already_there(new: FloatArray, best: FloatArray, found: IntArray) -> BoolArray:
    """Mark new answers (batch, time, features) that equal one of the first ``found`` in best (batch, n, …)."""
    same = ~differs(best, new[:, None]).any((2, 3))  # (batch, n)
    return np.asarray((same & (np.arange(best.shape[1])[None] < found[:, None])).any(1))
