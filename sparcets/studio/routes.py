"""The API, version 1: what can be asked for, and where."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from sparcets import __version__
from sparcets.studio import data, results
from sparcets.studio.desk import Desk
from sparcets.studio.jobs import Jobs
from sparcets.studio.models import (
    Answers,
    Catalog,
    ClassifierRecord,
    Coming,
    DatasetRecord,
    Entry,
    Error,
    ExplainerRecord,
    Export,
    FitExplainer,
    Id,
    Job,
    OpenDataset,
    Queries,
    Question,
    Series,
    Status,
    TrainClassifier,
)

PREFIX = "/api/v1"
ERRORS: dict[int | str, dict[str, Any]] = {"4XX": {"model": Error, "description": "What is wrong, in words."}}
FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def build_router(desk: Desk, jobs: Jobs) -> APIRouter:
    """Return the API of one studio."""
    router = APIRouter(prefix=PREFIX, responses=ERRORS)
    for add in (_add_overview, _add_datasets, _add_models, _add_jobs, _add_answers):
        add(router, desk, jobs)
    return router


def _add_overview(router: APIRouter, desk: Desk, jobs: Jobs) -> None:
    limits = desk.limits

    @router.get("/status", tags=["overview"])
    def status() -> Status:
        """Say what is running, and its limits."""
        return Status(
            version=__version__,
            workspace=desk.workspace.folder.name,
            upload_bytes=limits.upload_bytes,
            rows=limits.rows,
            answers=limits.answers,
            seconds=limits.seconds,
        )

    @router.get("/catalog", tags=["overview"])
    def catalog() -> Catalog:
        """List the data sets, classifiers and explainers there are."""
        from sparcets.datasets.load import DATASETS
        from sparcets.explainers import EXPLAINERS
        from sparcets.networks import ARCHITECTURES

        def entries(registry: Any) -> list[Entry]:
            return [Entry(name=name, about=registry.about.get(name, "")) for name in registry]

        return Catalog(datasets=entries(DATASETS), classifiers=entries(ARCHITECTURES), explainers=entries(EXPLAINERS))


def _add_datasets(router: APIRouter, desk: Desk, jobs: Jobs) -> None:
    workspace = desk.workspace

    @router.get("/datasets", tags=["data"])
    def datasets() -> list[DatasetRecord]:
        """List the data sets of the workspace."""
        return workspace.datasets()

    @router.post("/datasets", tags=["data"])
    async def open_dataset(asked: OpenDataset) -> DatasetRecord:
        """Open a data set by name; a second time it is the same."""
        record, dataset = await desk.run(lambda: data.open_by_name(workspace, asked.name, jobs.seed))
        desk.put(record.id, dataset)
        return record

    @router.post("/datasets/upload", tags=["data"], status_code=201, openapi_extra=FILE)
    async def upload(
        request: Request, filename: Annotated[str, Query(min_length=1, max_length=255, examples=["gait.csv"])]
    ) -> DatasetRecord:
        """Upload a .csv or .npz file; the body is the file itself."""
        record, dataset = await data.receive(workspace, filename, request.stream(), desk.run, desk.limits, jobs.seed)
        desk.put(record.id, dataset)
        return record

    @router.get("/datasets/{name}", tags=["data"])
    def dataset(name: Id) -> DatasetRecord:
        """Describe a data set."""
        return workspace.dataset(name)

    @router.delete("/datasets/{name}", tags=["data"], status_code=204)
    def remove_dataset(name: Id) -> None:
        """Remove a data set that no classifier needs."""
        jobs.check_unused(name)
        workspace.remove("datasets", name)

    @router.get("/datasets/{name}/series/{row}", tags=["data"])
    async def series(name: Id, row: Annotated[int, Path(ge=0, le=100_000_000)]) -> Series:
        """Return a test series."""
        return await desk.run(lambda: results.series(desk.dataset(name), row))


def _add_models(router: APIRouter, desk: Desk, jobs: Jobs) -> None:
    workspace = desk.workspace

    @router.get("/classifiers", tags=["models"])
    def classifiers(dataset: Id | None = None) -> list[ClassifierRecord]:
        """List the classifiers, of all data sets or of one."""
        return [c for c in workspace.classifiers() if dataset in (None, c.dataset)]

    @router.post("/classifiers", tags=["models"], status_code=202)
    def train_classifier(asked: TrainClassifier) -> Job:
        """Begin to train a classifier; the job tells how far it is, and its result is the classifier's id."""
        from sparcets.networks import ARCHITECTURES

        ARCHITECTURES.location(asked.architecture)
        workspace.dataset(asked.dataset)
        return jobs.submit(asked)

    @router.delete("/classifiers/{name}", tags=["models"], status_code=204)
    def remove_classifier(name: Id) -> None:
        """Remove a classifier that no explainer needs."""
        jobs.check_unused(name)
        workspace.remove("classifiers", name)

    @router.get("/classifiers/{name}/queries", tags=["models"])
    async def queries(
        name: Id,
        offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        predicted: Annotated[str | None, Query(max_length=200)] = None,
        wrong: bool = False,
    ) -> Queries:
        """List the test series with their labels and what the classifier says; ``wrong``: those it gets wrong."""
        record = workspace.classifier(name)

        def listed() -> Queries:
            dataset, proba = desk.dataset(record.dataset), desk.proba(name)
            return results.queries(dataset, proba, predicted=predicted, wrong=wrong, page=slice(offset, offset + limit))

        return await desk.run(listed)

    @router.get("/explainers", tags=["models"])
    def explainers(classifier: Id | None = None) -> list[ExplainerRecord]:
        """List the explainers, of all classifiers or of one."""
        return [e for e in workspace.explainers() if classifier in (None, e.classifier)]

    @router.post("/explainers", tags=["models"], status_code=202)
    def fit_explainer(asked: FitExplainer) -> Job:
        """Begin to fit an explainer to a classifier; the job's result is the explainer's id."""
        from sparcets.explainers import EXPLAINERS

        EXPLAINERS.location(asked.method)
        workspace.classifier(asked.classifier)
        return jobs.submit(asked)

    @router.delete("/explainers/{name}", tags=["models"], status_code=204)
    def remove_explainer(name: Id) -> None:
        """Remove an explainer."""
        workspace.remove("explainers", name)


def _add_jobs(router: APIRouter, desk: Desk, jobs: Jobs) -> None:
    @router.get("/jobs", tags=["jobs"])
    def all_jobs() -> list[Job]:
        """List the trainings since the studio was started, the oldest first."""
        return jobs.all()

    @router.get("/jobs/{name}", tags=["jobs"])
    def job(name: Id) -> Job:
        """Say how far a training is."""
        return jobs.get(name)

    @router.delete("/jobs/{name}", tags=["jobs"])
    def cancel(name: Id) -> Job:
        """Cancel a training; nothing of it is left."""
        return jobs.cancel(name)


def _add_answers(router: APIRouter, desk: Desk, jobs: Jobs) -> None:
    @router.post("/explanations", tags=["answers"])
    async def explain(question: Question) -> Answers:
        """Say what would have to be different, for one query or a batch."""
        return await desk.run(lambda: desk.answer(question))

    @router.post("/explanations/ahead", tags=["answers"], status_code=204)
    def think_ahead(coming: Coming) -> None:
        """Say what may be asked next: it is worked out while nobody waits, in place of what was said before."""
        desk.think_ahead(coming.questions)

    files: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The file.",
            "content": {kind: {"schema": {"type": "string"}} for kind in results.MEDIA.values()},
        }
    }

    @router.post("/exports/{kind}", tags=["answers"], response_class=Response, responses=files)
    async def export(kind: Literal["png", "svg", "pdf", "csv", "npz", "py"], asked: Export) -> Response:
        """Return what is on the screen as a file: picture, table of changes, explanation, or the Python lines."""
        made = await desk.run(lambda: results.exported(desk, asked, kind))
        name = f"explanation.{kind}"
        return Response(
            made, media_type=results.MEDIA[kind], headers={"Content-Disposition": f'attachment; filename="{name}"'}
        )
