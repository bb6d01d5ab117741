"""Answers of fitted explainers: each query is explained once, and kept for the page, for exports and for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sparcets.studio import results
from sparcets.studio.cache import LruCache
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import Limits
from sparcets.studio.models import ConstraintsRequest, ExplainRequest, ExplainResponse

if TYPE_CHECKING:
    from sparcets.constraints.spec import Constraints
    from sparcets.explanation.result import Explanation
    from sparcets.studio.service import StudioService


@dataclass(eq=False)
class _Kept:
    """The answers to one query, and the response made of them."""

    explanation: Explanation
    response: ExplainResponse | None = None

    @property
    def nbytes(self) -> int:
        # Numbers of a response are Python objects, of about four times the size of those in an array.
        return (self.explanation.query.nbytes + self.explanation.counterfactual.nbytes) * 6


class Answers:
    """Explains recordings of a workspace, and keeps the most recent answers in memory."""

    def __init__(self, service: StudioService) -> None:
        self.service = service
        self._kept: LruCache[_Kept] = LruCache(service.limits.answer_bytes, lambda kept: kept.nbytes)

    def respond(self, request: ExplainRequest) -> ExplainResponse:
        """Return the response to a request."""
        check_size(request, self.service.limits.rows, self.service.limits)
        explanation = self.explanation(request)
        if len(request.rows) > 1:
            return results.to_response(explanation, request.rows)
        kept = self._kept.get(_key(request, request.rows[0]), lambda: _Kept(explanation))
        if kept.response is None:
            kept.response = results.to_response(explanation, request.rows)
        return kept.response

    def explanation(self, request: ExplainRequest) -> Explanation:
        """Return the answers to a request; only queries whose answers are not in memory are explained."""
        kept = self._find(request)
        left = [row for row, answers in kept.items() if answers is None]
        if left:
            asked = request.model_copy(update={"rows": left})
            check_size(asked, self.service.limits.rows, self.service.limits)
            found = self.explain(asked)
            for k, row in enumerate(left):
                kept[row] = self._keep(request, row, found[found.query_index == k])
        return _joined([kept[row] for row in request.rows])

    def known(self, request: ExplainRequest) -> Explanation | None:
        """Return the answers to a request if all of them are in memory."""
        kept = self._find(request)
        return None if None in kept.values() else _joined([kept[row] for row in request.rows])

    def _find(self, request: ExplainRequest) -> dict[int, _Kept | None]:
        """Return the answers that are in memory, by row."""
        check_size(request, self.service.limits.exported_rows, self.service.limits)
        self.service.workspace.path("explainers", request.explainer)  # raises if the explainer was removed meanwhile
        return {row: self._kept.find(_key(request, row)) for row in request.rows}

    def explain(self, request: ExplainRequest) -> Explanation:
        """Compute the answers to a request."""
        explainer = self.service.explainer(request.explainer)
        dataset = self.service.dataset(self.service.workspace.explainer(request.explainer).dataset)
        rows = np.array(request.rows)
        if rows.max() >= len(dataset.X_test):
            raise ApiError(
                422, "no_such_row", f"no test series {rows.max()}: there are {len(dataset.X_test)}, numbered from 0."
            )
        return explainer.explain(
            dataset.X_test[rows],
            target=request.target,
            constraints=to_constraints(request.constraints),
            sparsity=request.sparsity,
            n=request.answers,
            lengths=None if dataset.lengths_test is None else dataset.lengths_test[rows],
            ids=None if dataset.ids_test is None else dataset.ids_test[rows],
            subjects=None if dataset.subjects_test is None else dataset.subjects_test[rows],
            progress=False,
        )

    def _keep(self, request: ExplainRequest, row: int, explanation: Explanation) -> _Kept:
        kept = _Kept(explanation)
        self._kept.put(_key(request, row), kept)
        if request.target is None:  # the next request names the class that was the runner-up
            named = request.model_copy(update={"target": str(explanation.target_names[0])})
            self._kept.put(_key(named, row), kept)
        return kept


def _key(request: ExplainRequest, row: int) -> str:
    asked = request.model_copy(update={"rows": [row]})
    return asked.model_dump_json(include=set(ExplainRequest.model_fields))


def _joined(kept: Sequence[_Kept | None]) -> Explanation:
    """Return the answers to several queries, numbered in this order."""
    from sparcets.explanation.result import join

    parts = [answers.explanation for answers in kept if answers is not None]
    return join([replace(part, query_index=np.full(len(part), k)) for k, part in enumerate(parts)])


def to_constraints(rules: ConstraintsRequest) -> Constraints:
    """Return the constraints of a request as ``sp.Constraints``.

    >>> to_constraints(ConstraintsRequest(ranges={"pulse": (40, None)})).ranges
    {'pulse': (40.0, inf)}
    """
    from sparcets.constraints.spec import Constraints

    ranges = {
        f: (-np.inf if low is None else low, np.inf if high is None else high)
        for f, (low, high) in rules.ranges.items()
    }
    return Constraints(**{**rules.model_dump(), "ranges": ranges})


def check_size(request: ExplainRequest, rows: int, limits: Limits) -> None:
    """Raise an error for more than ``rows`` queries, or too many counterfactuals per query."""
    if len(request.rows) > rows:
        raise ApiError(413, "too_many_rows", f"{len(request.rows)} queries in one request; at most {rows}. Split them.")
    if request.answers > limits.answers:
        raise ApiError(413, "too_many_answers", f"{request.answers} answers to one query; at most {limits.answers}.")
