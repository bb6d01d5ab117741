"""FoundAnswers: the answers found so far to a batch of queries, and the reasons where none was found."""

from __future__ import annotations

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.classifiers.base import Classifier
from sparcets.explainers.request import Answers, Request

MAX_OVERLAP = 0.75  # overlap of the changed entries above which two answers count as the same


class FoundAnswers:
    """Up to ``n`` distinct valid answers per query, else the best attempt; the user's classifier decides.

    Parameters
    ----------
    request
        The queries.
    classifier
        The explained one.
    """

    def __init__(self, request: Request, classifier: Classifier) -> None:
        self.request, self.classifier = request, classifier
        B, n = len(request), request.n
        self.n_found = np.zeros(B, dtype=np.int64)
        self.series = np.repeat(request.X[:, None], n, axis=1)  # (batch, n, time, features)
        self.status = np.full((B, n), "not_found", dtype="<U9")
        self.changes = np.zeros((B, n), dtype=np.int64)
        self.proba = np.full((B, n, request.info.n_classes), np.nan)
        self.attempt, self.attempt_proba = request.X.copy(), np.full((B, request.info.n_classes), np.nan)
        self.best_proba = np.full(B, -1.0)
        self.uncapped_changes = np.full(B, -1, dtype=np.int64)  # of an answer that the ensemble accepts

    def incomplete_rows(self) -> IntArray:
        """Return the queries that lack an answer."""
        return np.flatnonzero(self.n_found < self.request.n)

    def offer(self, rows: IntArray, proposal: FloatArray, status: str) -> None:
        """Take the valid and new ones of proposals (rows, time, features) in the data's own units."""
        request = self.request
        admitted = request.apply_limits(proposal, rows)
        lengths = None if request.lengths is None else request.lengths[rows]
        proba = self.classifier.proba_unchecked(admitted, lengths)
        target = request.target[rows]
        p = proba[np.arange(len(rows)), target]
        valid = proba.argmax(1) == target
        closer = ~valid & (p > self.best_proba[rows])
        row = rows[closer]
        self.best_proba[row], self.attempt[row], self.attempt_proba[row] = p[closer], admitted[closer], proba[closer]
        position = self.n_found[rows]
        new = valid & (position < request.n)
        if position.any():
            new &= ~self._is_duplicate(rows, admitted)
        row, position, taken = rows[new], position[new], admitted[new]
        self.series[row, position], self.status[row, position], self.proba[row, position] = taken, status, proba[new]
        self.changes[row, position] = (taken != request.X[row]).sum((1, 2))
        self.n_found[row] += 1

    def _is_duplicate(self, rows: IntArray, admitted: FloatArray) -> BoolArray:
        """Mark proposals that change nearly the same entries as an earlier answer to the same query."""
        query = self.request.X[rows][:, None]
        changed, known = admitted[:, None] != query, self.series[rows] != query  # (rows, 1 or n, time, features)
        overlap = (changed & known).sum((2, 3)) / np.maximum((changed | known).sum((2, 3)), 1)
        return np.asarray(((overlap > MAX_OVERLAP) & (np.arange(self.request.n) < self.n_found[rows, None])).any(1))

    def answers(self) -> Answers:
        """Return the answers, those that change least first, and a reason where there is none."""
        B, n = len(self.request), self.request.n
        if n > 1:
            missing = np.arange(n) >= self.n_found[:, None]
            order = np.argsort(np.where(missing, self.request.X[0].size + 1, self.changes), axis=1, kind="stable")
            each = np.arange(B)[:, None]
            self.series, self.status, self.proba = (v[each, order] for v in (self.series, self.status, self.proba))
        none = self.n_found == 0
        self.series[none, 0], self.proba[none, 0] = self.attempt[none], self.attempt_proba[none]
        reason = np.full((B, n), "", dtype=object)
        for row in self.incomplete_rows():
            have = int(self.n_found[row])
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
            if self.uncapped_changes[row] > request.at_most[row]:
                limits[-1] += f" ({self.uncapped_changes[row] / entries:.2f} of them were enough without that limit)"
        limits += request.constraints.active_kinds()
        within = f" within the constraints ({'; '.join(limits)})" if limits else ""
        reached = max(float(self.best_proba[row]), 0.0)
        return f"no change was found that the classifier calls {name!r}{within}; p({name}) reached {reached:.2f}"
