"""Pydantic models of requests and errors that all web applications here share."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict


class RequestModel(BaseModel):
    """Base of all requests: unknown keys are rejected, not ignored."""

    model_config = ConfigDict(extra="forbid")


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
