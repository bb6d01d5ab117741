"""Evidence on series that are there already: made by hand, or answers whose curve is asked for later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, StrArray, length_mask
from sparcets.core.evidence import shape_of
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import is_reached
from sparcets.core.side_inputs import side_apart
from sparcets.core.target import check_target
from sparcets.methods.compatibility import ask_again
from sparcets.methods.goal import runner_up

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
    series, labels, lengths
        At most 500 training series of each class, standardised, flattened and with padding set to 0 (references,
        time · features) in float32, NaN where entries are missing; their classes, and their true lengths.
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
    >>> measured = PlausibilityReference.fit(X, y, e.info).measure(e)
    >>> {name: values.shape for name, values in measured.items()}
    {'distance': (4,), 'outside': (4,), 'jumps': (4,), 'stretch': (4,)}
    >>> measured["outside"].tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    series: FloatArray
    labels: IntArray
    lengths: IntArray
    own_distance: FloatArray
    info: SeriesInfo

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        y: IntArray,
        info: SeriesInfo,
        *,
        lengths: IntArray | None = None,
        rows: IntArray | None = None,
    ) -> PlausibilityReference:
        """Choose reference series, evenly spaced within each class, and measure the distances between them.

        Parameters
        ----------
        X, y
            Training series (batch, time, features) in the data's own units, and their classes (batch,).
        info
            Names and scale of the data.
        lengths
            True lengths of padded series, or None.
        rows
            The reference series, where they are chosen already.
        """
        info = info.of_series  # side inputs never change
        X, all_lengths = X[:, :, : info.n_features], np.full(len(X), X.shape[1]) if lengths is None else lengths
        if rows is None:
            of_each = [_evenly_spaced(np.flatnonzero(y == label)) for label in range(info.n_classes)]
            rows = np.concatenate(of_each).astype(np.int64)
        chosen = rows
        steps = all_lengths[chosen].astype(np.int64)
        series = _standardised(X[chosen], steps, info)
        labels = np.asarray(y[chosen], dtype=np.int64)
        own = np.full(len(chosen), np.nan)
        for label in np.unique(labels):
            of_class = np.flatnonzero(labels == label)
            distances = _distances(series[of_class], steps[of_class], series[of_class], steps[of_class], X.shape[1])
            np.fill_diagonal(distances, np.inf)
            own[of_class] = _mean_of_nearest(distances, len(of_class))
        return cls(
            series=series,
            labels=labels,
            lengths=steps,
            own_distance=own,
            info=info,
        )

    def restricted(self, rows: IntArray) -> PlausibilityReference:
        """Return a reference to some of the series alone, all of class 0."""
        series, steps, own = self.series[rows], self.lengths[rows], np.full(len(rows), np.nan)
        if len(rows) > 1:
            distances = _distances(series, steps, series, steps, self.info.n_steps)
            np.fill_diagonal(distances, np.inf)
            own = _mean_of_nearest(distances, len(rows))
        labels = np.zeros(len(rows), dtype=np.int64)
        return replace(self, series=series, labels=labels, lengths=steps, own_distance=own)

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
        made, target = answers.counterfactual, answers.target
        lengths = np.full(len(made), made.shape[1]) if answers.lengths is None else answers.lengths
        percentile = np.full(len(made), np.nan)
        n_steps = self.info.n_steps  # beyond them, no reference series has anything to compare with
        made, lengths = made[:, :n_steps], np.minimum(lengths, n_steps)
        for label in np.unique(target):
            rows, of_class = np.flatnonzero(target == label), np.flatnonzero(self.labels == label)
            if len(of_class) < 2:
                continue
            standard = _standardised(made[rows], lengths[rows], self.info)
            distances = _distances(
                standard, lengths[rows], self.series[of_class], self.lengths[of_class], made.shape[1]
            )
            nearest = _mean_of_nearest(distances, len(of_class))
            nearest *= 1 - ROUNDING  # equal distances may differ in their last bits, by what else is computed
            percentile[rows] = np.searchsorted(np.sort(self.own_distance[of_class]), nearest) / len(of_class)
        return percentile

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything but ``info`` as plain arrays by name, for a file."""
        names = ("series", "labels", "lengths", "own_distance")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], info: SeriesInfo) -> PlausibilityReference:
        """Build from :meth:`to_arrays`'s output; ``info`` is that of the fit."""
        return cls(info=info.of_series, **arrays)


def _evenly_spaced(rows: IntArray) -> IntArray:
    """Return at most 500 of the rows, at equal distances."""
    if len(rows) <= PER_CLASS:
        return rows
    return np.asarray(rows[np.linspace(0, len(rows) - 1, PER_CLASS).round().astype(np.int64)])


def _standardised(X: FloatArray, lengths: IntArray, info: SeriesInfo) -> FloatArray:
    """Return standardised, flattened series with padding set to 0 (batch, time · features), in float32."""
    inside = length_mask(lengths, len(X), X.shape[1])[..., None]
    standard = np.where(inside, info.scaler.transform(X), 0.0).astype(np.float32)
    return standard.reshape(len(X), X.shape[1] * X.shape[2])


def _distances(a: FloatArray, a_lengths: IntArray, b: FloatArray, b_lengths: IntArray, n_steps: int) -> FloatArray:
    """Return root mean square differences (rows of a, rows of b) over the entries that both series have.

    The mean is over steps, the sum over features.
    """
    if np.isnan(a.sum()) or np.isnan(b.sum()):
        return _distances_with_gaps(a, a_lengths, b, b_lengths, n_steps)
    a_inside = length_mask(a_lengths, len(a), n_steps).astype(np.float32)
    b_inside = length_mask(b_lengths, len(b), n_steps).astype(np.float32)
    a_squares = (a**2).reshape(len(a), n_steps, -1).sum(2)  # (rows of a, time)
    b_squares = (b**2).reshape(len(b), n_steps, -1).sum(2)
    # Σ (a - b)² = Σ a² + Σ b² - 2 Σ ab; padding is 0 in the products and masked in the squares.
    whole = a_squares @ b_inside.T + a_inside @ b_squares.T
    squares = whole - 2 * (a @ b.T)
    squares[squares < ROUNDING * whole] = 0.0  # equal series, but for rounding
    return np.asarray(np.sqrt(squares / (a_inside @ b_inside.T)))


def _distances_with_gaps(
    a: FloatArray, a_lengths: IntArray, b: FloatArray, b_lengths: IntArray, n_steps: int
) -> FloatArray:
    """Do what :func:`_distances` does, with a mask of entries instead of one of steps; infinite if none is shared."""
    n_features = a.shape[1] // n_steps

    def measured(x: FloatArray, lengths: IntArray) -> tuple[FloatArray, FloatArray]:
        known = ~np.isnan(x) & np.repeat(length_mask(lengths, len(x), n_steps), n_features, axis=1)
        return np.where(known, x, 0.0), known.astype(np.float32)

    (a, a_known), (b, b_known) = measured(a, a_lengths), measured(b, b_lengths)
    whole = a**2 @ b_known.T + a_known @ (b**2).T
    squares = whole - 2 * (a @ b.T)
    squares[squares < ROUNDING * whole] = 0.0
    common = a_known @ b_known.T / n_features
    return np.asarray(np.sqrt(np.divide(squares, common, out=np.full(common.shape, np.inf), where=common > 0)))


def _mean_of_nearest(distances: FloatArray, n_references: int) -> FloatArray:
    """Return the mean of the 5 smallest distances of each row (rows, references); NaN with fewer than 2 references."""
    k = min(NEIGHBOURS, n_references - 1)  # a reference series has one neighbour less than there are series
    if k < 1:
        return np.full(len(distances), np.nan)
    return np.asarray(np.partition(distances, k - 1, axis=1)[:, :k].mean(1))
