"""What stands between the network and an application: addresses, connections, and checks of every request."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
import socket
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import h11
import uvicorn
from fastapi import FastAPI
from fastapi.datastructures import Headers
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from sparcets import __version__
from sparcets.core.errors import ConfigError
from sparcets.web.access import Access, split_host
from sparcets.web.errors import ApiError, add_error_handlers, error_body

MIB = 2**20


@dataclass(frozen=True, kw_only=True, slots=True)
class WebLimits:
    """Limits on requests and connections."""

    body_bytes: int = 8 * MIB  # size of a request
    seconds: float = 30.0  # time limit of a request
    connections: int = 128  # open connections; above it, the one that has waited longest for a request is closed
    header_seconds: float = 10.0  # time for the header of a request, or between two requests
    pause_seconds: float = 20.0  # time without a byte of a body that is not complete
    silent_seconds: float = 0.0  # a connection that was silent for less is not closed for another one
    busy_status: int = 503  # of the response if no connection can be closed

    def max_bytes(self, path: str) -> int:
        """Return the largest size of a request to a path."""
        return self.body_bytes


def too_large(limit: int) -> ApiError:
    """Return the error for a request body or file above a size limit."""
    return ApiError(413, "too_large", f"the request is larger than the limit of {limit / MIB:.4g} MiB.")


HEADERS = {
    # Only local resources; plotly.js needs inline styles.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class SecurityMiddleware:
    """Rejects requests that are not allowed before they reach the app.

    Without ``hosts``, any host name is accepted. On loopback only its own names are, which prevents DNS rebinding by
    other web pages. Paths that match ``public`` need no token; those that begin with ``api`` no other web page may
    call, not even by a link; files below ``static`` may be kept by browsers.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        hosts: tuple[str, ...] | None,
        limits: WebLimits,
        public: re.Pattern[str],
        api: str = "/",
        static: str | None = None,
    ) -> None:
        self.app, self.access, self.hosts, self.limits = app, access, hosts, limits
        self.public, self.api, self.static = public, api, static

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        kept = self.static is not None and scope["path"].startswith(self.static)
        added = HEADERS | ({} if kept else {"Cache-Control": "no-store"})

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                encoded = [(name.lower().encode(), value.encode()) for name, value in added.items()]
                message["headers"] = [*message.get("headers", ()), *encoded]
            await send(message)

        try:
            self._check(scope)
        except ApiError as error:
            response = JSONResponse(error_body(error.code, error.detail), error.status_code, error.headers)
            await response(scope, receive, send_with_headers)
            return
        await self.app(scope, self._limited(scope, receive), send_with_headers)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name, _ = split_host(host)
        if self.hosts is not None and name not in self.hosts:
            raise ApiError(403, "foreign_host", f"host {host!r} is not allowed.")
        # To browsers, another port of the same host is the "same site", but not the same origin.
        site = headers.get("sec-fetch-site", "same-origin") if scope["path"].startswith(self.api) else "none"
        try:
            from_here = "origin" not in headers or urlsplit(headers["origin"]).netloc == host
        except ValueError:  # malformed
            from_here = False
        if not from_here or site not in ("same-origin", "none"):
            raise ApiError(403, "foreign_origin", "requests from other origins are not allowed.")
        if self.public.fullmatch(scope["path"]) is None:
            self.access.check(scope)
        declared, limit = headers.get("content-length", "0"), self.limits.max_bytes(scope["path"])
        if declared.isdigit() and int(declared) > limit:
            raise too_large(limit)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Count the bytes of the body, as a request need not declare its size, and wait for them only so long."""
        limit = self.limits.max_bytes(scope["path"])
        left, complete = limit, False

        async def limited() -> Message:
            nonlocal left, complete
            if complete:  # only the end of the connection can follow
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), self.limits.pause_seconds)
            except (TimeoutError, asyncio.TimeoutError):
                pause = f"{self.limits.pause_seconds:g} s"
                raise ApiError(408, "too_slow", f"no more of the request arrived within {pause}. Try again.") from None
            complete = not message.get("more_body", False)
            left -= len(message.get("body", b""))
            if left < 0:
                raise too_large(limit)
            return message

        return limited


LINGER = 5.0  # seconds in which a client can read why it was refused


class Connection(H11Protocol):
    """A connection that is closed if no complete header arrives in time, or earlier to make room for another one.

    It has the signature that uvicorn expects; :func:`limited` gives it its limits.
    """

    limits = WebLimits()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._closing: asyncio.TimerHandle | None = None  # set while it waits for a request
        self._heard = self.loop.time()
        self._refused = False

    @property
    def patience(self) -> tuple[bool, float] | None:
        """What decides which connection makes room: whether a request has begun, and when something arrived last.

        None if a whole request has arrived, which is then answered.
        """
        begun = self.cycle is not None and not self.cycle.response_complete
        return None if begun and not self.cycle.more_body else (begun, self._heard)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, in the place of the one that has waited longest if there are too many."""
        super().connection_made(transport)
        self._wait()
        if len(self.connections) <= self.limits.connections:
            return
        others = [c for c in self.connections if isinstance(c, Connection) and c is not self]
        latest = self.loop.time() - self.limits.silent_seconds
        waiting = [(c.patience, c) for c in others if c.patience is not None and c.patience[1] <= latest]
        if waiting:
            min(waiting, key=lambda pair: pair[0])[1].abandon()
        else:
            message = f"all {self.limits.connections} connections are in use. Try again in a moment."
            self._refuse(self.limits.busy_status, "busy", message, "Retry-After: 1\r\n")

    def data_received(self, data: bytes) -> None:
        """Take in what has arrived."""
        self._heard = self.loop.time()
        if not self._refused:
            super().data_received(data)

    def handle_events(self) -> None:
        """Read what has arrived; a complete header ends the wait."""
        super().handle_events()
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of one that was answered before it was complete."""
        self._wait()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def abandon(self) -> None:
        """Close the connection at once; no whole request has arrived."""
        self._stop_waiting()
        self.connections.discard(self)
        self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP with the body that all errors have."""
        self._refuse(400, "bad_request", f"this is not a valid HTTP request: {msg.rstrip('.').lower()}.")

    def _wait(self) -> None:
        self._stop_waiting()
        self._closing = self.loop.call_later(self.limits.header_seconds, self._late)

    def _stop_waiting(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None

    def _late(self) -> None:
        seconds = f"{self.limits.header_seconds:g} s"
        if self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(408, "too_slow", f"the header of the request was not complete after {seconds}.")
        else:
            self.abandon()  # nothing was sent, or an answer already

    def _refuse(self, status: int, code: str, message: str, header: str = "") -> None:
        self._stop_waiting()
        content = json.dumps(error_body(code, message)).encode()
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\n"
        head += f"{header}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
        if self.transport.is_closing():
            return
        # Closed at once, while the client still sends, the connection would be reset and the response lost.
        self._refused = True
        self.connections.discard(self)
        self.transport.write(head.encode() + content)
        self.transport.write_eof()
        self.loop.call_later(LINGER, self.transport.abort)


def limited(limits: WebLimits) -> type[Connection]:
    """Return the class of connections with these limits."""
    return type("LimitedConnection", (Connection,), {"limits": limits})


LOOPBACK = ("127.0.0.1", "localhost", "::1")


def accepted_hosts(host: str) -> tuple[str, ...] | None:
    """Return the host names that requests may name if this address is listened on; None for any.

    On an address that can be reached from this machine only, they are its own names.

    >>> accepted_hosts("127.0.0.2"), accepted_hosts("0.0.0.0")
    (('127.0.0.1', 'localhost', '::1', '127.0.0.2'), None)
    """
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    return (*LOOPBACK, host) if is_loopback else None


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 selects a free port."""
    opened = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((host, port))
        opened.listen()  # requests sent while the app is loading wait instead of being refused
    except OSError as error:
        opened.close()
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}. Choose another with --port or --host."
        ) from error
    return opened


def address_of(opened: socket.socket, host: str) -> str:
    """Return the address that a socket can be reached at."""
    return f"http://{f'[{host}]' if ':' in host else host}:{opened.getsockname()[1]}"


def configuration(app: FastAPI, limits: WebLimits, *, backlog: int, stop_seconds: float) -> uvicorn.Config:
    """Return how uvicorn runs an application: with limited connections, and silent about nonsense that it is sent."""
    return uvicorn.Config(
        app,
        http=limited(limits),
        ws="none",
        backlog=backlog,
        log_level="error",
        timeout_keep_alive=int(limits.header_seconds),
        timeout_graceful_shutdown=int(stop_seconds),
    )


def build_app(owner: str, description: str, **options: Any) -> FastAPI:
    """Return an application with the error responses of all; ``options`` are those of FastAPI."""
    # FastAPI's documentation pages load scripts from the network.
    options |= {"docs_url": None, "redoc_url": None}
    app = FastAPI(title=f"sparcets {owner}", version=__version__, description=description, **options)
    add_error_handlers(app, owner=owner)
    return app
