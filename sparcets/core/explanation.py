"""Explanation: queries and counterfactuals, with everything needed to describe, score and plot them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.edits import Edit, EditLists, free_edits
from sparcets.core.errors import DataError, OutOfRangeError, ShapeError, quoted
from sparcets.core.evidence import FEWEST_FAMILIES, FRAGILE, MAJORITY, MAX_STRETCH, Evidence, other_kinds, shape_of
from sparcets.core.info import SeriesInfo
from sparcets.core.series import (
    BoolArray,
    FloatArray,
    IntArray,
    Series,
    StrArray,
    missing_entries,
)
from sparcets.core.side_inputs import Side, join_side, side_to_arrays, take_rows
from sparcets.core.target import Numbers, is_reached
from sparcets.core.words import probability_below
from sparcets.io.files import add_digest, atomic_path, digest_of_array, write_npz
from sparcets.motion.skeleton import find_skeleton

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from sparcets.evaluation.scores import Scores


STATUSES = ("unchanged", "generated", "refined", "neighbour", "not_found")
SCHEMA = 1  # incremented whenever the file layout changes
IF_KNOWN = ("lengths", "ids", "subjects")  # arrays with one row per answer, or None
PARTS = ("evidence", "numbers", "edit_lists")  # tables with one row per answer, or None
PER_ANSWER = ("query", "counterfactual", "target", "status", "reason", "query_index", "proba_before", "proba_after")


@dataclass(frozen=True, kw_only=True, eq=False)
class Explanation:
    """Counterfactuals for a set of queries: one answer per query, or several consecutive ones.

    Attributes
    ----------
    query, counterfactual
        Series (answers, time, features) in the data's own units.
    target
        Target class of each answer; for a regressor, the targets as text.
    status
        ``unchanged``, ``generated``, ``refined``, ``neighbour`` or ``not_found``.
    reason
        Why no counterfactual was found; for a valid answer, a contradiction of the model itself, or the law of the data
        that it violates because of the constraints; empty for others.
    query_index
        Index of the query among those passed to ``explain``.
    proba_before, proba_after
        The classifier's probabilities (answers, classes) for query and counterfactual; no columns for a regressor.
    info
        Names, units and scale of the data.
    mutable
        Features that were allowed to change in this call.
    frozen
        Entries (time, features) that were frozen in this call; None without frozen entries.
    lengths
        True lengths of padded series, or None.
    ids, subjects
        Name of each answer's query, and of the recorded person; None where not given.
    method, config, constraints, seed, seconds
        Method, its configuration, the constraints given to ``fit`` and to ``explain``, the seed, and the total
        computation time.
    confidence
        The least probability of the target that counts as reached, or None.
    evidence
        Evidence on each answer besides the explained classifier, None for methods without a selector; the properties
        ``families`` to ``verdict`` below are its parts.
    numbers
        For a regressor, its predictions and the bounds of the targets; None for classes.
    side
        Side inputs of each answer's query, arrays (answers, …) by name; None if the model takes series alone.
    edit_lists
        The edits of each answer, for methods that make edits; None for other methods.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> e = sp.Nearest(clf).fit(X, y).explain(X[:4], target=1)
    >>> len(e), e.delta.shape, len(e[e.valid])
    (4, (4, 20, 4), 4)
    """

    query: FloatArray
    counterfactual: FloatArray
    target: np.ndarray[Any, Any]
    status: StrArray
    reason: StrArray
    query_index: IntArray
    proba_before: FloatArray
    proba_after: FloatArray
    info: SeriesInfo
    mutable: BoolArray
    frozen: BoolArray | None = None
    lengths: IntArray | None = None
    ids: np.ndarray[Any, Any] | None = None
    subjects: np.ndarray[Any, Any] | None = None
    method: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    constraints: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    seconds: float = 0.0
    confidence: float | None = None
    evidence: Evidence | None = None
    numbers: Numbers | None = None
    side: Side | None = None
    edit_lists: EditLists | None = None

    def __post_init__(self) -> None:
        known = dict(self._known(*PER_ANSWER, *IF_KNOWN, *PARTS)) | (self.side or {})
        sizes = {name: len(values) for name, values in known.items()}
        if len(set(sizes.values())) > 1 or self.query.shape != self.counterfactual.shape:
            raise ShapeError(
                f"an explanation needs one row per answer in every array, and query and counterfactual of one shape; "
                f"got {self.query.shape} and {self.counterfactual.shape}, rows {sizes}."
            )
        if self.frozen is not None and self.frozen.shape != self.query.shape[1:]:
            raise ShapeError(
                f"frozen entries must be given as {self.query.shape[1:]} (time, features), got {self.frozen.shape}."
            )

    @property
    def delta(self) -> FloatArray:
        """Counterfactual minus query (answers, time, features); 0 where the query is missing."""
        delta: FloatArray = self.counterfactual - self.query
        return delta if self.missing is None else np.where(self.missing, np.zeros((), delta.dtype), delta)

    @property
    def changed(self) -> BoolArray:
        """Entries where query and counterfactual differ (answers, time, features); none where the query is missing."""
        changed: BoolArray = self.counterfactual != self.query
        return changed if self.missing is None else changed & ~self.missing

    @property
    def may_change(self) -> BoolArray:
        """Entries that may change (answers, time, features): of mutable features, no frozen steps, padding or gaps."""
        allowed = self.mutable if self.frozen is None else self.mutable & ~self.frozen
        return np.asarray(Series(self.query, self.lengths).measured & allowed)

    @cached_property
    def missing(self) -> BoolArray | None:
        """Entries that are missing in the query, NaN (answers, time, features); None if none is."""
        return missing_entries(self.query)

    @property
    def valid(self) -> BoolArray:
        """Whether the explained classifier gives the target its largest probability, and at least ``confidence``.

        For a regressor: whether its number lies within the target.
        """
        return self.predictions.reached

    @property
    def probability(self) -> FloatArray:
        """Probability of the target after the change; NaN for a regressor."""
        return self.predictions.probability

    @property
    def predicted(self) -> IntArray:
        """Class predicted for each query."""
        if self.info.is_regression:
            raise DataError("a regressor predicts no classes; its numbers are prediction_before and prediction.")
        return self.prediction_before

    @property
    def prediction_before(self) -> np.ndarray[Any, Any]:
        """Prediction for each query: numbers (answers, outputs), or the class (answers,)."""
        return self.predictions.before

    @property
    def prediction(self) -> np.ndarray[Any, Any]:
        """Prediction for each counterfactual: numbers (answers, outputs), or the class (answers,)."""
        return self.predictions.after

    @property
    def target_names(self) -> StrArray:
        """The target of each answer as text: the name of a class, or where the number has to lie."""
        return self.predictions.targets

    @property
    def predictions(self) -> Predictions:
        """The model's predictions before and after, as values and as text."""
        return Predictions(self) if self.numbers is None else _NumberPredictions(self, self.numbers)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.info.feature_names

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes."""
        return self.info.class_names

    @property
    def share_changed(self) -> FloatArray:
        """Share of the entries that may change that do change, per answer."""
        free = self.may_change
        return np.asarray((self.changed & free).sum((1, 2)) / np.maximum(free.sum((1, 2)), 1))

    @property
    def _known_evidence(self) -> Evidence:
        return Evidence.none(len(self)) if self.evidence is None else self.evidence

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the selector's families: models of other kinds; empty for methods without a selector."""
        return () if self.evidence is None else self.evidence.families

    @property
    def support(self) -> FloatArray:
        """Share of each family that predicts the target (answers, families)."""
        return self._known_evidence.support

    @property
    def believed(self) -> BoolArray:
        """Whether the majority of every family predicts the target; False for methods without a selector."""
        return np.asarray((self.support > MAJORITY).all(1) & bool(self.families))

    @property
    def plausibility(self) -> Mapping[str, FloatArray]:
        """Four measures (answers,) of how real the counterfactuals look, NaN where unknown.

        ``distance``: percentile of the distance to real series of the target, 0 to 1; ``outside``: number of changed
        entries outside the training range; ``jumps``: number of steps, and of moves over few steps, larger than any in
        training; ``stretch``: largest relative change of a limb's length. The last three are known for every method, by
        the ranges of ``info``.
        """
        known = self._known_evidence.plausibility
        if self.families:
            return known
        return {**known, **shape_of(self, self.info, find_skeleton(self.feature_names, self.info.units))}

    @property
    def curve(self) -> Mapping[str, FloatArray]:
        """``share``, ``support`` and ``valid`` (answers, points) of smaller changes; no points without ``curve=True``.

        ``share`` of the mutable entries that change, smallest ``support`` over the families, and ``valid`` (1 or 0) by
        the explained classifier; NaN where an answer has fewer points.
        """
        return self._known_evidence.curve

    @property
    def least_believed(self) -> FloatArray:
        """Smallest share of changed entries at which every family agrees; NaN if unknown."""
        return _smallest(self.curve["share"], self.curve["support"] > MAJORITY)

    @property
    def flips_at(self) -> FloatArray:
        """Smallest share of changed entries at which the explained classifier predicts the target; NaN if unknown."""
        return _smallest(self.curve["share"], self.curve["valid"] == 1)

    @property
    def fragile(self) -> BoolArray:
        """Whether the explained classifier flips at less than a quarter of the changes that all families need."""
        return np.asarray(self.flips_at < self.least_believed / FRAGILE)

    @property
    def verdict(self) -> StrArray:
        """Conclusion on each answer.

        ``unchanged``: the query is in the target class already. ``not reached``: not valid. ``believed``: every family
        agrees, at least three beside the discriminators, ``real``; no law of the data and no limit of recordings is
        broken, and the model is better than chance and does not contradict itself. ``trick``: fewer than half of the
        families agree. ``doubtful``: all others, and all valid answers of methods without a selector.
        """
        shape, doubted = self._known_evidence.plausibility, (self.reason != "") | bool(self.info.model_doubts)
        real = (shape["outside"] == 0) & (shape["jumps"] == 0) & ~(shape["stretch"] > MAX_STRETCH)  # NaN without limbs
        others = other_kinds(self.families)
        real &= bool(others.sum() >= FEWEST_FAMILIES and not others.all())
        few = (self.support[:, others] > MAJORITY).sum(1) < others.sum() / 2
        few &= ~np.isnan(self.support).any(1)
        none = ~self.valid | (self.status == "not_found")  # a missing answer may repeat one that was found
        cases = [self.status == "unchanged", none, self.believed & real & ~doubted, few]
        return np.select(cases, ["unchanged", "not reached", "believed", "trick"], "doubtful")

    def __len__(self) -> int:
        return len(self.query)

    def __iter__(self) -> Iterator[Explanation]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, rows: Any) -> Explanation:
        """Select answers by index, slice, mask or list of indices; return an Explanation."""
        rows = check_rows(rows, len(self))
        known = {name: values[rows] for name, values in self._known(*PER_ANSWER, *IF_KNOWN, *PARTS)}
        side = None if self.side is None else take_rows(self.side, rows)
        return replace(self, side=side, **known)

    def _known(self, *names: str) -> list[tuple[str, Any]]:
        """Return the names and the values of fields that are not None."""
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]

    def __repr__(self) -> str:
        found = ", ".join(f"{(self.status == s).sum()} {s}" for s in STATUSES if (self.status == s).any())
        valid = (self.valid & (self.status != "unchanged")).sum()
        return f"Explanation({len(self)} by {self.method or '?'}{found and ': '}{found}; {valid} valid)"

    def _repr_html_(self) -> str:
        from sparcets.show.text import explanation_card

        return explanation_card(self)

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy table: a row for each stretch of steps in which one feature rises, or falls.

        Columns: ``query`` (index among the queries), ``id`` and ``subject`` (where known), ``verdict``, ``feature``,
        ``start`` and ``end`` (half-open, in steps), ``mean_change``, ``units``; ``answer`` (index among the answers,
        which distinguishes several answers to one query), ``valid`` and ``believed``.
        """
        from sparcets.show.changes import table_of_changes

        return table_of_changes(self)

    def text(self, i: int = 0, *, short: bool = False, scores: Scores | None = None) -> str:
        """Describe the changes of answer ``i``, and how reliable it is.

        Parameters
        ----------
        i
            Index of the answer.
        short
            One or two sentences instead of the long form.
        scores
            Result of :func:`sparcets.evaluate` for this explanation; adds what the judges predict.
        """
        from sparcets.show.text import narrate
        from sparcets.show.verdict import measures_of

        return narrate(self._one(i), short=short, measures=None if scores is None else measures_of(scores, self)[i])

    def attribution(self) -> FloatArray:
        """Return ``|delta|`` in standard deviations of each feature (answers, time, features): the size of the changes.

        Zero where nothing changes. Standard deviations are those of the training series, so that features of different
        units compare. Where ``valid`` is False, it is the attribution of an attempt.
        """
        return np.asarray(np.abs(self.delta) / self.info.scaler.scale[: self.delta.shape[2]], dtype=self.delta.dtype)

    def edits(self, i: int = 0) -> list[Edit]:
        """Return the edits of answer ``i``, those that the model needs first.

        Methods without edits, and constraints that alter an answer, give one edit of the kind ``free`` for every
        changed segment of a feature.

        >>> import sparcets as sp
        >>> from sparcets.testing.data import make_series
        >>> from sparcets.testing.mocks import mean_proba
        >>> X, y = make_series(60)
        >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1)
        >>> bool((sp.apply_edits(e.query[0], e.edits(0)) == e.counterfactual[0]).all())
        True
        """
        from sparcets.show.edit_text import with_texts

        one = self._one(i)
        if one.edit_lists is None:
            return with_texts(one, free_edits(one.query[0], one.counterfactual[0], self.feature_names))
        return with_texts(one, one.edit_lists.lists[0])

    def plot(self, i: int = 0) -> Figure:
        """Plot query and counterfactual of answer ``i``; needs ``sparcets[plots]``."""
        from sparcets.show.plots import plot_answer

        return plot_answer(self._one(i))

    def _one(self, i: int) -> Explanation:
        one = self[i]
        if len(one) != 1:
            raise OutOfRangeError(f"i must be the index of one answer, got {quoted(i)}, which are {len(one)}.")
        return one

    def save(self, path: str | os.PathLike[str], *, compress: bool = True) -> None:
        """Write everything atomically to one ``.npz`` file; read it with :func:`load_explanation`.

        ``compress=False`` writes a larger file in a tenth of the time.
        """
        arrays = dict(self._known(*PER_ANSWER, "mutable", *IF_KNOWN, "frozen")) | self._known_evidence.to_arrays()
        for _, table in self._known("numbers", "edit_lists"):
            arrays |= table.to_arrays()
        arrays |= side_to_arrays(self.side)
        header = {
            "schema": SCHEMA,
            "info": self.info.to_dict(),
            "method": self.method,
            "config": dict(self.config),
            "constraints": dict(self.constraints),
            "seed": self.seed,
            "seconds": self.seconds,
            "confidence": self.confidence,
            "arrays": {name: digest_of_array(np.asarray(array)) for name, array in arrays.items()},
        }
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            write_npz(file, {"header": np.array(json.dumps(add_digest(header))), **arrays}, compress=compress)


class Predictions:
    """Predictions of a classifier for the queries and answers of an explanation, as values and as text."""

    head = "p(target)"  # head of the column with :meth:`format_after`

    def __init__(self, e: Explanation) -> None:
        self.e, self.outputs = e, e.proba_after  # outputs of the model for the answers (answers, classes)

    @property
    def before(self) -> np.ndarray[Any, Any]:
        """Prediction for each query."""
        return np.asarray(self.e.proba_before.argmax(1), dtype=np.int64)

    @property
    def after(self) -> np.ndarray[Any, Any]:
        """Prediction for each counterfactual."""
        return np.asarray(self.outputs.argmax(1), dtype=np.int64)

    @property
    def reached(self) -> BoolArray:
        """Whether the target is reached (answers,)."""
        return is_reached(self.outputs, self.e.target, self.e.confidence)

    @property
    def probability(self) -> FloatArray:
        """Probability of the target after the change (answers,)."""
        return np.asarray(self.outputs[np.arange(len(self.e)), self.e.target])

    @property
    def targets(self) -> StrArray:
        """The targets as text (answers,)."""
        return np.asarray(np.array(self.e.class_names)[self.e.target])

    @property
    def subject(self) -> str:
        """The target's probability, or the names of the outputs in the target."""
        return f"p({self.e.target_names[0]})"

    def format_before(self, i: int = 0) -> str:
        """Return the name of the query's class, or its numbers for the outputs in the target, with units."""
        return self.e.class_names[int(self.e.proba_before[i].argmax())]

    def format_after(self, i: int = 0) -> str:
        """Return the probability of the target, with as many digits as show that it is below the confidence.

        For a regressor: the counterfactual's numbers for the outputs in the target, with units.
        """
        p = float(self.outputs[i, self.e.target[i]])
        return probability_below(p, self.e.confidence) if self.is_unsure(i) else f"{p:.2f}"

    def is_unsure(self, i: int = 0) -> bool:
        """Return whether the target's probability is below the required confidence; always False for a regressor."""
        proba, target = self.outputs[i : i + 1], self.e.target[i : i + 1]
        return bool(proba[0].argmax() == target[0]) and not is_reached(proba, target, self.e.confidence)[0]

    def as_dict(self, i: int) -> dict[str, Any]:
        """Return the probability of the target; or the numbers before and after, by the names of the outputs."""
        return {"probability": float(self.probability[i])}


class _NumberPredictions(Predictions):
    """Predictions of a regressor, which has no classes and probabilities."""

    head = "reached"

    def __init__(self, e: Explanation, numbers: Numbers) -> None:
        self.e, self.outputs, self.numbers = e, numbers.after, numbers

    @property
    def before(self) -> np.ndarray[Any, Any]:
        return self.numbers.before

    @property
    def after(self) -> np.ndarray[Any, Any]:
        return self.numbers.after

    @property
    def reached(self) -> BoolArray:
        return self.numbers.reached

    @property
    def probability(self) -> FloatArray:
        return np.full(len(self.e), np.nan)

    @property
    def targets(self) -> StrArray:
        return self.e.target

    @property
    def subject(self) -> str:
        return ", ".join(self.e.info.numbers.names[k] for k in self._asked(0))

    def format_before(self, i: int = 0) -> str:
        return self._format(i, self.numbers.before, self.numbers.after)

    def format_after(self, i: int = 0) -> str:
        return self._format(i, self.numbers.after, self.numbers.before)

    def is_unsure(self, i: int = 0) -> bool:
        return False

    def as_dict(self, i: int) -> dict[str, Any]:
        tables = {"prediction_before": self.numbers.before[i], "prediction": self.numbers.after[i]}
        return {key: dict(zip(self.e.info.numbers.names, row.tolist(), strict=True)) for key, row in tables.items()}

    def _asked(self, i: int) -> list[int]:
        return [int(k) for k in np.flatnonzero(np.isfinite(self.numbers.bounds[i]).any(1))]

    def _format(self, i: int, told: FloatArray, beside: FloatArray) -> str:
        return self.e.info.numbers.say(told[i], self._asked(i), self.numbers.bounds[i], beside[i])


def _smallest(share: FloatArray, where: BoolArray) -> FloatArray:
    """Return the smallest share of each row (answers, points) among the points ``where``; NaN if there is none."""
    smallest = np.where(where, share, np.inf).min(1, initial=np.inf)
    return np.asarray(np.where(np.isinf(smallest), np.nan, smallest))


def join(parts: list[Explanation]) -> Explanation:
    """Concatenate explanations of the same call."""
    if not parts:
        raise DataError("no explanations to join; pass at least one.")
    first = parts[0]
    if len(parts) == 1:
        return first
    known = (name for name, _ in first._known(*PER_ANSWER, *IF_KNOWN))
    arrays = {name: np.concatenate([getattr(p, name) for p in parts]) for name in known}
    asked = any(p.evidence is not None for p in parts)
    evidence = Evidence.join([p._known_evidence for p in parts]) if asked else None
    numbers = [numbers for p in parts if (numbers := p.numbers)]
    edited = any(p.edit_lists is not None for p in parts)
    lists = EditLists.join([(len(p), p.edit_lists) for p in parts]) if edited else None
    seconds, side = sum(p.seconds for p in parts), join_side([p.side for p in parts])
    tables = Numbers.join(numbers) if numbers else first.numbers
    return replace(first, evidence=evidence, numbers=tables, edit_lists=lists, side=side, seconds=seconds, **arrays)


def check_rows(rows: Any, n: int) -> Any:
    """Check an index into ``n`` answers and return it as a slice, a mask or an array of indices."""
    if isinstance(rows, slice):
        return rows
    try:
        chosen = np.atleast_1d(rows)
    except (TypeError, ValueError):  # a nested list, for example
        chosen = np.empty((0, 0))
    if chosen.size == 0 and chosen.ndim == 1:
        chosen = chosen.astype(bool if chosen.dtype == bool else np.int64)  # np.atleast_1d makes an empty list float
    if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
        raise OutOfRangeError(f"answers are selected by index, slice, mask or list of indices, got {quoted(rows)}.")
    if chosen.dtype == bool:
        if len(chosen) != n:
            raise OutOfRangeError(f"a mask over {n} answers must have {n} flags, got {len(chosen)}.")
        return chosen
    bad = chosen[(chosen < -n) | (chosen >= n)]
    if len(bad):
        raise OutOfRangeError(f"no answer {bad[0]}: this explanation holds {n}, numbered from 0.")
    return chosen
