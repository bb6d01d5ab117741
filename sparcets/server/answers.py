"""Explains a batch of series, and writes each answer as JSON."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import to_json

from sparcets.core import target as targets
from sparcets.core.constraints import Constraints
from sparcets.core.errors import SparcetsError, TargetError
from sparcets.core.evidence import find_segments
from sparcets.core.series import FloatArray
from sparcets.web.errors import code_of

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation
    from sparcets.methods.base import BaseExplainer


def target_of(given: Any) -> Any:
    """Return a target of a request as ``explain`` takes it.

    >>> target_of({"between": [20, 30], "output": "pressure"})
    Between(low=20, high=30, output='pressure')
    """
    if not isinstance(given, dict):
        return given
    output = {"output": given["output"]} if given.get("output") is not None else {}
    if "not" in given:
        return targets.Not(given["not"])
    if "between" in given:
        return targets.Between(*given["between"], **output)
    kinds: dict[str, Any] = {"at_least": targets.AtLeast, "at_most": targets.AtMost, "change": targets.Change}
    return next(kinds[name](given[name], **output) for name in kinds if name in given)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Query:
    """One series of a request (time, features)."""

    X: FloatArray
    index: int = 0  # in the request
    id: str | None = None
    side: dict[str, Any] | None = None  # its side inputs by name
    counterfactual: bool = True  # whether its answers hold the whole counterfactual
    text: bool = True  # and a description in sentences


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a series has no answer: status, code and message of the response."""

    status: int
    code: str
    message: str


Outcome = bytes | Failure  # the answers of a series, as JSON objects with commas between them; or why there are none


def answer_batch(explainer: BaseExplainer[Any], question: str, queries: Sequence[Query]) -> list[Outcome]:
    """Return the answers to series of one shape, all asked the same question; where one of them fails, it alone."""
    try:
        return list(_answer(explainer, question, queries))
    except SparcetsError as error:
        failure = Failure(HTTPStatus.UNPROCESSABLE_ENTITY, code_of(error), str(error))
    except (Exception, SystemExit):  # of the user's model: other requests, and the worker, go on
        log.exception("a series could not be explained")
        failure = Failure(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "unexpected error in the server; see its log.")
    if len(queries) == 1:
        return [failure]
    return [answer_batch(explainer, question, [query])[0] for query in queries]


def _answer(explainer: BaseExplainer[Any], question: str, queries: Sequence[Query]) -> list[bytes]:
    info = explainer._fitted()
    X, given = np.stack([query.X for query in queries]), json.loads(question)  # without what is as by default
    target, constraints = target_of(given.pop("target", None)), given.pop("constraints", None)
    if target is None and info.is_regression:
        raise TargetError(
            f'the model predicts {info.predicts}: say where they have to lie, such as {{"at_least": 30}}.'
        )
    named = any(query.id is not None for query in queries)
    side = queries[0].side
    explanation = explainer.explain(
        X,
        target,
        constraints=None if constraints is None else Constraints(**constraints),
        lengths=np.full(len(X), X.shape[1]) if info.unequal else None,
        side=None
        if side is None
        else {name: np.array([(query.side or {})[name] for query in queries]) for name in side},
        ids=[query.id or "" for query in queries] if named else None,
        progress=False,
        **given,
    )
    n = len(explanation) // len(queries)
    parts = [to_json(answer, inf_nan_mode="null") for answer in _answers(explanation, queries, n)]
    return [b",".join(parts[i * n : (i + 1) * n]) for i in range(len(queries))]


def _answers(e: Explanation, queries: Sequence[Query], n: int) -> list[dict[str, Any]]:
    """Return each answer as plain values; what all of them need is computed once."""
    from sparcets.show.edit_text import as_dict

    segments, names = find_segments(e.changed), e.feature_names
    changed: list[list[dict[str, Any]]] = [[] for _ in range(len(e))]
    rows = zip(
        *(part.tolist() for part in (segments.series, segments.feature, segments.start, segments.end)), strict=True
    )
    for i, feature, start, end in rows:
        whole = queries[i // n].counterfactual  # which then holds the values already
        values = None if whole else e.counterfactual[i, start:end, feature].tolist()
        changed[i].append({"feature": names[feature], "start": start, "end": end, "values": values})
    names_of_columns = ("status", "reason", "valid", "probability", "verdict", "share_changed")
    columns = {"target": e.target_names.tolist(), **{name: getattr(e, name).tolist() for name in names_of_columns}}
    before, after = (_said(e, predicted) for predicted in (e.prediction_before, e.prediction))
    support = e.support.tolist()
    found = []
    for i in range(len(e)):
        query = queries[i // n]
        steps = len(query.X)  # without the padding up to the longest series of the fit
        found.append(
            {
                "series": query.index,
                "id": query.id,
                "predicted": before[i],
                "prediction": after[i],
                **{name: values[i] for name, values in columns.items()},
                "support": dict(zip(e.families, support[i], strict=True)),
                "changed": changed[i],
                "edits": [as_dict(edit) for edit in e.edits(i)],
                "counterfactual": e.counterfactual[i, :steps].tolist() if query.counterfactual else None,
                "text": e.text(i) if query.text else None,
            }
        )
    return found


def _said(e: Explanation, predicted: np.ndarray[Any, Any]) -> list[Any]:
    """Return what the model says: the names of the classes, or its numbers by their names."""
    if e.info.is_regression:
        return [dict(zip(e.info.numbers.names, row, strict=True)) for row in predicted.tolist()]
    return [e.class_names[k] for k in predicted.tolist()]
