"""Serves the studio with uvicorn, on a socket bound beforehand so that a port in use is a clear error message."""

from __future__ import annotations

import html
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sparcets.registry import require_extra
from sparcets.storage import atomic_path

if TYPE_CHECKING:
    from sparcets.classifiers.own_model import OwnModel

OPEN = "open.html"
BACKLOG = 32  # connections that are accepted at once, before those that wait too long are closed


def serve(
    workspace: Path,
    *,
    host: str,
    port: int,
    token: str | None,
    api_only: bool,
    seed: int,
    device: str,
    open_page: bool,
    say: Callable[[str], None],
    model: OwnModel | None = None,
) -> None:
    """Run the studio until it is stopped.

    Parameters
    ----------
    workspace
        Folder of data sets, classifiers and explainers.
    host, port
        Address to listen on.
    token
        Secret that requests must contain; None uses that of the workspace, which is created at the first start.
    api_only
        Whether to serve the API without the page.
    seed, device
        Of training jobs and explanations.
    open_page
        Whether to open the page in the browser.
    say
        Called with each line of the start message.
    model
        A model of the user's own, offered beside the architectures that can be trained.
    """
    require_extra("fastapi", "the studio", "studio")
    uvicorn = require_extra("uvicorn", "the studio", "studio")
    from sparcets.studio.app import create_app
    from sparcets.studio.limits import Limits
    from sparcets.studio.workspace import Workspace
    from sparcets.web.access import TOKEN_FILE, find_token
    from sparcets.web.connections import limited
    from sparcets.web.sockets import accepted_hosts, address_of, bind

    folder = Workspace(workspace)
    folder.make_private()
    token, limits = find_token(folder.folder / TOKEN_FILE, token), Limits()
    app = create_app(
        workspace,
        token=token,
        hosts=accepted_hosts(host),
        api_only=api_only,
        limits=limits,
        seed=seed,
        device=device,
        model=model,
    )
    with bind(host, port) as opened:
        address = address_of(opened, host)
        page = f"{address}/?token={quote(token, safe='')}"
        say(f"{'API' if api_only else 'studio'}: {f'{address}/api/v1' if api_only else page}")
        say(f"workspace: {folder.folder}")
        say(f"token: {token}")
        say("Stop it with Ctrl-C.")
        config = uvicorn.Config(
            app,
            http=limited(limits),
            ws="none",
            backlog=BACKLOG,
            log_level="error",  # whoever sends nonsense does not write to the terminal
            timeout_graceful_shutdown=2,
        )
        if open_page and not api_only:
            webbrowser.open(_opening_file(folder.folder, page).as_uri())
        uvicorn.Server(config).run(sockets=[opened])


def _opening_file(folder: Path, page: str) -> Path:
    """Write a file that leads to the page: all users of the machine can see the arguments of the browser's command."""
    file = folder / OPEN
    with atomic_path(file, private=True) as temporary:
        temporary.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(page)}">\n')
    return file
