"""The server: the ASGI application of one fitted explainer, without global state, and how it is run."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from prometheus_client import generate_latest
from pydantic_core import from_json

from sparcets import interrupts
from sparcets.core.errors import ConfigError, DataError, ShapeError, StorageError
from sparcets.server.answers import Failure, Query
from sparcets.server.batching import Batcher, Metrics, ServerLimits
from sparcets.server.models import ExplainRequest, ExplainResponse, Health, ModelResponse, Question, Ready
from sparcets.server.pool import SIGNALS, close_workers, start_workers
from sparcets.web.access import Access, check_token, find_token
from sparcets.web.errors import ERRORS, ApiError
from sparcets.web.requests import SecurityMiddleware, accepted_hosts, address_of, bind, build_app, configuration

# Others, which would fill the memory of Prometheus, are counted together.
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
    """Build the server; ``model`` is what ``/model`` says, and without ``hosts``, any host name is accepted."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.watch()
        yield

    about = "What would have to be different in a series for the model to say something else?"
    app = build_app("server", about, lifespan=lifespan)
    app.state.batcher = batcher
    metrics.queue.set_function(lambda: batcher.queued)
    metrics.workers.set_function(lambda: batcher.ready)
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
        return Response(generate_latest(metrics.registry), media_type="text/plain; version=0.0.4")

    app.include_router(guarded)

    @app.get("/health", tags=["operation"])
    async def live() -> Health:
        """Say that the server runs; needs no token."""
        return Health()

    not_ready: dict[int | str, dict[str, Any]] = {503: {"model": Ready, "description": "No worker can explain now."}}

    @app.get("/ready", tags=["operation"], response_model=Ready, responses=not_ready)
    async def ready() -> JSONResponse:
        """Say how many workers can explain, 503 if none; needs no token."""
        return JSONResponse({"workers": batcher.ready}, 200 if batcher.ready else 503)

    access = Access(token, owner="server", where=WHERE)
    app.add_middleware(SecurityMiddleware, access=access, hosts=hosts, limits=limits, public=PUBLIC)

    @app.middleware("http")
    async def count(request: Request, respond: Callable[[Request], Awaitable[Response]]) -> Response:
        """Count every request, also those that are refused."""
        began, status = time.perf_counter(), 500
        try:
            response = await respond(request)
            status = response.status_code
            return response
        finally:
            path = request.scope["path"] if request.scope["path"] in PATHS else "other"
            metrics.requests.labels(path, str(int(status))).inc()  # Python 3.10 writes the name of an HTTPStatus
            metrics.request_seconds.labels(path).observe(time.perf_counter() - began)

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


class StoppableServer(uvicorn.Server):
    """A server that answers after SIGTERM or Ctrl-C what it has taken, for some seconds, and refuses the rest."""

    def __init__(self, config: uvicorn.Config, batcher: Batcher, seconds: float) -> None:
        super().__init__(config)
        self._batcher, self._seconds = batcher, seconds
        self._received: list[int] = []

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle signals while the server runs."""
        self._loop = asyncio.get_running_loop()
        heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]  # not as by nohup
        before: dict[int, Any] = {number: signal.signal(number, self.handle_exit) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if signal.SIGINT in self._received:
            signal.raise_signal(signal.SIGINT)  # the command says that it was stopped, and exits with 130

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, or end at once."""
        self._received.append(sig)
        if len(self._received) > 1:
            interrupts.end()
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._loop.call_later, self._seconds, self._batcher.abandon)


BACKLOG = 1024  # connections that wait to be accepted
MARGIN = 1.0  # seconds to send the last responses and to end the workers


def serve(
    folder: Path,
    *,
    own_model: str | None = None,
    host: str,
    port: int,
    token: str | None,
    token_file: Path | None,
    workers: int,
    seconds: float,
    device: str,
    say: Callable[[str], None],
) -> None:
    """Serve a fit until SIGTERM or Ctrl-C; what was taken by then is finished first.

    Workers may run the Python file and function ``own_model``, and no other. Without a token and its file, a new one is
    made and printed. ``say`` is called with each line of the start message.
    """
    limits, metrics = ServerLimits(seconds=seconds), Metrics()
    secret, is_new = _token(token, token_file)
    with bind(host, port) as opened:
        started, model = start_workers(folder, device, workers, own_model)
        try:
            batcher = Batcher(started, limits, metrics)
            app = create_app(model, batcher, token=secret, hosts=accepted_hosts(host), limits=limits, metrics=metrics)
            say(f"model: {folder}, {model['method']}")
            say(f"server: {address_of(opened, host)}")
            say(f"token: {secret if is_new else 'as given'}")
            say("Stop it with Ctrl-C.")
            config = configuration(app, limits, backlog=BACKLOG, stop_seconds=limits.stop_seconds + MARGIN)
            interrupts.allow(limits.stop_seconds + 2 * MARGIN)
            StoppableServer(config, batcher, limits.stop_seconds).run(sockets=[opened])
        finally:
            close_workers(started)


def _token(token: str | None, file: Path | None) -> tuple[str, bool]:
    """Return the token, and whether it is a new one that only this process knows."""
    if token is not None and file is not None:
        raise ConfigError("give a token or --token-file, not both.")
    if token is not None:
        return check_token(token), False
    if file is None:
        return secrets.token_urlsafe(24), True
    if not file.exists():
        return find_token(file, None), False  # written for its owner alone
    try:
        return check_token(file.read_text(encoding="utf-8").strip()), False
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"the token cannot be read from {file}: {error}.") from error
