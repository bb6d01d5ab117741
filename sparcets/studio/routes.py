"""The routes of the API, version 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Path, Query, Request, Response

from sparcets import __version__
from sparcets.studio import exports, models, results
from sparcets.studio.exports import python_code
from sparcets.studio.jobs import Jobs
from sparcets.studio.service import StudioService
from sparcets.studio.uploads import Uploads
from sparcets.studio.workspace import KIND_OF, KINDS, Workspace
from sparcets.web.errors import ERRORS

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation


def _add_explanations(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    """Add the routes of answers and of what is made of them."""

    @router.post("/explanations", tags=["explanations"])
    async def explain(request: models.AnswerRequest) -> models.ExplainResponse:
        """Return counterfactuals for one query or a batch; urgent ones first."""
        return await service.run(lambda: service.respond(request), patient=not request.urgent)

    @router.post("/curves", tags=["explanations"])
    async def curve(request: models.ExplainRequest) -> models.CurveResponse:
        """Return how belief falls as less may change in the first recording of a request, whatever its cap."""
        return await service.run(lambda: service.curve(request), patient=True)

    @router.post("/groups", tags=["explanations"])
    async def together(request: models.ExplainRequest) -> models.GroupResponse:
        """Return what the answers of many recordings have in common; explain them before, a few at a time."""
        asked = request.model_copy(update={"answers": 1})
        explanation = await _explanation(service, asked)
        return await service.run(lambda: results.summarise(explanation, asked.rows), renders=True)

    files: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "The file.",
            "content": {kind: {"schema": {"type": "string"}} for kind in exports.MEDIA_TYPES.values()},
        }
    }

    @router.post("/exports/{kind}", tags=["explanations"], response_class=Response, responses=files)
    async def export(
        kind: Literal["png", "svg", "pdf", "csv", "npz", "html", "py"], request: models.ExportRequest
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


async def _file(service: StudioService, request: models.ExportRequest, kind: str) -> bytes:
    if kind == "py":
        dataset = service.workspace.record(models.ExplainerRecord, request.explainer).dataset
        recordings = await service.run(lambda: service.recordings(dataset))
        own = service.model
        return await service.run(
            lambda: python_code(service.workspace, request, recordings, own).encode(), renders=True
        )
    explanation = await _explanation(service, request)
    numbered = replace(explanation, query_index=np.array(request.rows)[explanation.query_index])
    return await service.run(lambda: exports.render(numbered, kind, request.shown), renders=True)


async def _explanation(service: StudioService, request: models.ExplainRequest) -> Explanation:
    """Return the answers to a request, which wait for no search if they are in memory."""
    known = service.known(request)
    return known if known is not None else await service.run(lambda: service.explanation(request), patient=True)


PREFIX = "/api/v1"
OWN_MODEL = "your own model, as it is; nothing is trained"
FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


def build_router(service: StudioService, jobs: Jobs, uploads: Uploads) -> APIRouter:
    """Return the API of one studio."""
    router = APIRouter(prefix=PREFIX, responses=ERRORS)
    _add_overview(router, service, jobs)
    _add_datasets(router, service, jobs, uploads)
    for add in (_add_models, _add_explanations):
        add(router, service, jobs)
    for model in KIND_OF:
        _add_items(router, service.workspace, jobs, model)
    return router


def _add_overview(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    limits = service.limits

    @router.get("/status", tags=["overview"])
    def status() -> models.Status:
        """Return the version and the limits."""
        shown = {name: getattr(limits, name) for name in ("upload_bytes", "rows", "answers", "seconds")}
        return models.Status(version=__version__, workspace=service.workspace.folder.name, **shown)

    @router.get("/catalog", tags=["overview"])
    def catalog() -> models.Catalog:
        """List the data sets, classifiers and explainers that can be selected by name."""
        from sparcets.core.evidence import VERDICTS
        from sparcets.data.load import DATASETS
        from sparcets.methods import EXPLAINERS
        from sparcets.training import ARCHITECTURES

        def entries(registry: Any) -> list[models.CatalogEntry]:
            return [models.CatalogEntry(name=name, about=registry.about.get(name, "")) for name in registry]

        own = [] if jobs.model is None else [models.CatalogEntry(name=jobs.model.name, about=OWN_MODEL, own=True)]
        return models.Catalog(
            datasets=entries(DATASETS),
            classifiers=[*own, *entries(ARCHITECTURES)],
            explainers=entries(EXPLAINERS),
            verdicts=[
                models.VerdictEntry.model_validate(verdict, from_attributes=True) for verdict in VERDICTS.values()
            ],
        )


def _add_datasets(router: APIRouter, service: StudioService, jobs: Jobs, uploads: Uploads) -> None:
    workspace = service.workspace

    @router.post("/datasets", tags=["data"])
    async def open_dataset(request: models.OpenDataset) -> models.DatasetRecord:
        """Open a data set by name; opening it again returns the same record."""
        return await service.run(lambda: service.open(request.name, jobs.seed))

    @router.post("/datasets/upload", tags=["data"], status_code=201, openapi_extra=FILE)
    async def upload(
        request: Request, filename: Annotated[str, Query(min_length=1, max_length=255, examples=["gait.csv"])]
    ) -> models.DatasetRecord:
        """Upload a .csv or .npz file; the body is the file itself."""
        return await uploads.dataset(filename, request)

    @router.get("/datasets/{name}/series/{row}", tags=["data"])
    async def series(name: models.Id, row: Annotated[int, Path(ge=0, le=100_000_000)]) -> models.Series:
        """Return a recording."""
        return await service.run(lambda: results.series(service.recordings(name), row))

    @router.get("/datasets/{name}/skeleton", tags=["data"])
    def skeleton(name: models.Id) -> models.SkeletonResponse:
        """Return the body whose points the features name; no limbs if they name none."""
        return results.skeleton(workspace.record(models.DatasetRecord, name))

    @router.post("/datasets/{name}/recordings", tags=["data"], status_code=201, openapi_extra=FILE)
    async def add_recordings(
        name: models.Id,
        request: Request,
        filename: Annotated[str, Query(min_length=1, max_length=255, examples=["new.csv"])],
    ) -> models.AddedRecordings:
        """Add recordings to be explained, a .csv or .npz file with the same features; they need no labels."""
        dataset = workspace.record(models.DatasetRecord, name)
        n = await uploads.recordings(dataset, filename, request)
        return models.AddedRecordings(n=n, first_row=len(await service.run(lambda: service.recordings(name))) - n)


def _add_models(router: APIRouter, service: StudioService, jobs: Jobs) -> None:
    workspace = service.workspace

    @router.post("/classifiers", tags=["models"], status_code=202)
    async def train_classifier(request: models.TrainClassifier) -> models.Job:
        """Start to train a classifier; the job reports progress, and its result is the classifier's id."""
        from sparcets.training import ARCHITECTURES

        if not jobs.is_own(request.architecture):
            ARCHITECTURES.location(request.architecture)
        workspace.record(models.DatasetRecord, request.dataset)
        return jobs.submit(request)

    @router.get("/classifiers/{name}/queries", tags=["models"])
    async def queries(name: models.Id, chosen: Annotated[models.QueryFilter, Query()]) -> models.QueryPage:
        """List the recordings with labels and predictions: test series first, then training series, then new ones."""
        dataset = workspace.record(models.ClassifierRecord, name).dataset
        return await service.run(
            lambda: results.query_page(service.recordings(dataset), service.predictions(name), chosen)
        )

    @router.get("/classifiers/{name}/overview", tags=["models"])
    async def overview(name: models.Id) -> models.Overview:
        """Return the confusion tables of a classifier, and every recording as a point."""
        dataset = workspace.record(models.ClassifierRecord, name).dataset
        return await service.run(lambda: results.overview(service.recordings(dataset), service.predictions(name)))

    @router.post("/explainers", tags=["models"], status_code=202)
    async def fit_explainer(request: models.FitExplainer) -> models.Job:
        """Start to fit an explainer to a classifier; the job's result is the explainer's id."""
        from sparcets.methods import EXPLAINERS

        EXPLAINERS.location(request.method)
        workspace.record(models.ClassifierRecord, request.classifier)
        return jobs.submit(request)

    @router.get("/jobs", tags=["jobs"])
    def all_jobs() -> list[models.Job]:
        """List the training jobs since the start of the studio, oldest first."""
        return jobs.all()

    @router.delete("/jobs/{name}", tags=["jobs"])
    async def cancel(name: models.Id) -> models.Job:
        """Cancel a training job and remove its files."""
        return await jobs.cancel(name)


def _add_items(router: APIRouter, workspace: Workspace, jobs: Jobs, model: Any) -> None:
    """Add the routes that list and remove the items of one kind, that of the records ``model``."""
    kind, tags = KIND_OF[model], ["data" if model is models.DatasetRecord else "models"]

    @router.get(f"/{kind}", tags=list(tags), response_model=list[model], description=f"List the {KINDS[kind]}s.")
    def items() -> Any:
        return workspace.records(model)

    @router.delete(
        f"/{kind}/{{name}}",
        tags=list(tags),
        status_code=204,
        response_model=None,
        description=f"Remove a {KINDS[kind]} that nothing else uses.",
    )
    def remove(name: models.Id) -> None:
        jobs.check_unused(name)
        workspace.remove(kind, name)
