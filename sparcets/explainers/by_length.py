"""Queries of unequal length: answered length by length, each cut to its own, so that padding is never seen."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from sparcets.classifiers.at_length import at_length
from sparcets.classifiers.base import Classifier
from sparcets.explainers.request import Answers, Request
from sparcets.padding import rows_by_length

E = TypeVar("E", bound=Any)  # an explainer


def prolonged(explainer: E, n_steps: int) -> E:
    """Return a fitted explainer for queries that have more steps than the training series."""
    view = copy(explainer)
    view._set_fitted(replace(explainer._fitted(), n_steps=n_steps), explainer.constraints_, explainer._target)
    return view


def answer_by_length(
    request: Request, classifier: Classifier, answer: Callable[[Request, Classifier], Answers]
) -> Answers:
    """Answer padded queries by a method that takes queries of one length.

    Parameters
    ----------
    request
        Queries with their true lengths.
    classifier
        The explained one, of padded series.
    answer
        Answers queries of one length without padding, given a classifier of such series.
    """
    assert request.lengths is not None
    n, n_steps = request.n, request.X.shape[1]
    parts, places = [], []
    counterfactual = np.repeat(request.X, n, axis=0)  # (batch * n, time, features)
    for length, rows in rows_by_length(request.lengths):
        part = answer(request.cut(rows, length), at_length(classifier, length, n_steps))
        place = (rows[:, None] * n + np.arange(n)).ravel()
        counterfactual[place, :length] = part.counterfactual
        parts.append(part)
        places.append(place)
    order = np.argsort(np.concatenate(places))

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    return Answers(
        counterfactual=counterfactual,
        status=joined("status"),
        reason=joined("reason"),
        proba=None if parts[0].proba is None else joined("proba"),
        families=parts[0].families,
        support=None if parts[0].support is None else joined("support"),
    )
