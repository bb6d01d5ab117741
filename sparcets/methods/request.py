"""The data classes that pass between the base class and a method: a fit, a call, a batch of queries, answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    StrArray,
    differs,
    is_integer,
    is_number,
)
from sparcets.core.constraints import Constraints
from sparcets.core.enforcement import BoundConstraints, keep_largest
from sparcets.core.errors import (
    CapabilityError,
    ConfigError,
    ConstraintError,
    DataError,
    ShapeError,
    TargetError,
    quoted,
)
from sparcets.core.evidence import Evidence
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import is_reached
from sparcets.core.series import Series
from sparcets.core.side_inputs import SideInputs, one_side
from sparcets.core.target import NumberTarget, check_confidence, check_target
from sparcets.core.validation import check_ids
from sparcets.core.words import share_from, unsure_words
from sparcets.data.dataset import Dataset
from sparcets.models.base import Model

MOST_ANSWERS = 1_000_000  # to one query


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """What a method is given: series in the data's own units, and what is asked about them."""

    series: Series

    def __len__(self) -> int:
        return len(self.series)

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """Values of the series (batch, time, features)."""
        return self.series.values

    @property
    def lengths(self) -> IntArray | None:
        """True lengths of padded series, or None."""
        return self.series.lengths


@dataclass(frozen=True, kw_only=True, eq=False)
class FitJob(_Batch):
    """The checked arguments of one ``fit``.

    Attributes
    ----------
    series, y
        Training series in the data's own units, and their labels (batch,).
    info
        Names, units and scale of the data.
    numbers
        For a regressor, the labels (batch, outputs), and ``y`` are all 0; else None.
    subjects
        The recorded person of each series (batch,), as a Dataset knows them; else None.
    target
        Index of the one class that the method is fitted for, or None for every class.
    constraints, constraints_given
        The standing constraints, bound to the data; and as the user gave them, as plain values.
    checkpoint
        Folder for the state of the training, or None.
    progress
        Whether to draw a progress bar; None draws it on a terminal and in a notebook.
    """

    y: IntArray
    info: SeriesInfo
    target: int | None
    constraints: BoundConstraints
    constraints_given: Mapping[str, Any]
    checkpoint: Path | None
    progress: bool | None
    numbers: FloatArray | None = None
    subjects: np.ndarray[Any, Any] | None = None

    def first(self, n: int) -> tuple[FloatArray, IntArray | None]:
        """Return the first ``n`` training series, and their lengths or None."""
        return self.X[:n], self.series[:n].lengths

    def standardised(self, rows: IntArray | None = None) -> FloatArray:
        """Return all or some training series, standardised, with zeros as padding."""
        return (self.series if rows is None else self.series[rows]).standardised(self.info.scaler).values

    def steps(self, rows: IntArray) -> IntArray | None:
        """Return the lengths of some training series, or None."""
        return self.series[rows].lengths

    def subjects_of(self, rows: IntArray) -> np.ndarray[Any, Any] | None:
        """Return the subjects of some training series, or None."""
        return None if self.subjects is None else self.subjects[rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class CallOptions:
    """The arguments of one ``explain`` that hold for all of its queries.

    Attributes
    ----------
    constraints, constraints_given
        All constraints in force, as arrays (``mutable`` features, ``editable`` entries (time, features), …); and as the
        user gave them to ``fit`` and to ``explain``.
    sparsity
        Largest share that changes of the entries that may change, or None.
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
            raise ConfigError(f"n must be a whole number >= 1, got {quoted(n)}.")
        if n > MOST_ANSWERS:
            raise ConfigError(f"n must be at most {MOST_ANSWERS:,}, got {quoted(n)}.")
        if sparsity is not None and not (is_number(sparsity) and 0 < sparsity <= 1):
            raise ConfigError(f"sparsity must be a share in (0, 1], got {quoted(sparsity)}.")
        if not isinstance(curve, (bool, np.bool_)):
            raise ConfigError(f"curve must be True or False, got {quoted(curve)}.")
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

    def request(self, series: Series, target: IntArray, info: SeriesInfo) -> Request:
        """Return the request of a batch of queries with these options."""
        request = Request(
            series=series,
            target=target,
            constraints=self.constraints,
            at_most=None,
            n=self.n,
            info=info,
            confidence=self.confidence,
        )
        if self.sparsity is None:
            return request
        # Rounded down with a tolerance: 0.1 of 30 entries are 3, though the product may be 2.99….
        entries = request.n_free() * self.sparsity
        return replace(request, at_most=np.floor(entries + 1e-9).astype(np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryBlock:
    """Consecutive queries of one ``explain``.

    Attributes
    ----------
    number, first
        Index of the block among all blocks, and of its first query among all queries.
    series, target
        Checked series, and target classes (batch,), None for the runner-up.
    """

    number: int
    first: int
    series: Series
    target: IntArray | None

    def __len__(self) -> int:
        return len(self.series)

    def select(self, rows: slice | IntArray, target: IntArray | None = None) -> QueryBlock:
        """Return the block of some of the queries, with another target each if it is given."""
        own = None if self.target is None else self.target[rows]
        return replace(self, series=self.series[rows], target=own if target is None else target)

    def batches(self, size: int) -> Iterator[QueryBlock]:
        """Yield the block in parts of at most ``size`` queries."""
        for start in range(0, len(self), size):
            yield replace(self.select(slice(start, start + size)), first=self.first + start)


@dataclass(frozen=True, kw_only=True, eq=False)
class Request(_Batch):
    """A batch of queries that are not in their target class yet, with all that limits the answers.

    Attributes
    ----------
    series, target
        Queries in the data's own units, and the target class of each.
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
    """

    target: IntArray
    constraints: BoundConstraints
    at_most: IntArray | None
    n: int
    info: SeriesInfo
    confidence: float | None = None

    def n_free(self) -> IntArray:
        """Return the number of entries of each query that may change, of which ``sparsity`` is a share."""
        free = self.series.measured & self.constraints.allowed
        return np.asarray(free.sum((1, 2)), dtype=np.int64)

    def is_reached(self, proba: FloatArray, rows: IntArray | None = None) -> BoolArray:
        """Return whether probabilities (rows, classes) of answers reach the targets of their queries."""
        return is_reached(proba, self.target if rows is None else self.target[rows], self.confidence)

    def select(self, rows: IntArray) -> Request:
        """Return the request for some of the queries."""
        return replace(
            self,
            series=self.series[rows],
            target=self.target[rows],
            at_most=None if self.at_most is None else self.at_most[rows],
        )

    def cut(self, rows: IntArray, n_steps: int) -> Request:
        """Return the request for some of the queries, all of one length, without their padding."""
        of_rows = self.select(rows)
        return replace(of_rows, series=of_rows.series.cut(n_steps), constraints=self.constraints.cut(n_steps))

    def limits_of(self, i: int) -> str:
        """Return the limits of the answer to query ``i`` in words: the cap, and the kinds of constraints."""
        limits = self.constraints.active_kinds()
        if self.at_most is not None:
            limits.insert(0, f"at most {int(self.at_most[i])} of {self._n_free_of(i)} entries changed")
        return f" within the constraints ({'; '.join(limits)})" if limits else ""

    def why_missed(self, i: int, proba: FloatArray, otherwise: str) -> str:
        """Return why the best attempt for query ``i`` is no answer.

        Parameters
        ----------
        i, proba
            The query, and the probabilities of the attempt (classes,).
        otherwise
            The reason where the classifier predicts another class than the target.
        """
        target, free = int(self.target[i]), self._n_free_of(i)
        if not free:
            return "nothing of this series may change: all that is measured is immutable or frozen"
        if self.at_most is not None and not self.at_most[i]:
            return (
                f"the cap allows no change at all: one of the {free} entries that may change is a share of "
                f"{share_from(1 / free)}, the smallest to ask for"
            )
        if self.confidence is None or np.isnan(proba).any() or int(proba.argmax()) != target:
            return otherwise
        return unsure_words(self.info.class_names[target], float(proba[target]), self.confidence, self.limits_of(i))

    def why_rejected(self, i: int, counterfactual: FloatArray, proba: FloatArray) -> str:
        """Return why an answer (time, features) to query ``i`` is not valid, by its probabilities (classes,)."""
        target, outcome = int(self.target[i]), self.info.outcome
        # The number that a regressor reached is told with all answers.
        reached = "" if outcome is not None else f": p({self.info.class_names[target]}) reached {proba[target]:.2f}"
        model = "classifier" if outcome is None else "model"
        moved = differs(counterfactual, self.X[i]).any()
        nothing = "" if moved else "; the method changes nothing that may be changed here"
        failed = f"the answer did not convince the {model}{self.limits_of(i)}{reached}{nothing}"
        return self.why_missed(i, proba, failed)

    def _n_free_of(self, i: int) -> int:
        return int(self.select(np.array([i])).n_free()[0])

    def apply_limits(self, proposal: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return proposals that obey the cap (the largest changes are kept) and the constraints.

        Parameters
        ----------
        proposal
            Series (batch, time, features) for all queries, or for ``rows`` of them.
        rows
            Indices of the queries that the proposals belong to.
        """
        series = self.series if rows is None else self.series[rows]
        query, lengths, gaps = series.values, series.lengths, series.gaps
        if self.at_most is None:
            return self.constraints.enforce(query, proposal, lengths, gaps=gaps)
        at_most = self.at_most if rows is None else self.at_most[rows]
        before = replace(self.constraints, project=None)  # that one comes last
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
            f"this {owner} was fitted for the target {quoted(class_names[own])} alone. "
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


@dataclass(frozen=True, eq=False)
class QueryNames:
    """Names given to ``explain``.

    Attributes
    ----------
    ids, subjects
        One per query, whole numbers or text; None where not given.
    """

    ids: np.ndarray[Any, Any] | None
    subjects: np.ndarray[Any, Any] | None

    @classmethod
    def checked(cls, ids: Any, subjects: Any) -> QueryNames:
        """Return the names that a user passed; their number is checked by :meth:`check_number`."""
        return cls(_as_names("ids", ids), _as_names("subjects", subjects))

    def check_number(self, n_queries: int) -> None:
        """Raise unless there is one name per query."""
        for what, names in (("ids", self.ids), ("subjects", self.subjects)):
            if names is not None and len(names) != n_queries:
                raise ShapeError(f"{what} must be {n_queries}, one per query, got {len(names)}.")

    def attach(self, answers: Explanation) -> Explanation:
        """Return answers with the names of their queries."""
        rows = answers.query_index
        least = min(len(names) for names in (self.ids, self.subjects) if names is not None)
        if len(rows) and rows.max() >= least:  # of an iterator, the number of queries is known at its end only
            raise ShapeError(f"X gave more queries than there are names ({least}). Pass one of ids per query.")
        ids = None if self.ids is None else self.ids[rows]
        return replace(answers, ids=ids, subjects=None if self.subjects is None else self.subjects[rows])

    def agree(self, answers: Explanation) -> bool:
        """Return whether answers have these names already."""
        now = self.attach(answers)
        pairs = ((answers.ids, now.ids), (answers.subjects, now.subjects))
        return all(b is None or (a is not None and np.array_equal(a, b)) for a, b in pairs)


def split_training_part(dataset: Dataset, y: Any, lengths: Any, side: Any, model: Model) -> tuple[Any, Any, Any, Any]:
    """Return training series, labels, lengths and side inputs of a data set; raise if they were given beside it.

    A model that does not take side inputs is given none.
    """
    if y is not None or lengths is not None:
        raise DataError("a Dataset brings its own labels and lengths: call fit(dataset) with nothing else.")
    own = one_side(side, dataset.side_train if model.takes_side else None)
    return dataset.X_train, dataset.y_train, dataset.lengths_train, own


def split_test_part(
    dataset: Dataset, *given: Any, side: Any, known: SideInputs | None
) -> tuple[Any, Any, Any, Any, Any]:
    """Return test series, lengths, ids, subjects and side inputs of a data set; raise if ``given`` beside it.

    Side inputs are those that are ``known``: none if there were none in the fit.
    """
    if any(values is not None for values in given):
        raise DataError("a Dataset brings its own lengths, ids and subjects: leave them out, or pass its X_test.")
    if not len(dataset.X_test):
        raise DataError(f"the data set {dataset.name!r} has no test series to explain. Pass series: explain(X).")
    own = one_side(side, None if known is None else dataset.side_test)
    return dataset.X_test, dataset.lengths_test, dataset.ids_test, dataset.subjects_test, own


def _as_names(what: str, values: Any) -> np.ndarray[Any, Any] | None:
    names = check_ids(values, what=what, each="query")
    return names if names is None or names.dtype.kind in "iuU" else names.astype(str)  # both are saved without pickle


_pause: ContextVar[Callable[[], None] | None] = ContextVar("pause", default=None)


@contextmanager
def pausing(call: Callable[[], None]) -> Iterator[None]:
    """Call a function whenever a search within the block pauses, that is, every few milliseconds.

    >>> with pausing(lambda: print("tea")):
    ...     pause()
    tea
    """
    before = _pause.set(call)
    try:
        yield
    finally:
        _pause.reset(before)


def pause() -> None:
    """Let something more urgent come first; called between the rounds of a search."""
    call = _pause.get()
    if call is not None:
        call()
