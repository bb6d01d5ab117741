"""Limits of the server; a request above one of them gets a 4xx response that names it."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.web.limits import WebLimits


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerLimits(WebLimits):
    """Limits per request and for all requests together."""

    series: int = 64  # series per request
    answers: int = 5  # counterfactuals per series
    queued_series: int = 128  # series per worker that wait or are being explained; above it, 429
    batch_series: int = 64  # series that a worker explains at a time
    batch_seconds: float = 0.005  # how long a series waits for others with the same options
    stop_seconds: float = 8.0  # time in which a server that is stopped finishes what it has taken
    # Programs keep their connections, and open one for each request that waits.
    connections: int = 1024
    header_seconds: float = 60.0
    silent_seconds: float = 15.0
    busy_status: int = 429
