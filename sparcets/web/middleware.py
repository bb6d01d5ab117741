"""ASGI middleware: checks token, host, origin and size of requests, and adds security headers to responses."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from fastapi.datastructures import Headers
from fastapi.responses import JSONResponse

from sparcets.web.access import Access, split_host
from sparcets.web.errors import ApiError, error_body
from sparcets.web.limits import WebLimits, too_large

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

HEADERS = {
    # Only local resources; plotly.js needs inline styles.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


@dataclass(frozen=True, kw_only=True)
class Paths:
    """What an app serves where.

    Attributes
    ----------
    public
        Paths that need no token.
    api
        Prefix of the paths that no other web page may call, not even by a link.
    static
        Prefix of the files that browsers may keep, or None.
    """

    public: re.Pattern[str]
    api: str = "/"
    static: str | None = None


class SecurityMiddleware:
    """Rejects requests that are not allowed before they reach the app.

    Parameters
    ----------
    app
        The wrapped ASGI app.
    access
        Checks the token of all requests but those to public paths.
    hosts
        Accepted host names, or None for any. On loopback only its own names are accepted, which prevents DNS rebinding
        by other web pages.
    limits
        Maximum size of a request.
    paths
        What is served where.
    """

    def __init__(
        self, app: Any, *, access: Access, hosts: tuple[str, ...] | None, limits: WebLimits, paths: Paths
    ) -> None:
        self.app, self.access, self.hosts, self.limits, self.paths = app, access, hosts, limits, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        kept = self.paths.static is not None and scope["path"].startswith(self.paths.static)
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
        site = headers.get("sec-fetch-site", "same-origin") if scope["path"].startswith(self.paths.api) else "none"
        if not _same_origin(headers.get("origin"), host) or site not in ("same-origin", "none"):
            raise ApiError(403, "foreign_origin", "requests from other origins are not allowed.")
        if self.paths.public.fullmatch(scope["path"]) is None:
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


def _same_origin(origin: str | None, host: str) -> bool:
    try:
        return origin is None or urlsplit(origin).netloc == host
    except ValueError:  # malformed
        return False
