"""ASGI middleware: checks token, host, origin and size of requests, and adds security headers to responses."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from fastapi.datastructures import Headers
from fastapi.responses import JSONResponse

from sparcets.studio.data import too_large
from sparcets.studio.errors import ApiError, error_body
from sparcets.studio.limits import Limits

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
UPLOAD = "/api/v1/datasets/upload"
HEADERS = {
    # Only local resources; plotly.js needs inline styles.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class SecurityMiddleware:
    """Rejects requests that are not allowed before they reach the app.

    Parameters
    ----------
    app
        The wrapped ASGI app.
    token
        Secret that API requests must contain as ``Authorization: Bearer …``, or None.
    hosts
        Accepted host names, or None for any. On loopback only its own names are accepted, which prevents DNS rebinding
        by other web pages.
    limits
        Maximum size of a request.
    """

    def __init__(self, app: Any, *, token: str | None, hosts: tuple[str, ...] | None, limits: Limits) -> None:
        self.app, self.token, self.hosts, self.limits = app, token, hosts, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        added = HEADERS | ({"Cache-Control": "no-store"} if scope["path"].startswith("/api/") else {})

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
        if self.hosts is not None and urlsplit(f"//{host}").hostname not in self.hosts:
            raise ApiError(403, "foreign_host", f"host {host!r} is not allowed.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise ApiError(403, "foreign_origin", "requests from other origins are not allowed.")
        if self.token is not None and scope["path"].startswith("/api/"):
            scheme, _, given = headers.get("authorization", "").partition(" ")
            matches = secrets.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())
            if scheme.lower() != "bearer" or not matches:
                message = "a valid token is required: Authorization: Bearer <token>. The studio printed it at startup."
                raise ApiError(401, "token_needed", message, headers={"WWW-Authenticate": "Bearer"})
        declared = headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > self._max_size(scope):
            raise too_large(self._max_size(scope))

    def _max_size(self, scope: Scope) -> int:
        return self.limits.upload_bytes if scope["path"] == UPLOAD else self.limits.body_bytes

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Count the bytes of the body: a request need not declare its size."""
        left = self._max_size(scope)

        async def limited() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise too_large(self._max_size(scope))
            return message

        return limited
