"""Runs the server: workers, an address, and an end that finishes what was taken."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn

from sparcets.core import interrupts
from sparcets.core.errors import ConfigError, StorageError
from sparcets.core.registry import require_extra
from sparcets.server.batching import Batcher

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StoppableServer(uvicorn.Server):
    """A server that accepts nothing after SIGTERM or Ctrl-C, answers what it has taken, and ends in time.

    Parameters
    ----------
    config
        Of uvicorn.
    batcher
        What has no answer in time is refused by it.
    seconds
        Time from the signal to the refusal.
    """

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

    Parameters
    ----------
    folder
        Written by ``sparcets fit``.
    own_model
        Python file and function of the user's own model, which workers may run; None allows nothing.
    host, port
        Address to listen on.
    token, token_file
        Secret that requests must contain, or the file that holds it; without both, a new one is made and printed.
    workers
        Number of processes that explain.
    seconds
        Time limit of a request.
    device
        Of the networks.
    say
        Called with each line of the start message.
    """
    for package in ("fastapi", "prometheus_client"):
        require_extra(package, "the server", "serve")
    uvicorn = require_extra("uvicorn", "the server", "serve")
    from sparcets.server.app import PATHS, create_app
    from sparcets.server.batching import Batcher, ServerLimits
    from sparcets.server.metrics import Metrics
    from sparcets.server.pool import start_workers
    from sparcets.web.requests import limited
    from sparcets.web.sockets import accepted_hosts, address_of, bind

    limits, metrics = ServerLimits(seconds=seconds), Metrics(PATHS)
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
            config = uvicorn.Config(
                app,
                http=limited(limits),
                ws="none",
                backlog=BACKLOG,
                log_level="error",
                timeout_keep_alive=int(limits.header_seconds),
                timeout_graceful_shutdown=int(limits.stop_seconds + MARGIN),
            )
            interrupts.allow(limits.stop_seconds + 2 * MARGIN)
            StoppableServer(config, batcher, limits.stop_seconds).run(sockets=[opened])
        finally:
            for worker in started:
                worker.close()


def _token(token: str | None, file: Path | None) -> tuple[str, bool]:
    """Return the token, and whether it is a new one that only this process knows."""
    from sparcets.web.access import check_token, find_token

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
