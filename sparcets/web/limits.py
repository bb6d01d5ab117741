"""Limits of any web application here; a request above a limit gets a 4xx response that names it."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.web.errors import ApiError

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
