"""The routes of the API, version 1."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response

from sparcets import __version__
from sparcets.studio import data, exports, results
from sparcets.studio.jobs import Jobs
from sparcets.studio.models import (
    Catalog,
    CatalogEntry,
    ClassifierRecord,
    DatasetRecord,
    ErrorResponse,
    ExplainerRecord,
    ExplainRequest,
    ExplainResponse,
    ExportRequest,
    FitExplainer,
    Id,
    Job,
    OpenDataset,
    QueryPage,
    Series,
    Status,
    TrainClassifier,
)
from sparcets.studio.service import StudioService
from sparcets.studio.snippet import python_code

PREFIX = "/api/v1"
OWN_MODEL = "your own model, as it is; nothing is trained"
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorResponse, "description": "Error with code and message."}
}
FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def build_router(service: StudioService, jobs: Jobs) -> APIRouter:
    """Return the API of one studio."""
    router = APIRouter(prefix=PREFIX, responses=ERRORS)
    for add in (_add_overview, _add_datasets, _add_models, _add_jobs, _add_explanations):
        add(router, service, jobs)
    return router


def _add_overview(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    limits = service.limits

    @router.get("/status", tags=["overview"])
    def status() -> Status:
        """Return the version and the limits."""
        return Status(
            version=__version__,
            workspace=service.workspace.folder.name,
            upload_bytes=limits.upload_bytes,
            rows=limits.rows,
            answers=limits.answers,
            seconds=limits.seconds,
        )

    @router.get("/catalog", tags=["overview"])
    def catalog() -> Catalog:
        """List the data sets, classifiers and explainers that can be selected by name."""
        from sparcets.datasets.load import DATASETS
        from sparcets.explainers import EXPLAINERS
        from sparcets.networks import ARCHITECTURES

        def entries(registry: Any) -> list[CatalogEntry]:
            return [CatalogEntry(name=name, about=registry.about.get(name, "")) for name in registry]

        own = [] if jobs.model is None else [CatalogEntry(name=jobs.model.name, about=OWN_MODEL)]
        return Catalog(
            datasets=entries(DATASETS), classifiers=[*own, *entries(ARCHITECTURES)], explainers=entries(EXPLAINERS)
        )


def _add_datasets(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    workspace = service.workspace

    @router.get("/datasets", tags=["data"])
    def datasets() -> list[DatasetRecord]:
        """List the data sets of the workspace."""
        return workspace.datasets()

    @router.post("/datasets", tags=["data"])
    async def open_dataset(request: OpenDataset) -> DatasetRecord:
        """Open a data set by name; opening it again returns the same record."""
        record, dataset = await service.run(lambda: data.open_by_name(workspace, request.name, jobs.seed))
        service.put(record.id, dataset)
        return record

    @router.post("/datasets/upload", tags=["data"], status_code=201, openapi_extra=FILE)
    async def upload(
        request: Request, filename: Annotated[str, Query(min_length=1, max_length=255, examples=["gait.csv"])]
    ) -> DatasetRecord:
        """Upload a .csv or .npz file; the body is the file itself."""
        record, dataset = await data.receive(
            workspace, filename, request.stream(), service.run, service.limits, jobs.seed
        )
        service.put(record.id, dataset)
        return record

    @router.get("/datasets/{name}", tags=["data"])
    def dataset(name: Id) -> DatasetRecord:
        """Return the metadata of a data set."""
        return workspace.dataset(name)

    @router.delete("/datasets/{name}", tags=["data"], status_code=204, response_model=None)
    def remove_dataset(name: Id) -> None:
        """Remove a data set that no classifier uses."""
        jobs.check_unused(name)
        workspace.remove("datasets", name)

    @router.get("/datasets/{name}/series/{row}", tags=["data"])
    async def series(name: Id, row: Annotated[int, Path(ge=0, le=100_000_000)]) -> Series:
        """Return a test series."""
        return await service.run(lambda: results.series(service.dataset(name), row))


def _add_models(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    workspace = service.workspace

    @router.get("/classifiers", tags=["models"])
    def classifiers(dataset: Id | None = None) -> list[ClassifierRecord]:
        """List the classifiers, of all data sets or of one."""
        return [c for c in workspace.classifiers() if dataset in (None, c.dataset)]

    @router.post("/classifiers", tags=["models"], status_code=202)
    def train_classifier(request: TrainClassifier) -> Job:
        """Start to train a classifier; the job reports progress, and its result is the classifier's id."""
        from sparcets.networks import ARCHITECTURES

        if not jobs.is_own(request.architecture):
            ARCHITECTURES.location(request.architecture)
        workspace.dataset(request.dataset)
        return jobs.submit(request)

    @router.delete("/classifiers/{name}", tags=["models"], status_code=204, response_model=None)
    def remove_classifier(name: Id) -> None:
        """Remove a classifier that no explainer uses."""
        jobs.check_unused(name)
        workspace.remove("classifiers", name)

    @router.get("/classifiers/{name}/queries", tags=["models"])
    async def queries(
        name: Id,
        offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        predicted: Annotated[str | None, Query(max_length=200)] = None,
        wrong: bool = False,
    ) -> QueryPage:
        """List the test series with labels and predictions; ``wrong``: only those that are misclassified."""
        record = workspace.classifier(name)

        def find() -> QueryPage:
            dataset, proba = service.dataset(record.dataset), service.proba(name)
            return results.query_page(
                dataset, proba, predicted=predicted, wrong=wrong, page=slice(offset, offset + limit)
            )

        return await service.run(find)

    @router.get("/explainers", tags=["models"])
    def explainers(classifier: Id | None = None) -> list[ExplainerRecord]:
        """List the explainers, of all classifiers or of one."""
        return [e for e in workspace.explainers() if classifier in (None, e.classifier)]

    @router.post("/explainers", tags=["models"], status_code=202)
    def fit_explainer(request: FitExplainer) -> Job:
        """Start to fit an explainer to a classifier; the job's result is the explainer's id."""
        from sparcets.explainers import EXPLAINERS

        EXPLAINERS.location(request.method)
        workspace.classifier(request.classifier)
        return jobs.submit(request)

    @router.delete("/explainers/{name}", tags=["models"], status_code=204, response_model=None)
    def remove_explainer(name: Id) -> None:
        """Remove an explainer."""
        workspace.remove("explainers", name)


def _add_jobs(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    @router.get("/jobs", tags=["jobs"])
    def all_jobs() -> list[Job]:
        """List the training jobs since the start of the studio, oldest first."""
        return jobs.all()

    @router.get("/jobs/{name}", tags=["jobs"])
    def job(name: Id) -> Job:
        """Return the progress of a training job."""
        return jobs.get(name)

    @router.delete("/jobs/{name}", tags=["jobs"])
    def cancel(name: Id) -> Job:
        """Cancel a training job and remove its files."""
        return jobs.cancel(name)


def _add_explanations(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    @router.post("/explanations", tags=["explanations"])
    async def explain(request: ExplainRequest) -> ExplainResponse:
        """Return counterfactuals for one query or a batch."""
        return await service.run(lambda: service.answers.respond(request))

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
        return await service.render(lambda: python_code(service.workspace, request).encode())
    explanation = service.answers.known(request)
    if explanation is None:
        explanation = await service.run(lambda: service.answers.explanation(request))
    numbered = replace(explanation, query_index=np.array(request.rows)[explanation.query_index])
    return await service.render(lambda: exports.render(numbered, kind, request.shown))
