"""What a call of ``explain`` asks for, where it is not a class: any class but one, or a number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.arrays import IntArray, StrArray
from sparcets.errors import ConfigError, TargetError
from sparcets.explainers.request import CallOptions
from sparcets.explanation.outcome import Outcome
from sparcets.explanation.series_info import SeriesInfo
from sparcets.targets import Not, NumberTarget, excluded_class
from sparcets.validation import check_target


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
            f"{target!r} is a target for a model that predicts numbers, sp.wrap(model, task='regression'); this "
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
                f"sp.Change(5), or one of these per query, got {one!r}."
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
