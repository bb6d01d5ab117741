"""Answers about numbers: each target of a regressor is answered as a question of two classes, within it and beyond.

A method that finds counterfactuals of classes so answers for regressors, too. What the classes are depends on the
target: ``BaseExplainer._restrict`` gives a view of the fitted explainer what it has learnt about one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray, StrArray
from sparcets.classifiers.regressor import Regressor
from sparcets.classifiers.within import WITHIN, Goal, as_classifier
from sparcets.explainers.asked import target_words
from sparcets.explainers.request import CallOptions, QueryBlock
from sparcets.explanation.numbers import Numbers
from sparcets.explanation.result import Explanation, join
from sparcets.explanation.series_info import SeriesInfo
from sparcets.progress import Bar

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

OTHERWISE = "another number"


def answer_numbers(explainer: BaseExplainer[Any], block: QueryBlock, options: CallOptions, bar: Bar) -> Explanation:
    """Answer queries whose targets are those of ``options.goals``.

    Parameters
    ----------
    explainer
        Fitted, of a regressor.
    block, options, bar
        The queries, what holds for all of them, and the progress.
    """
    info, regressor, n = explainer._fitted(), regressor_of(explainer), options.n
    outcome = info.outcome
    assert outcome is not None
    assert block.target is not None
    before = regressor.predict_unchecked(block.X, block.lengths)
    if before.shape[1] != outcome.n_outputs:  # known of some wrapped models after a prediction only
        regressor.check_compatible(info, f"this {type(explainer).__name__}")
    bounds = np.empty((*before.shape, 2))
    for k, goal in enumerate(options.goals):
        rows = block.target == k
        bounds[rows] = goal.bounds(before[rows], outcome.names)
    words = target_words(options.goals, outcome)[block.target]
    parts = []
    for rows in _groups(block.target, bounds):
        view = two_classes(explainer, Goal(bounds[rows[0]], (str(words[rows[0]]), OTHERWISE)))
        lengths = None if block.lengths is None else block.lengths[rows]
        part = replace(block, X=block.X[rows], target=np.full(len(rows), WITHIN, dtype=np.int64), lengths=lengths)
        answers = view._answer_block(part, replace(options, goals=()), bar)
        parts.append(replace(answers, query_index=np.repeat(block.first + rows, n)))
    whole = join(parts)
    whole = whole[np.argsort(whole.query_index, kind="stable")]
    return _with_numbers(whole, regressor, info, words=words, before=before, bounds=bounds)


def _groups(target: IntArray, bounds: FloatArray) -> list[IntArray]:
    """Return the queries of each target; where it depends on the query, of each interval."""
    keys = np.concatenate([target[:, None], bounds.reshape(len(bounds), -1)], axis=1)
    _, group = np.unique(keys, axis=0, return_inverse=True)
    return [np.flatnonzero(group.ravel() == k) for k in range(int(group.max()) + 1)]


def regressor_of(explainer: BaseExplainer[Any]) -> Regressor:
    """Return the model of an explainer of numbers."""
    model: Any = explainer.classifier
    assert isinstance(model, Regressor)
    return model


def two_classes(explainer: BaseExplainer[Any], goal: Goal) -> BaseExplainer[Any]:
    """Return a fitted explainer of a regressor as one of the two classes of a goal."""
    info = explainer._fitted()
    assert info.outcome is not None
    view = type(explainer)(as_classifier(regressor_of(explainer), goal, info.outcome.scale), explainer.config)
    view._set_fitted(replace(info, class_names=goal.names), explainer.constraints_, None)
    explainer._restrict(view, goal)
    return view


def _with_numbers(
    answers: Explanation,
    regressor: Regressor,
    info: SeriesInfo,
    *,
    words: StrArray,
    before: FloatArray,
    bounds: FloatArray,
) -> Explanation:
    """Return answers about two classes as answers about numbers."""
    n, outcome = len(answers) // len(before), info.outcome
    assert outcome is not None
    numbers = Numbers(before=np.repeat(before, n, 0), after=np.repeat(before, n, 0), bounds=np.repeat(bounds, n, 0))
    moved = np.flatnonzero(answers.changed.any((1, 2)))
    if len(moved):
        lengths = None if answers.lengths is None else answers.lengths[moved]
        numbers.after[moved] = regressor.predict_unchecked(answers.counterfactual[moved], lengths)
    # The number itself decides: a model may give other last bits in another batch.
    status, reason = answers.status.copy(), answers.reason.astype(object)
    reached, found = numbers.reached, status != "not_found"
    status[reached & ~found] = "refined"
    reason[reached] = ""
    status[~reached] = "not_found"
    for i in np.flatnonzero(~reached):
        why = str(reason[i]) or "the answer is not within the target"
        reason[i] = f"{why}; the number reached {outcome.say(numbers.after[i])}"
    none = np.zeros((len(answers), 0))
    return replace(
        answers,
        info=info,
        target=np.repeat(words, n),
        status=status,
        reason=reason.astype(str),
        proba_before=none,
        proba_after=none,
        numbers=numbers,
    )
