"""The types between the pipeline and a method: a fit, the options of a call, a batch of queries, answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.constraints import Constraints
from sparcets.core.edits import EditLists
from sparcets.core.enforcement import BoundConstraints, keep_largest
from sparcets.core.errors import ConfigError, ConstraintError, ShapeError, quoted
from sparcets.core.evidence import Evidence
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, StrArray, differs, is_integer, is_number
from sparcets.core.target import BoundTarget, is_reached
from sparcets.core.validation import check_ids
from sparcets.core.words import probability_below, share_from
from sparcets.models.base import Classifier, Model
from sparcets.models.views import Goal, Within, at_length

MOST_ANSWERS = 1_000_000  # largest n
MOST_CLASSES = 4  # classes that are tried for a query if the target is any class but one, the most probable ones


@dataclass(frozen=True, kw_only=True, eq=False)
class _Batch:
    """Base of the inputs of a method: series in the data's own units."""

    series: Series

    def __len__(self) -> int:
        return len(self.series)

    @property
    def X(self) -> FloatArray:  # noqa: N802
        """Values of the series (batch, time, features)."""
        return self.series.values


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
        For a regressor, the labels (batch, outputs), while ``y`` is 0; for classes, no columns.
    subjects
        The recorded person of each series (batch,), from a Dataset; else None.
    target
        Index of the one class that the method is fitted for, or None for every class.
    constraints, constraints_given
        The constraints of the fit, bound to the data; and the same as the user gave them, as plain values.
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
    numbers: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    subjects: np.ndarray[Any, Any] | None = None

    def standardised(self, rows: IntArray | None = None) -> FloatArray:
        """Return all or some training series, standardised, with zeros as padding."""
        return (self.series if rows is None else self.series[rows]).standardised(self.info.scaler).values

    def subjects_of(self, rows: IntArray) -> np.ndarray[Any, Any] | None:
        """Return the subjects of some training series, or None."""
        return None if self.subjects is None else self.subjects[rows]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Requirements:
    """Requirements of a call of ``explain`` for every query, bound to the fit.

    Attributes
    ----------
    classifier, info
        The explained model, and names, units and scale of the data. With a ``goal``, the model is a view of a regressor
        as a classifier of two classes.
    constraints
        All constraints of fit and call, as arrays (``mutable`` features, ``editable`` entries (time, features), …).
    n
        Number of different answers per query.
    confidence
        The least probability of the target that counts as reached, or None.
    goal
        For a regressor, the bounds of the target: class 0 of the classifier is within them.
    edits
        Largest number of edits of an answer, or None.
    """

    classifier: Classifier
    info: SeriesInfo
    constraints: BoundConstraints
    n: int = 1
    confidence: float | None = None
    goal: Goal | None = None
    edits: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CallOptions(_Requirements):
    """The arguments of one ``explain`` that hold for all of its queries.

    Attributes
    ----------
    constraints_given
        The constraints as the user gave them to ``fit`` and to ``explain``.
    target
        The target.
    sparsity
        Largest share of the entries that may change which change, or None.
    curve
        Whether to measure how few changes are enough.
    """

    constraints_given: Mapping[str, Any]
    target: BoundTarget
    sparsity: float | None = None
    curve: bool = False

    @classmethod
    def of_fit(cls, constraints: Constraints, info: SeriesInfo, classifier: Classifier) -> CallOptions:
        """Return the options of a call without arguments: only the constraints given to ``fit`` hold."""
        as_given = {"fit": constraints.to_dict(), "explain": Constraints().to_dict()}
        bound, target = constraints.bind(info), BoundTarget(info=info)
        return cls(classifier=classifier, info=info, constraints=bound, constraints_given=as_given, target=target)

    def for_call(
        self,
        constraints: Any = None,
        *,
        sparsity: Any = None,
        n: Any = 1,
        curve: Any = False,
        confidence: Any = None,
        edits: Any = None,
    ) -> CallOptions:
        """Return the options of a call with these arguments of ``explain``, which are checked here."""
        if not is_integer(n) or not 1 <= n <= MOST_ANSWERS:
            raise ConfigError(f"n must be a whole number from 1 to {MOST_ANSWERS:,}, got {quoted(n)}.")
        if edits is not None and not (is_integer(edits) and edits >= 1):
            raise ConfigError(f"edits must be a whole number >= 1, got {quoted(edits)}.")
        if sparsity is not None and not (is_number(sparsity) and 0 < sparsity <= 1):
            raise ConfigError(f"sparsity must be a share in (0, 1], got {quoted(sparsity)}.")
        if confidence is not None and not (is_number(confidence) and 0 < confidence < 1):
            raise ConfigError(f"confidence must be a probability between 0 and 1, got {quoted(confidence)}.")
        if not isinstance(curve, (bool, np.bool_)):
            raise ConfigError(f"curve must be True or False, got {quoted(curve)}.")
        bound, as_given = self.constraints, self.constraints_given
        if constraints is not None:
            additional = check_constraints(constraints)
            bound = bound.combine(additional.bind(self.info))
            as_given = {**as_given, "explain": additional.to_dict()}
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
            edits=None if edits is None else int(edits),
            confidence=None if confidence is None else float(confidence),
        )

    def for_goal(self, goal: Goal) -> CallOptions:
        """Return the options for queries of a regressor with a goal."""
        model: Any = self.classifier
        classifier = Within(model, goal, self.info.numbers.scale)
        return replace(self, goal=goal, classifier=classifier, info=replace(self.info, class_names=goal.names))

    def request(self, series: Series, target: IntArray) -> Request:
        """Return the request of a batch of queries with these options."""
        requirements = {field.name: getattr(self, field.name) for field in fields(_Requirements)}
        request = Request(series=series, target=target, **requirements)
        if self.sparsity is None:
            return request
        # Rounded down with a tolerance: 0.1 of 30 entries is 3, though the product may be 2.99….
        entries = request.n_free() * self.sparsity
        return replace(request, at_most=np.floor(entries + 1e-9).astype(np.int64))


@dataclass(frozen=True, kw_only=True, eq=False)
class QueryBlock(_Batch):
    """Some queries of one ``explain``.

    Attributes
    ----------
    series, target
        Checked series, and target classes (batch,), None for the runner-up. For a regressor, indices of targets.
    index
        Index of each query among all queries (batch,).
    """

    target: IntArray | None
    index: IntArray

    def select(self, rows: slice | IntArray, target: IntArray | None = None) -> QueryBlock:
        """Return the block of some of the queries, optionally with other targets."""
        if target is None and self.target is not None:
            target = self.target[rows]
        return QueryBlock(series=self.series[rows], target=target, index=self.index[rows])

    def batches(self, size: int) -> Iterator[QueryBlock]:
        """Yield the block in parts of at most ``size`` queries."""
        return (self.select(slice(start, start + size)) for start in range(0, len(self), size))


def is_stream(X: Any) -> bool:
    """Return whether ``X`` is read lazily: a memory map, a generator, an iterator or a data loader.

    >>> is_stream(iter([[[1.0]]])), is_stream([[[1.0]]]), is_stream(np.zeros((1, 1, 1)))
    (True, False, False)
    """
    if isinstance(X, np.memmap):
        return True
    return hasattr(X, "__iter__") and not hasattr(X, "__getitem__") and not hasattr(X, "__array__")


def query_names(**given: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the given ``ids`` and ``subjects`` of ``explain`` by argument: whole numbers or text."""
    checked = {}
    for what, values in given.items():
        if values is not None:
            names = np.asarray(check_ids(values, what=what, each="query"))
            checked[what] = names if names.dtype.kind in "iuU" else names.astype(str)  # both are saved without pickle
    return checked


class Queries:
    """The queries of one ``explain``, in memory; :class:`~sparcets.methods.stream.Stream` reads others block by block.

    Parameters
    ----------
    X
        Series (batch, time, features): anything NumPy accepts.
    lengths, side
        True lengths of padded queries, and side inputs of all of them, as the user passed them.
    names
        Ids and subjects of the queries, if given; see :func:`query_names`.
    model, info, owner
        The explained model, the series of the fit, and the name of the explainer, for messages.
    longer
        Whether queries may be longer than the series of the fit, if the model takes such.

    Attributes
    ----------
    n
        Number of queries; None for an iterator.
    n_steps
        Number of steps of the blocks, and of the answers.
    padded
        Whether any query is known to be shorter than that.
    """

    n: int | None
    n_steps: int
    padded: bool

    def __init__(
        self,
        X: Any,
        lengths: Any,
        side: Any,
        names: Mapping[str, np.ndarray[Any, Any]],
        *,
        model: Model,
        info: SeriesInfo,
        owner: str,
        longer: bool,
    ) -> None:
        self.X, self.lengths, self.side, self.names = X, lengths, side, names
        self.model, self.info, self.owner = model, info, owner
        self._open(longer)

    def _open(self, longer: bool) -> None:
        """Check the queries."""
        context: dict[str, Any] = {"owner": self.owner, "like": self.info, "longer": longer}
        self.series = self.model.check_input(self.X, self.lengths, self.side, **context)
        self.n, self.n_steps = len(self.series), self.series.n_steps
        self.padded = bool((self.series.steps < self.n_steps).any())
        self._check_names(self.n)

    def blocks(self, target: BoundTarget, size: int) -> Iterator[QueryBlock]:
        """Yield blocks of ``size`` queries with their targets; the last may hold fewer."""
        for first in range(0, len(self.series), size):
            series = self.series[first : first + size]
            index = np.arange(first, first + len(series))
            yield QueryBlock(series=series, target=target.of_queries(first, first + len(series)), index=index)

    def named(self, answers: Explanation) -> Explanation:
        """Return answers with the names of their queries."""
        rows, least = answers.query_index, min(map(len, self.names.values()), default=None)
        if (
            least is not None and len(rows) and rows.max() >= least
        ):  # the length of an iterator is known only at its end
            raise ShapeError(f"X gave more queries than there are names ({least}). Pass one of ids per query.")
        columns: dict[str, Any] = {what: names[rows] for what, names in self.names.items()}
        return replace(answers, **columns) if columns else answers

    def _check_names(self, n_queries: int) -> None:
        for what, names in self.names.items():
            if len(names) != n_queries:
                raise ShapeError(f"{what} must be {n_queries}, one per query, got {len(names)}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Request(_Batch, _Requirements):
    """A batch of queries that are not in their target class yet, with the limits of their answers.

    Attributes
    ----------
    target
        The target class of each query.
    at_most
        Largest number of entries of each query that may change, or None.
    """

    target: IntArray
    at_most: IntArray | None = None

    def n_free(self) -> IntArray:
        """Return the number of entries of each query that may change; ``sparsity`` is relative to it."""
        free = self.series.measured & self.constraints.allowed
        return np.asarray(free.sum((1, 2)), dtype=np.int64)

    def is_reached(self, proba: FloatArray, rows: IntArray | None = None) -> BoolArray:
        """Return whether probabilities (rows, classes) of answers reach the targets of their queries."""
        return is_reached(proba, self.target if rows is None else self.target[rows], self.confidence)

    def select(self, rows: IntArray) -> Request:
        """Return the request for some of the queries."""
        at_most = None if self.at_most is None else self.at_most[rows]
        return replace(self, series=self.series[rows], target=self.target[rows], at_most=at_most)

    def cut(self, rows: IntArray, n_steps: int) -> Request:
        """Return the request for some of the queries, all of one length, without their padding."""
        part, model = self.select(rows), self.classifier
        if n_steps < self.series.n_steps:
            model = at_length(model, n_steps, self.series.n_steps)
        return replace(
            part, series=part.series.cut(n_steps), constraints=self.constraints.cut(n_steps), classifier=model
        )

    def by_length(self) -> Iterator[tuple[IntArray, Request]]:
        """Yield the queries of each length, without padding, and their rows."""
        return ((rows, self.cut(rows, series.n_steps)) for rows, series in self.series.by_length())

    def limits_of(self, i: int) -> str:
        """Describe the limits of the answer to query ``i``: the cap, and the kinds of constraints."""
        limits = self.constraints.active_kinds()
        if self.at_most is not None:
            limits.insert(0, f"at most {int(self.at_most[i])} of {self._n_free_of(i)} entries changed")
        if self.edits is not None:
            limits.insert(0, f"at most {self.edits} edit{'s' * (self.edits > 1)}")
        return f" within the constraints ({'; '.join(limits)})" if limits else ""

    def why_missed(self, i: int, proba: FloatArray, otherwise: str) -> str:
        """Return why the best attempt for query ``i``, with these probabilities (classes,), is not valid.

        ``otherwise`` is the reason where the classifier predicts another class than the target.
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
        name, p = self.info.class_names[target], probability_below(float(proba[target]), self.confidence)
        words = f"the classifier predicts {name!r} with p({name}) = {p}{self.limits_of(i)}"
        return f"{words}; {self.confidence!r} was asked for"

    def why_rejected(self, i: int, counterfactual: FloatArray, proba: FloatArray) -> str:
        """Return why an answer (time, features) to query ``i`` is not valid, by its probabilities (classes,)."""
        moved = differs(counterfactual, self.X[i]).any()
        nothing = "" if moved else "; the method changes nothing that may be changed here"
        return self.why_missed(i, proba, f"the answer did not convince {self.attempt_words(i, proba)}{nothing}")

    def attempt_words(self, i: int, proba: FloatArray) -> str:
        """Describe an unsuccessful attempt for query ``i`` and its probabilities (classes,).

        The number that a regressor predicts is shown with every answer.
        """
        if self.goal is not None:
            return f"the model{self.limits_of(i)}"
        target = int(self.target[i])
        reached = f"p({self.info.class_names[target]}) reached {proba[target]:.2f}"
        return f"the classifier{self.limits_of(i)}: {reached}"

    def _n_free_of(self, i: int) -> int:
        return int(self.select(np.array([i])).n_free()[0])

    def apply_limits(self, proposal: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return proposals (batch, time, features) that obey the cap (the largest changes are kept) and the
        constraints.

        There is one for each query, or for each of ``rows``.
        """
        series = self.series if rows is None else self.series[rows]
        if self.at_most is None:
            return self.constraints.enforce(series, proposal)
        at_most = self.at_most if rows is None else self.at_most[rows]
        before = replace(self.constraints, project=None)  # it is applied last
        allowed = before.enforce(series, proposal)
        cut = keep_largest(series.values, allowed, at_most=at_most, scale=self.info.scaler.scale)
        cut = self.constraints.enforce(series, cut, complete=False)
        if self.constraints.project is not None:  # it may have changed more entries
            few = differs(cut, series.values).sum((1, 2)) <= at_most
            cut = np.where(few[:, None, None], cut, series.values)
        return cut


@dataclass(frozen=True, kw_only=True, eq=False)
class Answers:
    """Answers of a method: ``n`` per query, best first, grouped by query.

    Attributes
    ----------
    counterfactual
        Series (batch * n, time, features); where nothing was found, the best attempt.
    status
        ``generated``, ``refined``, ``neighbour`` or ``not_found`` for each.
    reason
        Why nothing was found; empty elsewhere.
    proba
        Probabilities by the user's classifier (batch * n, classes), NaN in rows that are not predicted yet; None
        without predicted rows. ``explain`` predicts the missing rows.
    families, support
        Names of the evaluated families, and the share of each that agrees (batch * n, families), NaN in rows that
        are not evaluated; None without evaluated rows.
    edit_lists
        The edits of each answer; None for a method that gives values.
    """

    counterfactual: FloatArray
    status: StrArray
    reason: StrArray
    proba: FloatArray | None = None
    families: tuple[str, ...] = ()
    support: FloatArray | None = None
    edit_lists: EditLists | None = None

    @classmethod
    def one_per_query(cls, request: Request, admitted: FloatArray, status: str) -> Answers:
        """Package a method's one answer per query; if more were requested, the others are ``not_found``.

        ``explain`` decides whether an answer is valid, by the classifier.
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

    @classmethod
    def unchanged(cls, request: Request, proba: FloatArray) -> Answers:
        """Return the queries themselves as answers: their probabilities (batch, classes) are in their targets."""
        n = len(request) * request.n
        return cls(
            counterfactual=np.repeat(request.X, request.n, axis=0),
            status=np.full(n, "unchanged"),
            reason=np.full(n, ""),
            proba=np.repeat(proba, request.n, axis=0),
        )

    @classmethod
    def join(cls, request: Request, parts: Sequence[tuple[IntArray, Answers]]) -> Answers:
        """Return the answers to a request from the answers to its parts, given with the rows of their queries.

        The series of a part may be shorter; fields that only some parts have are NaN for the others.
        """
        n, answers = request.n, [part for _, part in parts]
        places = [(rows[:, None] * n + np.arange(n)).ravel() for rows, _ in parts]
        order = np.argsort(np.concatenate(places))
        counterfactual = np.repeat(request.X, n, axis=0)
        for place, part in zip(places, answers, strict=True):
            counterfactual[place, : part.counterfactual.shape[1]] = part.counterfactual
        families = next((part.families for part in answers if part.families), ())

        def table(name: str, n_columns: int) -> FloatArray:
            sizes = [(len(part.status), getattr(part, name)) for part in answers]
            tables = [np.full((k, n_columns), np.nan) if values is None else values for k, values in sizes]
            return np.asarray(np.concatenate(tables)[order])

        lists = None
        if any(part.edit_lists is not None for part in answers):
            lists = EditLists.join([(len(part.status), part.edit_lists) for part in answers])[order]
        return cls(
            counterfactual=counterfactual,
            status=np.concatenate([part.status for part in answers])[order].astype("<U9"),
            reason=np.concatenate([part.reason for part in answers])[order].astype(object),
            proba=table("proba", request.info.n_classes),
            families=families,
            support=table("support", len(families)) if families else None,
            edit_lists=lists,
        )

    @property
    def evidence(self) -> Evidence | None:
        """The families' support so far; None if no family was evaluated."""
        return None if self.support is None else Evidence(families=self.families, support=self.support)

    def without_courses(self) -> Answers:
        """Return the answers without the values of the training series that their edits follow."""
        if self.edit_lists is None:
            return self
        lists = tuple(
            tuple(edit if edit.row is None else replace(edit, course=None) for edit in edits)
            for edits in self.edit_lists.lists
        )
        return replace(self, edit_lists=EditLists(lists))


def runner_up(proba: FloatArray) -> IntArray:
    """Return the second most probable class of each query; the sort is stable, so that it is never the prediction.

    >>> runner_up(np.array([[0.4, 0.4, 0.2], [0.2, 0.3, 0.5]]))
    array([1, 1])
    """
    return np.asarray(np.argsort(-proba, axis=1, kind="stable")[:, 1], dtype=np.int64)


def other_classes(proba: FloatArray, excluded: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield queries, by index, and classes to try for them, the most probable ones first.

    >>> [(rows.tolist(), classes.tolist()) for rows, classes in other_classes(np.array([[0.7, 0.1, 0.2]]), 0)]
    [([0], [2]), ([0], [1])]
    """
    predicted = proba.argmax(1)
    others = np.where(np.arange(proba.shape[1]) == excluded, -np.inf, proba)
    ranked = np.argsort(-others, axis=1, kind="stable")[:, : min(MOST_CLASSES, proba.shape[1] - 1)]
    ranked[predicted != excluded] = predicted[predicted != excluded, None]  # these queries are in another class already
    for rank in range(ranked.shape[1]):
        rows = np.arange(len(proba)) if rank == 0 else np.flatnonzero(predicted == excluded)
        if len(rows):
            yield rows, ranked[rows, rank]


def best_of_classes(parts: Sequence[Explanation], n: int) -> Explanation:
    """Return the best ``n`` answers of each query: believed ones first, then valid ones, then those that change less.

    The parts are for several classes, with ``n`` answers to each of some queries.
    """
    tried = join(list(parts))
    query = tried.query_index.reshape(-1, n)[:, 0]  # one per n answers
    rank_by = np.stack([tried.believed, tried.valid, -tried.share_changed]).reshape(3, -1, n).mean(2)
    order = np.lexsort((*-rank_by[::-1], query))
    best = order[np.unique(query[order], return_index=True)[1]]
    return tried[(best[:, None] * n + np.arange(n)).ravel()]


def check_constraints(constraints: Any) -> Constraints:
    """Return the constraints that a user passed; empty ones for None."""
    if constraints is None:
        return Constraints()
    if not isinstance(constraints, Constraints):
        raise ConfigError(f"constraints must be sp.Constraints(...), got {type(constraints).__name__}.")
    return constraints
