"""create_app: the ASGI application of one workspace, without global state."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles

from sparcets import __version__
from sparcets.registry import require_extra
from sparcets.studio.jobs import Jobs
from sparcets.studio.limits import Limits
from sparcets.studio.routes import PREFIX, build_router
from sparcets.studio.service import StudioService
from sparcets.studio.uploads import Uploads
from sparcets.studio.workspace import Workspace
from sparcets.web.access import TOKEN_FILE, Access
from sparcets.web.errors import ApiError, add_error_handlers
from sparcets.web.middleware import Paths, SecurityMiddleware
from sparcets.web.sockets import LOOPBACK

if TYPE_CHECKING:
    from sparcets.classifiers.own_model import OwnModel

STATIC = Path(__file__).parent / "static"
PATHS = Paths(public=re.compile(r"/|/static/.*"), api="/api/", static="/static/")  # the page asks for the token
WHERE = (
    "Open the address that the studio printed when it started. Programs send the header 'Authorization: Bearer "
    f"<token>'; the token is also in the file {TOKEN_FILE!r} of the workspace."
)
LOGIN = {
    "token_needed": "This studio needs its token.",
    "wrong_token": "This is not the token of this studio.",
}


def create_app(
    workspace: Path,
    *,
    token: str,
    hosts: tuple[str, ...] | None = LOOPBACK,
    api_only: bool = False,
    limits: Limits | None = None,
    seed: int = 0,
    device: str = "auto",
    model: OwnModel | None = None,
) -> FastAPI:
    """Build the studio.

    Parameters
    ----------
    workspace
        Folder of data sets, classifiers and explainers.
    token
        Secret that requests must contain.
    hosts
        Accepted host names; None accepts any.
    api_only
        Whether to serve the API without the page.
    limits
        Limits on requests.
    seed, device
        Of training jobs and explanations.
    model
        A model of the user's own, offered beside the architectures that can be trained. Requests cannot name others.
    """
    limits = limits if limits is not None else Limits()
    folder, access = Workspace(workspace), Access(token, owner="studio", where=WHERE)
    folder.make_private()
    folder.remove_leftovers()
    service = StudioService(folder, limits, device)
    jobs = Jobs(folder, limits, seed=seed, device=device, model=model)
    uploads = Uploads(folder, limits, seed=seed)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.warm_up()
        yield
        uploads.close()
        jobs.close()
        service.close()

    app = FastAPI(
        title="sparcets studio",
        version=__version__,
        description="What would have to be different in this recording for the model to say something else?",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # FastAPI's documentation pages load scripts from the network
        redoc_url=None,
        lifespan=lifespan,
    )
    # Documents the token in the OpenAPI description; the middleware checks it.
    app.include_router(build_router(service, jobs, uploads), dependencies=[Depends(HTTPBearer(auto_error=False))])
    if not api_only:
        _add_page(app, access)
    add_error_handlers(app, owner="studio")
    app.add_middleware(SecurityMiddleware, access=access, hosts=hosts, limits=limits, paths=PATHS)
    return app


def _add_page(app: FastAPI, access: Access) -> None:
    require_extra("plotly", "the studio's page", "studio")
    plotly: Any = resources.files("plotly") / "package_data" / "plotly.min.js"

    @app.get("/", include_in_schema=False)
    def page(request: Request, token: str | None = None) -> Response:
        if token is not None and access.knows(token):
            response = RedirectResponse("/", 303)  # an address without the token, for the history of the browser
            access.sign_in(request, response)
            return response
        try:
            access.check(request.scope)
        except ApiError as error:
            return _login_page("wrong_token" if token is not None else error.code)
        return FileResponse(STATIC / "index.html")

    @app.get("/static/plotly.min.js", include_in_schema=False)
    def plotly_js() -> FileResponse:
        return FileResponse(str(plotly), media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


def _login_page(problem: str) -> HTMLResponse:
    text = (STATIC / "login.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace("<!-- problem -->", LOGIN[problem]), 401)
