"""What a method is given, to learn from and to answer, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray, StrArray, steps_within
from sparcets.enforcement import BoundConstraints, keep_largest
from sparcets.series_info import SeriesInfo


@dataclass(frozen=True, kw_only=True, eq=False)
class FitJob:
    """What a fit is given, checked.

    Attributes
    ----------
    X, y, lengths
        Training series (batch, time, features) in the data's own units, labels, and true lengths or None.
    info
        Names, units and scale of the data.
    constraints, standing
        The standing constraints, bound to the data; and as the user said them, as plain values.
    checkpoint
        Folder for the state of the training, or None.
    progress
        Whether to draw a progress bar; None draws it on a terminal.
    """

    X: FloatArray
    y: IntArray
    lengths: IntArray | None
    info: SeriesInfo
    constraints: BoundConstraints
    standing: Mapping[str, Any]
    checkpoint: Path | None
    progress: bool | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What is asked of all queries of a call alike.

    Attributes
    ----------
    constraints, said
        What may change, and how; and as the user said it to ``fit`` and to ``explain``, as plain values.
    sparsity
        Largest share of the mutable entries that may change, or None.
    n
        Number of different answers wanted for each query.
    """

    constraints: BoundConstraints
    said: Mapping[str, Any]
    sparsity: float | None
    n: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A batch of queries that are not in their target class yet, with all that limits the answers.

    Attributes
    ----------
    X
        Queries (batch, time, features) in the data's own units.
    target
        Wanted class of each.
    lengths
        True lengths of padded queries, or None.
    constraints
        What may change, and how.
    at_most
        Largest number of entries that may change in each query, or None.
    n
        Number of different answers wanted for each query.
    info
        Names, units and scale of the data.
    """

    X: FloatArray
    target: IntArray
    lengths: IntArray | None
    constraints: BoundConstraints
    at_most: IntArray | None
    n: int
    info: SeriesInfo

    def __len__(self) -> int:
        return len(self.X)

    def mutable_entries(self) -> IntArray:
        """Return the number of entries of each query that could change: its steps times the mutable features."""
        steps = steps_within(self.lengths, len(self.X), self.X.shape[1]).sum(1)
        return np.asarray(steps * int(self.constraints.mutable.sum()), dtype=np.int64)

    def admit(self, proposal: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return proposals as they may be given: cut to the largest changes where there is a cap, then constrained.

        Parameters
        ----------
        proposal
            Series (batch, time, features) for all queries, or for ``rows`` of them.
        rows
            Which queries the proposals belong to.
        """
        rows = np.arange(len(self.X)) if rows is None else rows
        query = self.X[rows]
        lengths = None if self.lengths is None else self.lengths[rows]
        allowed = self.constraints.enforce(query, proposal, lengths)
        if self.at_most is None:
            return allowed
        cut = keep_largest(query, allowed, at_most=self.at_most[rows], scale=self.info.scaler.scale)
        return self.constraints.enforce(query, cut, lengths)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What a method found: ``n`` answers per query, best first, those of one query standing together.

    Attributes
    ----------
    counterfactual
        Series (batch * n, time, features); where nothing was found, the best attempt.
    status
        ``generated``, ``refined``, ``neighbour`` or ``not_found`` for each.
    reason
        Why nothing was found, in words; empty elsewhere.
    proba
        What the user's classifier said of each (batch * n, classes), NaN where it was not asked; None: nowhere.
        Whoever is not asked here is asked by ``explain``.
    """

    counterfactual: FloatArray
    status: StrArray
    reason: StrArray
    proba: FloatArray | None = None

    @classmethod
    def one_each(cls, request: Request, admitted: FloatArray, status: str) -> Answers:
        """Package a method's one answer per query; where more were asked for, the others are ``not_found``.

        Whether an answer holds is not the method's to say: ``explain`` asks the classifier.
        """
        B, n = len(request), request.n
        counterfactual = np.repeat(request.X[:, None], n, axis=1)  # (batch, n, time, features)
        counterfactual[:, 0] = admitted
        first = np.arange(n) == 0
        return cls(
            counterfactual=counterfactual.reshape(B * n, *admitted.shape[1:]),
            status=np.tile(np.where(first, status, "not_found"), B),
            reason=np.tile(np.where(first, "", "this method gives one answer per query"), B),
        )
