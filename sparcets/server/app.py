"""create_app: the ASGI application of one fitted explainer, without global state."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic_core import from_json

from sparcets import __version__
from sparcets.core.errors import DataError, ShapeError
from sparcets.server.answers import Failure, Query
from sparcets.server.batching import Batcher, ServerLimits
from sparcets.server.metrics import Metrics, MetricsMiddleware
from sparcets.server.models import ExplainRequest, ExplainResponse, Health, ModelResponse, Question, Ready
from sparcets.web.access import Access
from sparcets.web.errors import ERRORS, ApiError, add_error_handlers
from sparcets.web.requests import Paths, SecurityMiddleware

PATHS = ("/explain", "/model", "/health", "/ready", "/metrics", "/openapi.json")
# What watches a server cannot always send a token, and learns nothing of the model or the data here.
PUBLIC = re.compile("/health|/ready")
WHERE = (
    "Send the header 'Authorization: Bearer <token>'; the server printed its token when it started, unless it was "
    "given by --token-file or SPARCETS_SERVE_TOKEN."
)
OPTIONS = set(Question.model_fields)


class _FastRequest(Request):
    """A request whose JSON is parsed by pydantic, eight times as fast as by Python for a series of 50 × 50."""

    async def json(self) -> Any:
        """Return the body; a server that is busy refuses it unparsed, and so at little cost."""
        body = await self.body()
        self.app.state.batcher.check_room()
        try:
            return from_json(body)
        except ValueError as error:
            raise json.JSONDecodeError(str(error), body.decode("utf-8", "replace"), 0) from error


class _FastRoute(APIRoute):
    """A route whose body is JSON, parsed fast."""

    def get_route_handler(self) -> Callable[[Request], Any]:
        handle = super().get_route_handler()

        async def handle_fast(request: Request) -> Response:
            if request.method == "POST" and "json" not in request.headers.get("content-type", ""):
                raise ApiError(415, "not_json", "send JSON, with the header 'Content-Type: application/json'.")
            response: Response = await handle(_FastRequest(request.scope, request.receive))
            return response

        return handle_fast


def create_app(
    model: dict[str, Any],
    batcher: Batcher,
    *,
    token: str,
    hosts: tuple[str, ...] | None,
    limits: ServerLimits,
    metrics: Metrics,
) -> FastAPI:
    """Build the server.

    Parameters
    ----------
    model
        What ``/model`` says.
    batcher
        Explains series.
    token
        Secret that requests must contain.
    hosts
        Accepted host names; None accepts any.
    limits
        Limits on requests.
    metrics
        What ``/metrics`` says.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.watch()
        yield

    app = FastAPI(
        title="sparcets server",
        version=__version__,
        description="What would have to be different in a series for the model to say something else?",
        docs_url=None,  # FastAPI's documentation pages load scripts from the network
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.batcher = batcher
    metrics.observe(queued=lambda: batcher.queued, ready=lambda: batcher.ready)
    guarded = APIRouter(responses=ERRORS, dependencies=[Depends(HTTPBearer(auto_error=False))], route_class=_FastRoute)
    _add_explain(guarded, model, batcher, limits)

    @guarded.get("/model", tags=["model"])
    async def describe() -> ModelResponse:
        """Return what is served: names of features and classes, and what series must look like."""
        return ModelResponse(**model)

    plain: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}

    @guarded.get("/metrics", tags=["operation"], response_class=Response, responses=plain)
    async def tell() -> Response:
        """Return counts and times in the format of Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    app.include_router(guarded)
    _add_probes(app, batcher)
    add_error_handlers(app, owner="server")
    access = Access(token, owner="server", where=WHERE)
    app.add_middleware(SecurityMiddleware, access=access, hosts=hosts, limits=limits, paths=Paths(public=PUBLIC))
    app.add_middleware(MetricsMiddleware, metrics=metrics)
    return app


def _add_explain(router: APIRouter, model: dict[str, Any], batcher: Batcher, limits: ServerLimits) -> None:
    method = json.dumps(model["method"]).encode()
    slow: dict[int | str, dict[str, Any]] = {
        "5XX": {**ERRORS["4XX"], "description": "No answer in time, or the server stops; see Retry-After."}
    }

    @router.post("/explain", tags=["explanations"], response_model=ExplainResponse, responses=slow)
    async def explain(request: ExplainRequest) -> Response:
        """Return counterfactuals for one series or several; 429 if there is too much to do.

        Requests with the same question are explained together, which changes no answer.
        """
        if len(request.series) > limits.series:
            raise ApiError(
                413, "too_many", f"{len(request.series)} series in one request; at most {limits.series} are allowed."
            )
        if request.n > limits.answers:
            raise ApiError(422, "too_many", f"n is {request.n}; at most {limits.answers} answers are given per series.")
        # Parsed and packed here, as it holds Python's lock in any thread: a millisecond per 10,000 values.
        question = request.model_dump_json(include=OPTIONS, exclude_defaults=True, by_alias=True)
        outcomes = await batcher.explain(question, queries_of(request))
        for i, outcome in enumerate(outcomes):
            if isinstance(outcome, Failure):
                which = f"series {i}: " if len(outcomes) > 1 else ""
                headers = {"Retry-After": "1"} if outcome.status == 503 else None
                raise ApiError(outcome.status, outcome.code, f"{which}{outcome.message}", headers=headers)
        answers = b",".join(outcome for outcome in outcomes if isinstance(outcome, bytes))
        return Response(b'{"method":' + method + b',"answers":[' + answers + b"]}", media_type="application/json")


def queries_of(request: ExplainRequest) -> list[Query]:
    """Return the series of a request as arrays; raise if they are none."""
    number = len(request.series)
    for name, values in {"ids": request.ids, **{f"side.{key}": v for key, v in (request.side or {}).items()}}.items():
        if values is not None and len(values) != number:
            raise DataError(f"{name} has {len(values)} entries for {number} series.")
    queries = []
    for i, series in enumerate(request.series):
        if not series or len({len(step) for step in series}) > 1 or not series[0]:
            raise ShapeError(f"series {i} must be a list of steps, each a list with one value per feature.")
        queries.append(
            Query(
                X=np.array(series, dtype=np.float64),  # None becomes NaN: missing
                index=i,
                id=None if request.ids is None else request.ids[i],
                side=None if request.side is None else {name: values[i] for name, values in request.side.items()},
                counterfactual=request.counterfactual,
                text=request.text,
            )
        )
    return queries


def _add_probes(app: FastAPI, batcher: Batcher) -> None:
    @app.get("/health", tags=["operation"])
    async def live() -> Health:
        """Say that the server runs; needs no token."""
        return Health()

    not_ready: dict[int | str, dict[str, Any]] = {503: {"model": Ready, "description": "No worker can explain now."}}

    @app.get("/ready", tags=["operation"], response_model=Ready, responses=not_ready)
    async def ready() -> JSONResponse:
        """Say how many workers can explain, 503 if none; needs no token."""
        return JSONResponse({"workers": batcher.ready}, 200 if batcher.ready else 503)
