"""Error responses, all with the body ``{"error": {"code": …, "message": …, "details": […]}}``."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from sparcets.core.errors import SparcetsError, TooLargeError

log = logging.getLogger(__name__)
OTHER_FORM = ("missing", "extra_forbidden")  # types of problems of a form that was not meant
MOST_DETAILS = 20  # problems that a response lists, of a request that may have thousands


class ApiError(HTTPException):
    """An error response: a code in ``snake_case`` for programs, and for people what is wrong and what to do."""

    def __init__(self, status: int, code: str, message: str, *, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, message, headers)
        self.code = code


def error_body(code: str, message: str, details: Sequence[dict[str, str]] = ()) -> dict[str, Any]:
    """Return the body of an error response.

    >>> error_body("not_found", "no data set 'x'.")
    {'error': {'code': 'not_found', 'message': "no data set 'x'.", 'details': []}}
    """
    return {"error": {"code": code, "message": message, "details": list(details)}}


def code_of(error: Exception) -> str:
    """Return the error code of one of the package's exceptions.

    >>> from sparcets.core.errors import DataNotFoundError
    >>> code_of(DataNotFoundError("…"))
    'data_not_found'
    """
    words = re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
    return words.removesuffix("_error")


def place_of(error: dict[str, Any], body: Any) -> list[str]:
    """Return the path to a value that is not valid, without the names that pydantic gives to the forms of a field.

    >>> place_of({"loc": ("body", "frozen", "list[tuple[int, int]]", 0, 1), "type": "int_type"}, {"frozen": [[0, "3"]]})
    ['body', 'frozen', '0', '1']
    """
    source, *rest = error["loc"]
    if source != "body" or not isinstance(body, (dict, list)):
        return [str(part) for part in error["loc"]]
    path = [str(source)]
    value: Any = body
    for k, part in enumerate(rest):
        if part in value if isinstance(value, dict) else isinstance(value, list) and isinstance(part, int):
            value = value[part] if isinstance(value, dict) or part < len(value) else None
        elif error["type"] != "missing" or k < len(rest) - 1:
            continue
        path.append(str(part))
    return path


def add_error_handlers(app: FastAPI, *, owner: str) -> None:
    """Register handlers that give every error response the same body; ``owner`` is the name of the application."""

    async def http(request: Request, error: HTTPException) -> JSONResponse:
        status = HTTPStatus(error.status_code)
        code = error.code if isinstance(error, ApiError) else status.phrase.lower().replace(" ", "_")
        message = error.detail
        if not isinstance(error, ApiError) and status == HTTPStatus.NOT_FOUND:
            message = f"nothing found at {request.url.path}; the API is described at {app.openapi_url}."
        elif not isinstance(error, ApiError) and status == HTTPStatus.METHOD_NOT_ALLOWED:
            message = f"{request.method} is not allowed at {request.url.path}."
        return JSONResponse(error_body(code, message), status, error.headers)

    # By status: the errors of routing and static files are no ``fastapi.HTTPException`` but its base class.
    for status in range(400, 500):
        app.exception_handler(status)(http)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        every = error.errors()
        found = [(place_of(e, error.body), e) for e in every[:MOST_DETAILS]]
        details = [{"where": ".".join(place), "problem": e["msg"]} for place, e in found]
        if every and every[0]["type"] == "json_invalid":
            details[0]["problem"] += f": {every[0]['ctx']['error']}"
        # Of the forms that a field may have, the one that fits furthest was meant.
        depths = [len(p) - 0.5 * (e["type"] in OTHER_FORM) if p[:2] == found[0][0][:2] else 0.0 for p, e in found]
        said = details[depths.index(max(depths))] if found else None
        first = "it cannot be parsed" if said is None else f"{said['where']}: {said['problem']}"
        more = f", and {len(every) - 1} more" if len(every) > 1 else ""
        return JSONResponse(error_body("invalid_request", f"the request is not valid: {first}{more}.", details), 422)

    @app.exception_handler(SparcetsError)
    async def package_error(_: Request, error: SparcetsError) -> JSONResponse:
        return JSONResponse(error_body(code_of(error), str(error)), 413 if isinstance(error, TooLargeError) else 422)

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        message = f"unexpected error in the {owner}; see its log. Finished work is kept."
        return JSONResponse(error_body("internal", message), 500)


class ErrorDetail(BaseModel):
    """One problem of an invalid request."""

    where: str
    problem: str


class ErrorBody(BaseModel):
    """Code and message of an error."""

    code: str
    message: str
    details: list[ErrorDetail] = []


class ErrorResponse(BaseModel):
    """Body of every error response."""

    error: ErrorBody


ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorResponse, "description": "Error with code and message."}
}
