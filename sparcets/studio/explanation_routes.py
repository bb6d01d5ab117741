"""The routes of answers: explanations, curves, groups and exported files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from fastapi import APIRouter, Response

from sparcets.studio import exports, group
from sparcets.studio.jobs import Jobs
from sparcets.studio.models import AnswerRequest, ExplainRequest, ExplainResponse, ExportRequest
from sparcets.studio.service import StudioService
from sparcets.studio.snippet import python_code
from sparcets.studio.view_models import CurveResponse, GroupResponse

if TYPE_CHECKING:
    from sparcets.explanation.result import Explanation


def add_explanations(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    """Add the routes of answers and of what is made of them."""

    @router.post("/explanations", tags=["explanations"])
    async def explain(request: AnswerRequest) -> ExplainResponse:
        """Return counterfactuals for one query or a batch; drafts of them at once."""
        return await service.run(lambda: service.answers.respond(request), patient=not request.draft)

    @router.post("/curves", tags=["explanations"])
    async def curve(request: ExplainRequest) -> CurveResponse:
        """Return how belief falls as less may change in the first recording of a request, whatever its cap."""
        return await service.run(lambda: service.answers.curve(request), patient=True)

    @router.post("/groups", tags=["explanations"])
    async def together(request: ExplainRequest) -> GroupResponse:
        """Return what the answers of many recordings have in common; explain them before, a few at a time."""
        asked = request.model_copy(update={"answers": 1})
        explanation = await _explanation(service, asked)
        return await service.render(lambda: group.summarise(explanation, asked.rows))

    files: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The file.",
            "content": {kind: {"schema": {"type": "string"}} for kind in exports.MEDIA_TYPES.values()},
        }
    }

    @router.post("/exports/{kind}", tags=["explanations"], response_class=Response, responses=files)
    async def export(
        kind: Literal["png", "svg", "pdf", "csv", "npz", "html", "py"], request: ExportRequest
    ) -> Response:
        """Return answers as a file: figure, table of changes, explanation file, report, or Python code.

        Answers that were requested before are not computed again.
        """
        content = await _file(service, request, kind)
        name = f"explanation.{kind}"
        return Response(
            content,
            media_type=exports.MEDIA_TYPES[kind],
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


async def _file(service: StudioService, request: ExportRequest, kind: str) -> bytes:
    if kind == "py":
        dataset = service.workspace.explainer(request.explainer).dataset
        recordings = await service.run(lambda: service.recordings(dataset))
        return await service.render(lambda: python_code(service.workspace, request, recordings).encode())
    explanation = await _explanation(service, request)
    numbered = replace(explanation, query_index=np.array(request.rows)[explanation.query_index])
    return await service.render(lambda: exports.render(numbered, kind, request.shown))


async def _explanation(service: StudioService, request: ExplainRequest) -> Explanation:
    """Return the answers to a request, which wait for no search if they are in memory."""
    known = service.answers.known(request)
    return known if known is not None else await service.run(lambda: service.answers.explanation(request), patient=True)
