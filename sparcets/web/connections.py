"""Connections that wait are limited in number and in time, so that unfinished requests keep nobody out."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sparcets.web.errors import error_body
from sparcets.web.limits import WebLimits

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
