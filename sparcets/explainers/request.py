"""The data classes that pass between the base class and a method: a fit, a call, a batch of queries, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    StrArray,
    count_measured,
    differs,
    is_integer,
    is_number,
    missing_entries,
)
from sparcets.constraints.enforcement import BoundConstraints, keep_largest
from sparcets.constraints.spec import Constraints
from sparcets.errors import CapabilityError, ConfigError, ConstraintError, TargetError
from sparcets.explanation.evidence import Evidence, is_reached
from sparcets.explanation.series_info import SeriesInfo
from sparcets.padding import blank
from sparcets.targets import NumberTarget, check_confidence
from sparcets.validation import check_target


@dataclass(frozen=True, kw_only=True, eq=False)
class FitJob:
    """The checked arguments of one ``fit``.

    Attributes
    ----------
    X, y, lengths
        Training series (batch, time, features) in the data's own units, labels, and true lengths or None.
    info
        Names, units and scale of the data.
    numbers
        For a regressor, the labels (batch, outputs), and ``y`` are all 0; else None.
    target
        Index of the one class that the method is fitted for, or None for every class.
    constraints, constraints_given
        The standing constraints, bound to the data; and as the user gave them, as plain values.
    checkpoint
        Folder for the state of the training, or None.
    progress
        Whether to draw a progress bar; None draws it on a terminal and in a notebook.
    """

    X: FloatArray
    y: IntArray
    lengths: IntArray | None
    info: SeriesInfo
    target: int | None
    constraints: BoundConstraints
    constraints_given: Mapping[str, Any]
    checkpoint: Path | None
    progress: bool | None
    numbers: FloatArray | None = None

    def first(self, n: int) -> tuple[FloatArray, IntArray | None]:
        """Return the first ``n`` training series, and their lengths or None."""
        return self.X[:n], self.steps(np.arange(min(n, len(self.X))))

    def standardised(self, rows: IntArray | None = None) -> FloatArray:
        """Return all or some training series, standardised, with zeros as padding."""
        X, lengths = (self.X, self.lengths) if rows is None else (self.X[rows], self.steps(rows))
        x = self.info.scaler.transform(X)
        return x if lengths is None else blank(x, lengths)

    def steps(self, rows: IntArray) -> IntArray | None:
        """Return the lengths of some training series, or None."""
        return None if self.lengths is None else self.lengths[rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class CallOptions:
    """The arguments of one ``explain`` that hold for all of its queries.

    Attributes
    ----------
    constraints, constraints_given
        All constraints in force, as arrays (``mutable`` features, ``editable`` entries (time, features), …); and as the
        user gave them to ``fit`` and to ``explain``.
    sparsity
        Largest share of the mutable entries that may change, or None.
    n
        Number of different answers per query.
    curve
        Whether to measure how few changes are enough.
    confidence
        The least probability that counts as reached, or None.
    excluded
        If any class but one is asked for, the index of that one.
    goals
        For a regressor, the targets that the call asks for; those of the queries are indices of them.
    """

    constraints: BoundConstraints
    constraints_given: Mapping[str, Any]
    sparsity: float | None = None
    n: int = 1
    curve: bool = False
    confidence: float | None = None
    excluded: int | None = None
    goals: tuple[NumberTarget, ...] = ()

    @classmethod
    def standing(cls, constraints: Constraints, info: SeriesInfo) -> CallOptions:
        """Return the options of a call without arguments: only the constraints given to ``fit`` hold."""
        as_given = {"fit": constraints.to_dict(), "explain": Constraints().to_dict()}
        return cls(constraints=constraints.bind(info), constraints_given=as_given)

    def for_call(
        self,
        constraints: Any,
        info: SeriesInfo,
        *,
        sparsity: Any,
        n: Any,
        curve: Any = False,
        confidence: Any = None,
    ) -> CallOptions:
        """Check the arguments of ``explain`` and return the options of that call.

        Parameters
        ----------
        constraints
            Those of the call, or None.
        info
            The data that they are bound to.
        sparsity, n, curve, confidence
            As in ``explain``.
        """
        if not is_integer(n) or n < 1:
            raise ConfigError(f"n must be a whole number >= 1, got {n!r}.")
        if sparsity is not None and not (is_number(sparsity) and 0 < sparsity <= 1):
            raise ConfigError(f"sparsity must be a share in (0, 1], got {sparsity!r}.")
        if not isinstance(curve, (bool, np.bool_)):
            raise ConfigError(f"curve must be True or False, got {curve!r}.")
        bound, as_given = self.constraints, self.constraints_given
        if constraints is not None:
            given = check_constraints(constraints)
            bound = bound.combine(given.bind(info))
            as_given = {**as_given, "explain": given.to_dict()}
        if not bound.editable.any():
            raise ConstraintError(
                "the constraints given to fit and to explain together leave nothing that may change; loosen one."
            )
        return replace(
            self,
            constraints=bound,
            constraints_given=as_given,
            sparsity=sparsity,
            n=int(n),
            curve=bool(curve),
            confidence=None if confidence is None else check_confidence(confidence),
        )

    def request(self, X: FloatArray, target: IntArray, lengths: IntArray | None, info: SeriesInfo) -> Request:
        """Return the request of a batch of queries (batch, time, features) with these options."""
        request = Request(
            X=X,
            target=target,
            lengths=lengths,
            constraints=self.constraints,
            at_most=None,
            n=self.n,
            info=info,
            confidence=self.confidence,
            gaps=missing_entries(X),
        )
        if self.sparsity is None:
            return request
        # Rounded down with a tolerance: 0.1 of 30 entries are 3, though the product may be 2.99….
        entries = request.mutable_entries() * self.sparsity
        return replace(request, at_most=np.floor(entries + 1e-9).astype(np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryBlock:
    """Consecutive queries of one ``explain``.

    Attributes
    ----------
    number, first
        Index of the block among all blocks, and of its first query among all queries.
    X, target, lengths
        Checked series (batch, time, features), target classes (batch,), None for the runner-up, and lengths or None.
    """

    number: int
    first: int
    X: FloatArray
    target: IntArray | None
    lengths: IntArray | None

    def batches(self, size: int) -> Iterator[QueryBlock]:
        """Yield the block in parts of at most ``size`` queries."""
        for start in range(0, len(self.X), size):
            rows = slice(start, start + size)
            target = None if self.target is None else self.target[rows]
            lengths = None if self.lengths is None else self.lengths[rows]
            yield replace(self, first=self.first + start, X=self.X[rows], target=target, lengths=lengths)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A batch of queries that are not in their target class yet, with all that limits the answers.

    Attributes
    ----------
    X
        Queries (batch, time, features) in the data's own units.
    target
        Target class of each.
    lengths
        True lengths of padded queries, or None.
    constraints
        What may change, and how.
    at_most
        Largest number of entries of each query that may change, or None.
    n
        Number of different answers per query.
    info
        Names, units and scale of the data.
    confidence
        The least probability of the target that counts as reached, or None.
    gaps
        Entries (batch, time, features) that are missing, NaN in ``X``; None if there are none.
    """

    X: FloatArray
    target: IntArray
    lengths: IntArray | None
    constraints: BoundConstraints
    at_most: IntArray | None
    n: int
    info: SeriesInfo
    confidence: float | None = None
    gaps: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.X)

    def mutable_entries(self) -> IntArray:
        """Return the number of entries of each query that could change: the measured ones of mutable features."""
        return count_measured(self.X, self.lengths, self.constraints.mutable, self.gaps)

    def is_reached(self, proba: FloatArray, rows: IntArray | None = None) -> BoolArray:
        """Return whether probabilities (rows, classes) of answers reach the targets of their queries."""
        return is_reached(proba, self.target if rows is None else self.target[rows], self.confidence)

    def select(self, rows: IntArray) -> Request:
        """Return the request for some of the queries."""
        return replace(
            self,
            X=self.X[rows],
            target=self.target[rows],
            lengths=None if self.lengths is None else self.lengths[rows],
            at_most=None if self.at_most is None else self.at_most[rows],
            gaps=None if self.gaps is None else self.gaps[rows],
        )

    def cut(self, rows: IntArray, n_steps: int) -> Request:
        """Return the request for some of the queries, all of one length, without their padding."""
        of_rows = self.select(rows)
        series = np.ascontiguousarray(of_rows.X[:, :n_steps])
        gaps = None if of_rows.gaps is None else of_rows.gaps[:, :n_steps]
        return replace(of_rows, X=series, lengths=None, constraints=self.constraints.cut(n_steps), gaps=gaps)

    def why_rejected(self, i: int, counterfactual: FloatArray, proba: FloatArray) -> str:
        """Return why an answer (time, features) to query ``i`` is not valid, by its probabilities (classes,)."""
        target = int(self.target[i])
        limits = "" if self.at_most is None else f" within {int(self.at_most[i])} changed entries"
        wanted = "" if self.confidence is None else f", not {self.confidence:g}"
        reached = f": p({self.info.class_names[target]}) reached {proba[target]:.2f}{wanted}"
        if self.info.outcome is not None:
            reached = ""  # the number that a regressor reached is told with all answers
        moved = differs(counterfactual, self.X[i]).any()
        nothing = "" if moved else "; the method changes nothing that may be changed here"
        return f"the answer did not convince the classifier{limits}{reached}{nothing}"

    def apply_limits(self, proposal: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return proposals that obey the cap (the largest changes are kept) and the constraints.

        Parameters
        ----------
        proposal
            Series (batch, time, features) for all queries, or for ``rows`` of them.
        rows
            Indices of the queries that the proposals belong to.
        """
        rows = np.arange(len(self.X)) if rows is None else rows
        query = self.X[rows]
        lengths = None if self.lengths is None else self.lengths[rows]
        gaps = None if self.gaps is None else self.gaps[rows]
        if self.at_most is None:
            return self.constraints.enforce(query, proposal, lengths, gaps=gaps)
        at_most, before = self.at_most[rows], replace(self.constraints, project=None)  # that one comes last
        allowed = before.enforce(query, proposal, lengths, gaps=gaps)
        cut = keep_largest(query, allowed, at_most=at_most, scale=self.info.scaler.scale)
        cut = self.constraints.enforce(query, cut, lengths, gaps=gaps, complete=False)
        if self.constraints.project is not None:  # which may have changed more entries
            few = differs(cut, query).sum((1, 2)) <= at_most
            cut = np.where(few[:, None, None], cut, query)
        return cut


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """What a method found: ``n`` answers per query, best first, grouped by query.

    Attributes
    ----------
    counterfactual
        Series (batch * n, time, features); where nothing was found, the best attempt.
    status
        ``generated``, ``refined``, ``neighbour`` or ``not_found`` for each.
    reason
        Why nothing was found, in words; empty elsewhere.
    proba
        Probabilities by the user's classifier (batch * n, classes), NaN in rows that it has not predicted yet; None if
        in no row. ``explain`` predicts the missing rows.
    families, support
        Names of the families that were asked, and the share of each that agrees (batch * n, families), NaN in rows that
        they were not asked about; None if in no row.
    """

    counterfactual: FloatArray
    status: StrArray
    reason: StrArray
    proba: FloatArray | None = None
    families: tuple[str, ...] = ()
    support: FloatArray | None = None

    @classmethod
    def one_each(cls, request: Request, admitted: FloatArray, status: str) -> Answers:
        """Package a method's one answer per query; if more were requested, the others are ``not_found``.

        Whether an answer is valid is decided by ``explain``, which asks the classifier.
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

    def evidence(self, n_answers: int, rows: IntArray) -> Evidence:
        """Return what families have said of these answers, which are the given rows of all; NaN in the others."""
        if self.support is None:
            return Evidence.none(n_answers)
        support = np.full((n_answers, len(self.families)), np.nan)
        support[rows] = self.support
        return Evidence(families=self.families, support=support)


def check_targets(
    target: Any, *, n_queries: int, class_names: Sequence[str], own: int | None, owner: str
) -> IntArray | None:
    """Return the target class of each query (batch,), None for the runner-up; ``own`` is the only one of a fit."""
    if target is None:
        return None if own is None else np.full(n_queries, own)
    targets = check_target(target, n_queries=n_queries, class_names=class_names)
    if own is not None and (targets != own).any():
        raise TargetError(
            f"this {owner} was fitted for the target {class_names[own]!r} alone. "
            "Ask for that, or fit one with target=None for every class."
        )
    return targets


def check_constraints(constraints: Any) -> Constraints:
    """Return the constraints that a user passed; none where None was passed."""
    if constraints is None:
        return Constraints()
    if not isinstance(constraints, Constraints):
        raise ConfigError(f"constraints must be sp.Constraints(...), got {type(constraints).__name__}.")
    return constraints


def check_lengths_supported(lengths: Any, n_steps: int, explainer: Any) -> Any:
    """Return true lengths, or None if nothing is padded; raise if the method does not support them."""
    if lengths is None or np.all(np.asarray(lengths) == n_steps):
        return None
    if not explainer.supports_lengths:
        raise CapabilityError(
            f"{type(explainer).__name__} does not support series of unequal length. Cut or resample them to one "
            "length, or use another method."
        )
    return lengths
