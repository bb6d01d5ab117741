"""What a call of ``explain`` asks for, where it is not a class: any class but one, or a number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, StrArray
from sparcets.core.errors import ConfigError, TargetError, quoted
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import Numbers, Outcome, is_within
from sparcets.core.progress import Bar, progress_bar
from sparcets.core.target import Not, NumberTarget, check_target, excluded_class
from sparcets.methods.compatibility import NOISE, predict_again
from sparcets.methods.request import CallOptions, QueryBlock
from sparcets.models.base import Regressor
from sparcets.models.views import WITHIN, Goal, Within

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer


def only_target(target: int | str | None, info: SeriesInfo) -> int | None:
    """Return the index of the class that the settings of a method name as the only target, or None."""
    return None if target is None else int(check_target([target], n_queries=1, class_names=info.class_names)[0])


def settle_target(
    target: Any, options: CallOptions, info: SeriesInfo, *, own: int | None, owner: str
) -> tuple[CallOptions, Any]:
    """Return the options of a call for what ``explain`` was asked for, and what is left to look up for each query.

    Parameters
    ----------
    target
        As given to ``explain``.
    options
        Of the call.
    info
        The series and classes, or numbers, of the fit.
    own, owner
        The only class that the explainer was fitted for, or None; and its name, for messages.
    """
    if info.outcome is not None:
        if options.confidence is not None:
            raise ConfigError(
                "confidence is a probability of a class; a regressor has none. Narrow the target instead."
            )
        goals, index = _distinct(target)
        for goal in goals:
            goal.outputs(info.outcome.names)  # raises if there is no such output
        return replace(options, goals=goals), index
    if isinstance(target, NumberTarget):
        raise TargetError(
            f"{quoted(target)} is a target for a model that predicts numbers, sp.wrap(model, task='regression'); this "
            f"one predicts the classes {', '.join(info.class_names)}."
        )
    if isinstance(target, Not):
        excluded = excluded_class(target, info.class_names, own=own, owner=owner)
        return replace(options, excluded=excluded), None
    return options, target


def _distinct(target: Any) -> tuple[tuple[NumberTarget, ...], int | IntArray]:
    """Return the different targets of a call, and the index of each query's among them."""
    given = (
        [target] if isinstance(target, NumberTarget) or not isinstance(target, (list, tuple, np.ndarray)) else target
    )
    for one in given:
        if not isinstance(one, NumberTarget):
            raise TargetError(
                f"the model predicts numbers: the target must be sp.AtLeast(30), sp.AtMost(30), sp.Between(20, 30) or "
                f"sp.Change(5), or one of these per query, got {quoted(one)}."
            )
    goals = tuple(dict.fromkeys(given))
    if isinstance(target, NumberTarget):
        return goals, 0
    return goals, np.array([goals.index(one) for one in given], dtype=np.int64)


def index_of_each(index: Any, n_queries: int) -> IntArray:
    """Return the index of each query's target (batch,) among the goals of a call, from what is left to look up."""
    each = np.asarray(index)
    if each.ndim and len(each) != n_queries:
        raise TargetError(
            f"target must be one target, or one per query: {n_queries} queries came with {len(each)} targets."
        )
    return np.broadcast_to(each, (n_queries,)).astype(np.int64)


def target_words(goals: tuple[NumberTarget, ...], outcome: Outcome) -> StrArray:
    """Return the targets of a call in words."""
    return np.array([goal.describe(outcome.names, outcome.units) for goal in goals])


MOST_CLASSES = 4  # that are tried for each query, the most probable ones


def answer_any_other(explainer: BaseExplainer[Any], block: QueryBlock, options: CallOptions, bar: Bar) -> Explanation:
    """Answer each query by the class, other than ``options.excluded``, whose answers are best.

    Parameters
    ----------
    explainer
        Fitted.
    block, options, bar
        The queries, what holds for all of them, and the progress.
    """
    assert options.excluded is not None
    of_classes, parts = replace(options, excluded=None), []
    for batch in block.batches(explainer.config.batch_size):
        before = explainer.classifier.outputs_unchecked(batch.series.values, batch.series.lengths)
        with progress_bar("", None, show=False) as unseen:  # every class of a query would count

            def answer(part: QueryBlock, unseen: Bar = unseen) -> Explanation:
                return explainer._answer_block(part, of_classes, unseen)

            parts.append(_best_of_classes(batch, options.excluded, before, answer))
        bar.advance(len(batch))
    return join(parts)


def _best_of_classes(
    block: QueryBlock, excluded: int, before: FloatArray, answer: Callable[[QueryBlock], Explanation]
) -> Explanation:
    """Return the best answers of each query: believed ones first, then valid ones, then those that change less.

    Parameters
    ----------
    block
        The queries.
    excluded
        The class that answers must not be in.
    before
        Probabilities of the queries (batch, classes).
    answer
        Answers a block with one target class per query.
    """
    predicted = before.argmax(1)
    others = np.where(np.arange(before.shape[1]) == excluded, -np.inf, before)
    ranked = np.argsort(-others, axis=1, kind="stable")[:, : min(MOST_CLASSES, before.shape[1] - 1)]
    ranked[predicted != excluded] = predicted[predicted != excluded, None]  # they are in another class as they are
    rows, parts, n = np.arange(len(block)), [], 1
    for rank in range(ranked.shape[1]):
        rows = rows if rank == 0 else np.flatnonzero(predicted == excluded)
        if len(rows):
            part = answer(block.select(rows, ranked[rows, rank]))
            n = len(part) // len(rows)
            parts.append(replace(part, query_index=np.repeat(block.first + rows, n)))
    tried = join(parts)
    query = tried.query_index.reshape(-1, n)[:, 0] - block.first  # of each n answers
    rank_by = np.stack([tried.believed, tried.valid, -tried.share_changed]).reshape(3, -1, n).mean(2)
    order = np.lexsort((*-rank_by[::-1], query))
    best = order[np.unique(query[order], return_index=True)[1]]
    return tried[(best[:, None] * n + np.arange(n)).ravel()]


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
    before = regressor.outputs_unchecked(block.series.values, block.series.lengths)
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
        part = block.select(rows, np.full(len(rows), WITHIN, dtype=np.int64))
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
    view = type(explainer)(Within(regressor_of(explainer), goal, info.outcome.scale), explainer.config)
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
        numbers.after[moved] = regressor.outputs_unchecked(answers.counterfactual[moved], lengths)
    # The number itself decides: a model may give other last bits in another batch.
    status, reason = answers.status.copy(), answers.reason.astype(object)
    asked = np.flatnonzero(numbers.reached & regressor.may_contradict)
    if len(asked):
        again = predict_again(regressor, replace(answers, info=info), asked)
        other = ~is_within(again, numbers.bounds[asked])
        other &= (np.abs(again - numbers.after[asked]) > NOISE * outcome.scale).any(1)
        for row, number in zip(asked[other], again[other], strict=True):
            first, numbers.after[row] = outcome.say(numbers.after[row]), number
            reason[row] = f"the model contradicts itself: asked twice about the same series, it predicts {first} once"
    reached, found = numbers.reached, status != "not_found"
    status[reached & ~found] = "refined"
    reason[reached] = ""
    status[~reached] = "not_found"
    for i in np.flatnonzero(~reached):
        why = str(reason[i]) or "the answer is not within the target"
        reason[i] = f"{why}; the number reached {outcome.say(numbers.after[i], bounds=numbers.bounds[i])}"
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
