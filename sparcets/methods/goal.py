"""What a call of ``explain`` asks for, bound to the classes or the numbers of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, StrArray
from sparcets.core.errors import TargetError, quoted
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import Numbers, Outcome, is_within
from sparcets.core.target import Not, NumberTarget, check_target, excluded_class
from sparcets.methods.compatibility import NOISE, predict_again
from sparcets.models.base import Regressor
from sparcets.models.views import Goal

MOST_CLASSES = 4  # that are tried for a query if any class but one is asked for, the most probable ones
OTHERWISE = "another number"  # name of the class beyond a goal


def only_target(target: int | str | None, info: SeriesInfo) -> int | None:
    """Return the index of the class that the settings of a method name as the only target, or None."""
    return None if target is None else int(check_target([target], n_queries=1, class_names=info.class_names)[0])


def is_one_each(values: Any) -> bool:
    """Return whether values are one per query."""
    return hasattr(values, "__len__") and not isinstance(values, str) and getattr(values, "shape", None) != ()


def runner_up(proba: FloatArray) -> IntArray:
    """Return the second most probable class of each query: a stable sort, so that it is never the prediction itself.

    >>> runner_up(np.array([[0.4, 0.4, 0.2], [0.2, 0.3, 0.5]]))
    array([1, 1])
    """
    return np.asarray(np.argsort(-proba, axis=1, kind="stable")[:, 1], dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundTarget:
    """A target of ``explain``: a class each, any class but one, or where the numbers of a regressor have to lie.

    Attributes
    ----------
    asked
        For all queries, or one each: classes, None for the runner-up, or indices among ``numbers``.
    info, owner
        The series and classes, or numbers, of the fit; and the name of the explainer, for messages.
    own
        The only class that it was fitted for, or None.
    excluded
        If any class but one is asked for, the index of that one.
    numbers
        For a regressor, the different targets.
    checked
        Whether ``asked`` holds indices (queries,) already, or None.
    """

    asked: Any
    info: SeriesInfo
    owner: str
    own: int | None = None
    excluded: int | None = None
    numbers: tuple[NumberTarget, ...] = ()
    checked: bool = False

    @classmethod
    def bind(cls, target: Any, info: SeriesInfo, *, own: int | None, owner: str) -> BoundTarget:
        """Bind what was given to ``explain``; raise if the model has no such targets."""
        bound = cls(asked=target, info=info, owner=owner, own=own)
        if info.outcome is not None:
            one = isinstance(target, NumberTarget) or not isinstance(target, (list, tuple, np.ndarray))
            given = [target] if one else target
            for each in given:
                if not isinstance(each, NumberTarget):
                    raise TargetError(
                        "the model predicts numbers: the target must be sp.AtLeast(30), sp.AtMost(30), "
                        f"sp.Between(20, 30) or sp.Change(5), or one of these per query, got {quoted(each)}."
                    )
                each.outputs(info.outcome.names)  # raises if there is no such output
            if not len(given):
                raise TargetError("target must be one target, or one per query, got none.")
            numbers = tuple(dict.fromkeys(given))
            return replace(bound, numbers=numbers, asked=0 if one else np.array([numbers.index(t) for t in given]))
        if isinstance(target, NumberTarget):
            raise TargetError(
                f"{quoted(target)} is a target for a model that predicts numbers, sp.wrap(model, task='regression'); "
                f"this one predicts the classes {', '.join(info.class_names)}."
            )
        if isinstance(target, Not):
            excluded = excluded_class(target, info.class_names, own=own, owner=owner)
            return replace(bound, asked=None, excluded=excluded)
        return bound

    def of_queries(self, n_queries: int) -> IntArray | None:
        """Return the class of each query, or the index of its target among ``numbers``; None for the runner-up."""
        if self.numbers:
            if is_one_each(self.asked) and len(self.asked) != n_queries:
                raise TargetError(
                    f"target must be one target, or one per query: {n_queries} queries came with {len(self.asked)} "
                    "targets."
                )
            return np.broadcast_to(self.asked, (n_queries,)).astype(np.int64)
        if self.asked is None:
            return None if self.own is None else np.full(n_queries, self.own)
        targets = check_target(self.asked, n_queries=n_queries, class_names=self.info.class_names)
        if self.own is not None and (targets != self.own).any():
            raise TargetError(
                f"this {self.owner} was fitted for the target {quoted(self.info.class_names[self.own])} alone. "
                "Ask for that, or fit one with target=None for every class."
            )
        return targets

    def check(self, n_queries: int) -> BoundTarget:
        """Return the target with the class of each query looked up, so that what is wrong is known at once."""
        return replace(self, asked=self.of_queries(n_queries), checked=True)

    def of_block(self, first: int, stop: int) -> IntArray | None:
        """Return what :meth:`of_queries` does, of some consecutive queries."""
        asked = self.asked[first:stop] if is_one_each(self.asked) else self.asked
        return asked if self.checked else replace(self, asked=asked).of_queries(stop - first)

    def words(self, index: IntArray) -> StrArray:
        """Return targets of a regressor in words."""
        outcome = outcome_of(self.info)
        return np.array([one.describe(outcome.names, outcome.units) for one in self.numbers])[index]

    def goals(self, index: IntArray, before: FloatArray) -> tuple[FloatArray, list[tuple[IntArray, Goal]]]:
        """Return the bounds of each query (batch, outputs, 2), and the queries of each goal.

        Parameters
        ----------
        index
            Target of each query.
        before
            What the regressor predicts for them (batch, outputs).
        """
        bounds = np.empty((*before.shape, 2))
        for k, target in enumerate(self.numbers):
            bounds[index == k] = target.bounds(before[index == k], outcome_of(self.info).names)
        keys = np.concatenate([index[:, None], bounds.reshape(len(bounds), -1)], axis=1)
        group = np.unique(keys, axis=0, return_inverse=True)[1].ravel()
        rows = [np.flatnonzero(group == k) for k in range(int(group.max()) + 1)]
        words = self.words(index)
        return bounds, [(some, Goal(bounds[some[0]], (str(words[some[0]]), OTHERWISE))) for some in rows]


def outcome_of(info: SeriesInfo) -> Outcome:
    """Return what a regressor predicts."""
    assert info.outcome is not None
    return info.outcome


def regressor_of(explainer: Any) -> Regressor:
    """Return the model of an explainer of numbers."""
    model: Any = explainer.classifier
    assert isinstance(model, Regressor)
    return model


def other_classes(proba: FloatArray, excluded: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield queries, by index, and classes to try for them, the most probable ones first.

    >>> [(rows.tolist(), classes.tolist()) for rows, classes in other_classes(np.array([[0.7, 0.1, 0.2]]), 0)]
    [([0], [2]), ([0], [1])]
    """
    predicted = proba.argmax(1)
    others = np.where(np.arange(proba.shape[1]) == excluded, -np.inf, proba)
    ranked = np.argsort(-others, axis=1, kind="stable")[:, : min(MOST_CLASSES, proba.shape[1] - 1)]
    ranked[predicted != excluded] = predicted[predicted != excluded, None]  # they are in another class as they are
    for rank in range(ranked.shape[1]):
        rows = np.arange(len(proba)) if rank == 0 else np.flatnonzero(predicted == excluded)
        if len(rows):
            yield rows, ranked[rows, rank]


def best_of_classes(parts: Sequence[Explanation], n: int) -> Explanation:
    """Return the best ``n`` answers of each query: believed ones first, then valid ones, then those that change less.

    Parameters
    ----------
    parts
        For several classes, ``n`` answers to each of some queries.
    n
        Number of answers.
    """
    tried = join(list(parts))
    query = tried.query_index.reshape(-1, n)[:, 0]  # of each n answers
    rank_by = np.stack([tried.believed, tried.valid, -tried.share_changed]).reshape(3, -1, n).mean(2)
    order = np.lexsort((*-rank_by[::-1], query))
    best = order[np.unique(query[order], return_index=True)[1]]
    return tried[(best[:, None] * n + np.arange(n)).ravel()]


def in_numbers(
    answers: Explanation,
    regressor: Regressor,
    info: SeriesInfo,
    *,
    words: StrArray,
    before: FloatArray,
    bounds: FloatArray,
) -> Explanation:
    """Return answers about two classes, within a goal and beyond it, as answers about numbers.

    Parameters
    ----------
    answers
        The same number of answers to each query.
    regressor, info
        The explained model, and the names of its numbers.
    words, before, bounds
        Of each query, its target, its numbers (batch, outputs), and those that count (batch, outputs, 2).
    """
    n, outcome = len(answers) // len(before), outcome_of(info)
    numbers = Numbers(before=np.repeat(before, n, 0), after=np.repeat(before, n, 0), bounds=np.repeat(bounds, n, 0))
    moved = np.flatnonzero(answers.changed.any((1, 2)))
    if len(moved):
        some = answers[moved]
        numbers.after[moved] = regressor.outputs_unchecked(some.counterfactual, some.lengths)
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
