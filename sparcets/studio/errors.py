"""One shape for every error the API answers: ``{"error": {"code": …, "message": …, "details": […]}}``."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sparcets.errors import SparcetsError

log = logging.getLogger(__name__)


class ApiError(HTTPException):
    """What is wrong with a request, in words and with a word that programs can rely on.

    Parameters
    ----------
    status
        HTTP status.
    code
        Short name of the problem, ``snake_case``.
    message
        What is wrong and what to do.
    """

    def __init__(self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.code = code


def error_body(code: str, message: str, details: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    """Return the one shape.

    >>> error_body("not_found", "no data set 'x'.")
    {'error': {'code': 'not_found', 'message': "no data set 'x'.", 'details': []}}
    """
    return {"error": {"code": code, "message": message, "details": list(details)}}


def code_of(error: Exception) -> str:
    """Return the name of one of our exceptions as programs read it.

    >>> from sparcets.errors import DataNotFoundError
    >>> code_of(DataNotFoundError("…"))
    'data_not_found'
    """
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    return words.removesuffix("_error")


def answer_errors(app: FastAPI) -> None:
    """Make the app answer every error in the one shape."""

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        status = HTTPStatus(error.status_code)
        code = error.code if isinstance(error, ApiError) else status.phrase.lower().replace(" ", "_")
        message = error.detail
        if not isinstance(error, ApiError) and status == HTTPStatus.NOT_FOUND:
            message = f"there is nothing at {request.url.path}; the API is described at /api/v1/openapi.json."
        elif not isinstance(error, ApiError) and status == HTTPStatus.METHOD_NOT_ALLOWED:
            message = f"{request.method} is not possible at {request.url.path}."
        return JSONResponse(error_body(code, message), status, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        details = [{"where": ".".join(map(str, e["loc"])), "problem": str(e["msg"])} for e in error.errors()]
        first = f"{details[0]['where']}: {details[0]['problem']}" if details else "it cannot be read"
        more = f", and {len(details) - 1} more" if len(details) > 1 else ""
        return JSONResponse(error_body("invalid_request", f"the request is not valid: {first}{more}.", details), 422)

    @app.exception_handler(SparcetsError)
    async def ours(_: Request, error: SparcetsError) -> JSONResponse:
        return JSONResponse(error_body(code_of(error), str(error)), 422)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        message = "the studio made a mistake it did not foresee; its log says where. What was finished is kept."
        return JSONResponse(error_body("internal", message), 500)
