"""create_app: the studio of one workspace, as an ASGI application without globals."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import Depends, FastAPI
from fastapi.security import HTTPBearer
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles

from sparcets import __version__
from sparcets.registry import require_extra
from sparcets.studio.desk import Desk
from sparcets.studio.errors import answer_errors
from sparcets.studio.guard import LOOPBACK, Guard
from sparcets.studio.jobs import Jobs
from sparcets.studio.limits import Limits
from sparcets.studio.routes import PREFIX, build_router
from sparcets.studio.workspace import Workspace

STATIC = Path(__file__).parent / "static"


def create_app(
    workspace: Path,
    *,
    token: str | None = None,
    hosts: tuple[str, ...] | None = LOOPBACK,
    api_only: bool = False,
    limits: Limits | None = None,
    seed: int = 0,
    device: str = "auto",
) -> FastAPI:
    """Build the studio.

    Parameters
    ----------
    workspace
        Folder in which data sets, classifiers and explainers are kept.
    token
        What requests to the API must bring, or None.
    hosts
        Names it answers to; None answers to any, and then there should be a token.
    api_only
        Whether to leave out the page.
    limits
        How much one request may ask for.
    seed, device
        Of trainings and answers.
    """
    limits = limits if limits is not None else Limits()
    folder = Workspace(workspace)
    desk, jobs = Desk(folder, limits, device), Jobs(folder, limits, seed=seed, device=device)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        desk.warm_up()
        yield
        jobs.close()
        desk.close()

    app = FastAPI(
        title="sparcets studio",
        version=__version__,
        description="What would have to be different in this recording for the model to say something else?",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # the usual pages of documentation load their scripts from the network
        redoc_url=None,
        lifespan=lifespan,
    )
    needs = [Depends(HTTPBearer(auto_error=False))] if token is not None else []  # for the description; Guard checks
    app.include_router(build_router(desk, jobs), dependencies=needs)
    if not api_only:
        _add_page(app)
    answer_errors(app)
    app.add_middleware(Guard, token=token, hosts=hosts, limits=limits)
    return app


def _add_page(app: FastAPI) -> None:
    require_extra("plotly", "the studio's page", "studio")
    plotly: Any = resources.files("plotly") / "package_data" / "plotly.min.js"

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/static/plotly.min.js", include_in_schema=False)
    def plotly_js() -> FileResponse:
        return FileResponse(str(plotly), media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
