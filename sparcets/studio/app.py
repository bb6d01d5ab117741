"""create_app: the ASGI application of one workspace, without global state."""

from __future__ import annotations

import html
import os
import re
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import FileResponse
from fastapi.security import HTTPBearer
from fastapi.staticfiles import StaticFiles

from sparcets.core.registry import require_extra
from sparcets.io.files import atomic_path
from sparcets.studio.jobs import Jobs
from sparcets.studio.models import Limits, LogIn, Session
from sparcets.studio.routes import PREFIX, build_router
from sparcets.studio.service import StudioService
from sparcets.studio.uploads import Uploads
from sparcets.studio.workspace import Workspace
from sparcets.web import requests
from sparcets.web.access import TOKEN_FILE, Access, Sessions, bearer, find_token
from sparcets.web.errors import ERRORS

if TYPE_CHECKING:
    from sparcets.models.own_model import OwnModel


STATIC = Path(__file__).parent / "static"
LOGIN = f"{PREFIX}/login"
# The page itself holds no data; what it shows comes from the API.
PATHS: dict[str, Any] = {"public": re.compile(rf"/|/login|/static/.*|{LOGIN}"), "api": "/api/", "static": "/static/"}
WHERE = (
    "Open the address that the studio printed in its terminal. Programs send the header 'Authorization: Bearer "
    f"<token>'; the token is in the file {TOKEN_FILE!r} of the workspace."
)


def create_app(
    workspace: Path,
    *,
    token: str,
    hosts: tuple[str, ...] | None = requests.LOOPBACK,
    limits: Limits | None = None,
    seed: int = 0,
    device: str = "auto",
    model: OwnModel | None = None,
    sessions: Sessions | None = None,
) -> FastAPI:
    """Build the studio; without ``hosts``, any host name is accepted.

    ``model`` is one of the user's own, offered beside the architectures that can be trained. Requests cannot name
    others; and no other Python file is run, whatever the workspace names.
    """
    limits = limits if limits is not None else Limits()
    sessions = sessions or Sessions()
    folder, access = Workspace(workspace), Access(token, owner="studio", where=WHERE, sessions=sessions)
    folder.remove_leftovers()
    service = StudioService(folder, limits, device, model)
    jobs = Jobs(folder, limits, seed=seed, device=device, model=model)
    uploads = Uploads(folder, limits, seed=seed)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.warm_up()
        yield
        await jobs.close()
        service.close()

    about = "What would have to be different in this recording for the model to say something else?"
    app = requests.build_app("studio", about, openapi_url=f"{PREFIX}/openapi.json", lifespan=lifespan)
    # Documents the token in the OpenAPI description; the middleware checks it.
    guarded = [Depends(HTTPBearer(auto_error=False))]
    app.include_router(build_router(service, jobs, uploads), dependencies=guarded)
    app.include_router(_session_router(access, sessions, guarded))
    _add_page(app)
    app.add_middleware(requests.SecurityMiddleware, access=access, hosts=hosts, limits=limits, **PATHS)
    return app


def _session_router(access: Access, sessions: Sessions, guarded: list[Any]) -> APIRouter:
    router = APIRouter(responses=ERRORS, tags=["sessions"])

    @router.post(LOGIN)
    async def log_in(request: LogIn) -> Session:
        """Open a session, with the code of the printed address or with the token."""
        if request.token is not None:
            secret = sessions.open() if access.knows(request.token) else None
            problem = ("wrong_token", "this is not the token of this studio.")
        else:
            secret = sessions.log_in(request.code or "")
            problem = ("wrong_code", "this code was used already, has expired, or is not the newest one.")
        if secret is None:
            raise access.refused(*problem)
        return Session(secret=secret, idle_seconds=sessions.idle_seconds, seconds=sessions.seconds)

    @router.post(f"{PREFIX}/logout", status_code=204, response_model=None, dependencies=guarded)
    async def log_out(request: Request) -> None:
        """End the session of this request; with the token, all sessions."""
        given = bearer(request.scope) or ""
        sessions.close(None if access.knows(given) else given)

    return router


def _add_page(app: FastAPI) -> None:
    require_extra("plotly", "the studio's page", "studio")
    plotly: Any = resources.files("plotly") / "package_data" / "plotly.min.js"

    @app.get("/", include_in_schema=False)
    def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/login", include_in_schema=False)
    def login_page() -> FileResponse:
        return FileResponse(STATIC / "login.html")

    @app.get("/static/plotly.min.js", include_in_schema=False)
    def plotly_js() -> FileResponse:
        return FileResponse(str(plotly), media_type="text/javascript", headers={"Cache-Control": "max-age=86400"})

    app.mount("/static", StaticFiles(directory=STATIC), name="static")


OPEN = "open.html"
BACKGROUND = 1.0  # seconds between two attempts to read from a terminal that another process has
BACKLOG = 32  # connections that are accepted at once, before those that wait too long are closed


def serve(
    workspace: Path,
    *,
    host: str,
    port: int,
    token: str | None,
    open_page: bool,
    say: Callable[[str], None],
    **options: Any,
) -> None:
    """Run the studio until it is stopped; ``options`` are those of :func:`create_app`.

    Without a token, it uses that of the workspace, which is created at the first start. ``say`` is called with each
    line of the start message.
    """
    folder = Workspace(workspace)
    token, limits, sessions = find_token(folder.folder / TOKEN_FILE, token), Limits(), Sessions()
    app = create_app(
        workspace, hosts=requests.accepted_hosts(host), token=token, limits=limits, sessions=sessions, **options
    )
    with requests.bind(host, port) as opened:
        address = requests.address_of(opened, host)
        login = f"{address}/login"

        def new_page() -> str:
            return f"{login}#code={sessions.new_code()}"

        page = new_page()
        say(f"studio: {page}")
        enter = "press Enter for a new address, or " if _on_enter(lambda: say(f"studio: {new_page()}")) else ""
        minutes = f"{sessions.code_seconds / 60:g} minutes"
        say(f"This address works once, within {minutes}. Later, {enter}enter the token at {login}.")
        say(f"workspace: {folder.folder}")
        say(f"token: in the file {folder.folder / TOKEN_FILE}")
        say("Stop it with Ctrl-C.")
        if open_page:
            webbrowser.open(_opening_file(folder.folder, page).as_uri())
        config = requests.configuration(app, limits, backlog=BACKLOG, stop_seconds=2)
        uvicorn.Server(config).run(sockets=[opened])


def _opening_file(folder: Path, page: str) -> Path:
    """Write a file that leads to the page: all users of the machine can see the arguments of the browser's command."""
    file = folder / OPEN
    with atomic_path(file, private=True) as temporary:
        temporary.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(page)}">\n')
    return file


def _on_enter(action: Callable[[], object]) -> bool:
    """Call a function whenever Enter is pressed in the terminal; return whether there is one."""
    try:
        handle = sys.stdin.fileno()
        if not os.isatty(handle):
            return False
    except (AttributeError, OSError, ValueError):  # no standard input, or one that was replaced
        return False
    if hasattr(signal, "SIGTTIN"):  # reading in the background would stop the studio; ignored, it is an error
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)

    def wait() -> None:
        while True:
            try:
                if not os.read(handle, 1024):  # not of sys.stdin, which cannot be closed while a thread reads it
                    return
            except OSError:
                time.sleep(BACKGROUND)
            else:
                action()

    threading.Thread(target=wait, daemon=True).start()
    return True
