"""Serving the studio: a socket of our own, so that a port that is taken is told in words before anything is loaded."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import webbrowser
from collections.abc import Callable
from pathlib import Path

from sparcets.errors import ConfigError
from sparcets.registry import require_extra

SHORTEST = 8  # characters of a token


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address.

    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens; a port of 0 takes a free one."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen()  # who comes while the rest is still loading waits instead of being turned away
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Choose another with --port or --host."
        ) from error
    return opened


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
) -> None:
    """Run the studio until it is stopped.

    Parameters
    ----------
    workspace
        Its folder.
    host, port
        Where it listens.
    token
        What requests must bring; made up where others than this machine can reach it and none is given.
    api_only
        Whether to leave out the page.
    seed, device
        Of trainings and answers.
    open_page
        Whether to open the page in the browser.
    say
        Told where the studio is.
    """
    require_extra("fastapi", "the studio", "studio")
    uvicorn = require_extra("uvicorn", "the studio", "studio")
    from sparcets.studio.app import create_app
    from sparcets.studio.guard import LOOPBACK

    if token is not None and len(token) < SHORTEST:
        raise ConfigError(f"a token needs at least {SHORTEST} characters, got {len(token)}. Leave it out to get one.")
    local = is_loopback(host)
    if token is None and not local:
        token = secrets.token_urlsafe(24)
    app = create_app(
        workspace,
        token=token,
        hosts=(*LOOPBACK, host) if local else None,
        api_only=api_only,
        seed=seed,
        device=device,
    )
    with bind(host, port) as opened:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{opened.getsockname()[1]}"
        page = f"{address}/#token={token}" if token is not None else f"{address}/"
        say(f"{'API' if api_only else 'studio'}: {f'{address}/api/v1' if api_only else page}")
        say(f"workspace: {workspace.resolve()}")
        if token is not None:
            say(f"token: {token}")
        say("Stop it with Ctrl-C.")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=3))
        if open_page and not api_only:
            webbrowser.open(page)
        server.run(sockets=[opened])
