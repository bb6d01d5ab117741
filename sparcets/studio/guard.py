"""Who may come in: the token, the names the studio answers to, the size of requests; and what pages may load."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

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
    # Nothing from elsewhere; plotly.js writes style attributes.
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Guard:
    """Looks at every request before the app does.

    Parameters
    ----------
    app
        The app behind it.
    token
        What requests to the API must bring as ``Authorization: Bearer …``, or None.
    hosts
        Names the studio answers to, or None for any. On loopback it answers to loopback's names alone, so that a page
        elsewhere that points its own name here gets nothing.
    limits
        How large a request may be.
    """

    def __init__(self, app: Any, *, token: str | None, hosts: tuple[str, ...] | None, limits: Limits) -> None:
        self.app, self.token, self.hosts, self.limits = app, token, hosts, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or let the app answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        try:
            self._check(scope)
        except ApiError as error:
            refused = JSONResponse(error_body(error.code, error.detail), error.status_code, error.headers)
            await refused(scope, receive, dressed)
            return
        await self.app(scope, self._counted(scope, receive), dressed)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.hosts is not None and urlsplit(f"//{host}").hostname not in self.hosts:
            raise ApiError(403, "foreign_host", f"the studio does not answer to the name {host!r}.")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise ApiError(403, "foreign_origin", "requests from pages of other origins are refused.")
        if self.token is not None and scope["path"].startswith("/api/"):
            kind, _, given = headers.get("authorization", "").partition(" ")
            fits = secrets.compare_digest(given.strip().encode("utf-8", "replace"), self.token.encode())
            if kind.lower() != "bearer" or not fits:
                message = "a valid token is needed: Authorization: Bearer <token>. The studio printed it at its start."
                raise ApiError(401, "token_needed", message, headers={"WWW-Authenticate": "Bearer"})
        announced = headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > self._largest(scope):
            raise too_large(self._largest(scope))

    def _largest(self, scope: Scope) -> int:
        return self.limits.upload_bytes if scope["path"] == UPLOAD else self.limits.body_bytes

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        """Count what comes, since nobody has to announce how much it is."""
        left = self._largest(scope)

        async def counting() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise too_large(self._largest(scope))
            return message

        return counting
