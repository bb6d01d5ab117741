"""Evidence on series that are there already: made by hand, or answers whose curve is asked for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.evidence import shape_of
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.series import FloatArray, IntArray, Series, StrArray, compare_pairs
from sparcets.core.side_inputs import side_apart
from sparcets.core.target import check_target, is_reached
from sparcets.methods.base import ask_again
from sparcets.methods.request import runner_up

if TYPE_CHECKING:
    from sparcets.core.constraints import Constraints
    from sparcets.methods.base import BaseExplainer


def add_curve(
    explainer: BaseExplainer[Any], answers: Explanation, constraints: Constraints | None = None
) -> Explanation:
    """Return answers with the curve that ``explain(curve=True)`` would have measured; without one if there is none.

    Parameters
    ----------
    explainer
        The fitted explainer that gave the answers.
    answers
        One answer per query, found without a cap on the changes.
    constraints
        Those of the call.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> add_curve(ex, ex.explain(X[y == 0][:2], target=1)).curve["share"].shape  # it has no models of other kinds
    (2, 0)
    """
    rows = np.flatnonzero(answers.status != "unchanged")
    if not explainer.supports_curve or not len(rows):
        return answers
    call = explainer._call(None, answers.query.shape[1], constraints, confidence=answers.confidence)
    return replace(answers, evidence=answers.evidence.with_curve(explainer._curve(answers[rows], call), rows))


def review(
    explainer: BaseExplainer[Any],
    X: FloatArray,
    made: FloatArray,
    target: Any,
    *,
    lengths: IntArray | None = None,
    constraints: Constraints | None = None,
    status: StrArray | None = None,
    reason: StrArray | None = None,
) -> Explanation:
    """Return series that were made elsewhere as the answers to queries, with the evidence on them.

    Parameters
    ----------
    explainer
        A fitted explainer of a classifier; its models of other kinds are asked.
    X, made
        Queries and what was made of them (batch, time, features), in the data's own units.
    target
        Class name or index, or one per query; None is the runner-up class of each query.
    lengths
        True lengths of padded series.
    constraints
        What the series were made under, besides the standing constraints; shares of changes are relative to it.
    status, reason
        Of each answer, as another explanation has them; by default, and where that one had to change nothing,
        ``refined`` if the classifier predicts the target, else ``not_found``.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> ex = sp.Nearest(sp.wrap(mean_proba)).fit(X, y)
    >>> e = review(ex, X[y == 0][:2], X[y == 1][:2], target=1)
    >>> e.valid.tolist(), e.status.tolist(), e.verdict.tolist()
    ([True, True], ['refined', 'refined'], ['doubtful', 'doubtful'])
    """
    info, model = explainer._fitted(), explainer.classifier
    call = explainer._call(None, info.n_steps, constraints)
    X, _ = model.check_input(X, lengths, owner="review", like=info)
    made, lengths = model.check_input(made, lengths, owner="review", like=info)
    before, after = model.outputs_unchecked(X, lengths), model.outputs_unchecked(made, lengths)
    wanted = runner_up(before)
    if target is not None:
        wanted = check_target(target, n_queries=len(X), class_names=info.class_names)
    own = np.where(is_reached(after, wanted, None), "refined", "not_found")
    answers = Explanation(
        query=X,
        counterfactual=made,
        target=wanted,
        status=own if status is None else np.where(status == "unchanged", own, status),
        reason=np.full(len(X), "") if reason is None else reason,
        query_index=np.arange(len(X)),
        proba_before=before,
        proba_after=after,
        info=info,
        mutable=call.constraints.mutable,
        frozen=call.constraints.frozen_if_any,
        lengths=lengths,
        method=explainer.method,
        config=explainer._settings,
        constraints=call.constraints_given,
        seed=explainer.config.seed,
    )
    answers = ask_again(model, answers)
    return replace(answers, evidence=explainer._evidence(answers, call))


PER_CLASS = 500  # reference series of each class
NEIGHBOURS = 5
ROUNDING = 1e-5  # relative difference below which distances are equal
CHUNK = 1024  # series per matrix product, bounding memory


@dataclass(frozen=True, kw_only=True, eq=False)
class PlausibilityReference:
    """Real series that answers are compared with; build it with :meth:`fit`.

    Attributes
    ----------
    series, labels
        At most 500 training series of each class, standardised, in float32, and their classes.
    own_distance
        Mean distance of each reference series to its nearest neighbours of the same class.
    info
        Names, scale and ranges of the data.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series()
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[:4], target=1)
    >>> measured = PlausibilityReference.fit(Series(X), y, e.info).measure(e)
    >>> {name: values.shape for name, values in measured.items()}
    {'distance': (4,), 'outside': (4,), 'jumps': (4,), 'stretch': (4,)}
    >>> measured["outside"].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    series: Series
    labels: IntArray
    own_distance: FloatArray
    info: SeriesInfo

    @classmethod
    def fit(
        cls, series: Series, y: IntArray, info: SeriesInfo, *, rows: IntArray | None = None
    ) -> PlausibilityReference:
        """Choose reference series, evenly spaced within each class, and measure the distances between them.

        Parameters
        ----------
        series, y
            Training series in the data's own units, and their classes (batch,).
        info
            Names and scale of the data.
        rows
            The reference series, where they are chosen already.
        """
        info = info.of_series  # side inputs never change
        if rows is None:
            of_each = [_evenly_spaced(np.flatnonzero(y == label)) for label in range(info.n_classes)]
            rows = np.concatenate(of_each).astype(np.int64)
        chosen, labels = _standardised(series[rows], info), np.asarray(y[rows], dtype=np.int64)
        own = np.full(len(rows), np.nan)
        for label in np.unique(labels):
            own[labels == label] = _own_distances(chosen[labels == label])
        return cls(series=chosen, labels=labels, own_distance=own, info=info)

    def restricted(self, rows: IntArray) -> PlausibilityReference:
        """Return a reference to some of the series alone, all of class 0."""
        series = self.series[rows]
        own = _own_distances(series) if len(rows) > 1 else np.full(len(rows), np.nan)
        return replace(self, series=series, labels=np.zeros(len(rows), dtype=np.int64), own_distance=own)

    def measure(self, answers: Explanation) -> dict[str, FloatArray]:
        """Return four measures of each counterfactual; padding and missing entries do not count.

        Parameters
        ----------
        answers
            Answers of any status, with series like those of the fit.

        Returns
        -------
        dict
            An array (answers,) each:

            - ``distance``: mean distance to the 5 nearest reference series of the target class (root mean square of
              the standardised differences over the steps that both have), as the share of reference series of that
              class that are closer to their own nearest ones; NaN if the class has fewer than two series
            - ``outside``: number of changed entries outside the range of their feature in the training series
            - ``jumps``: number of steps, from or to a changed entry, in which a feature changes more than in any
              training series, and of moves over two to six steps that are larger by a quarter
            - ``stretch``: largest relative change of a limb's length against the query's at the same step; NaN if the
              features form no limb
        """
        answers = answers if answers.info.side is None else side_apart(answers)
        parts = [answers[i : i + CHUNK] for i in range(0, max(len(answers), 1), CHUNK)]
        return {"distance": np.concatenate([self._distance(part) for part in parts]), **shape_of(answers, self.info)}

    def _distance(self, answers: Explanation) -> FloatArray:
        """Return the percentile of the distance to the target class (answers,)."""
        made, percentile = Series(answers.counterfactual, answers.lengths), np.full(len(answers), np.nan)
        n_steps = self.info.n_steps  # beyond them, no reference series has anything to compare with
        made = Series(made.values[:, :n_steps], np.minimum(made.steps, n_steps))
        for label in np.unique(answers.target):
            rows, of_class = np.flatnonzero(answers.target == label), self.labels == label
            if of_class.sum() < 2:
                continue
            distances = _distances(_standardised(made[rows], self.info), self.series[of_class])
            nearest = _mean_of_nearest(distances, distances.shape[1])
            nearest *= 1 - ROUNDING  # equal distances may differ in their last bits, by what else is computed
            percentile[rows] = np.searchsorted(np.sort(self.own_distance[of_class]), nearest) / distances.shape[1]
        return percentile

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything but ``info`` as plain arrays by name, for a file."""
        series = {"series": self.series.values, "lengths": self.series.steps}
        return {**series, "labels": self.labels, "own_distance": self.own_distance}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], info: SeriesInfo) -> PlausibilityReference:
        """Build from :meth:`to_arrays`'s output; ``info`` is that of the fit."""
        series = Series(arrays["series"], arrays["lengths"])
        own = arrays["own_distance"]
        return cls(series=series, labels=arrays["labels"], own_distance=own, info=info.of_series)


def _evenly_spaced(rows: IntArray) -> IntArray:
    """Return at most 500 of the rows, at equal distances."""
    if len(rows) <= PER_CLASS:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, PER_CLASS).round().astype(np.int64)])


def _standardised(series: Series, info: SeriesInfo) -> Series:
    """Return standardised series in float32, zero in padding."""
    standard = info.scaler.transform(series.values[:, :, : info.n_features])
    return Series(np.where(series.inside[..., None], standard, 0.0).astype(np.float32), series.steps)


def _own_distances(series: Series) -> FloatArray:
    """Return the mean distance of each series to its nearest neighbours among the others."""
    distances = _distances(series, series)
    np.fill_diagonal(distances, np.inf)
    return _mean_of_nearest(distances, len(series))


def _distances(a: Series, b: Series) -> FloatArray:
    """Return root mean square differences (rows of a, rows of b) over the entries that both series have.

    The mean is over steps, the sum over features; infinite where no entry is shared.
    """
    squares, whole, common = compare_pairs(a, b)
    squares[squares < ROUNDING * whole] = 0.0  # equal series, but for rounding
    return np.asarray(np.sqrt(np.divide(squares, common, out=np.full(common.shape, np.inf), where=common > 0)))


def _mean_of_nearest(distances: FloatArray, n_references: int) -> FloatArray:
    """Return the mean of the 5 smallest distances of each row (rows, references); NaN with fewer than 2 references."""
    k = min(NEIGHBOURS, n_references - 1)  # a reference series has one neighbour less than there are series
    if k < 1:
        return np.full(len(distances), np.nan)
    return np.asarray(np.partition(distances, k - 1, axis=1)[:, :k].mean(1))
