"""Parts of requests and responses that studio and server share: numbers and names, constraints, edits."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict

from sparcets.core.series import LARGEST

T = TypeVar("T")


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole: TypeAlias = Annotated[int, BeforeValidator(_whole)]  # to JSON, 2.0 is one
Pair: TypeAlias = Annotated[tuple[T, T], Strict(False)]  # JSON has lists only
Name: TypeAlias = Annotated[str, Field(max_length=200)]
Step: TypeAlias = Annotated[Whole, Field(ge=0, le=1_000_000)]
Direction: TypeAlias = Literal["up", "down"]
Outcome: TypeAlias = Literal["unchanged", "generated", "refined", "neighbour", "not_found"]
Value: TypeAlias = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]  # of a series


class RequestModel(BaseModel):
    """Base of all requests: unknown keys are rejected, not ignored, and a text or a truth value is no number.

    A whole number is one where any number is expected; NaN and infinity are none. Whole numbers are of type ``Whole``.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Many = Field(max_length=2000)
Windows: TypeAlias = Annotated[list[Pair[Step | None]], Field(max_length=200)]


class ConstraintsModel(RequestModel):
    """What may change, with the fields of ``sp.Constraints``; features by name, None is an open end."""

    immutable: Annotated[list[Name], Many] = []
    frozen: Windows | Annotated[dict[Name, Windows], Many] = []
    ranges: Annotated[dict[Name, Pair[float | None]], Many] = {}
    max_step: Annotated[dict[Name, float], Many] = {}
    direction: Annotated[dict[Name, Direction], Many] = {}
    groups: Annotated[dict[Name, list[Name]], Many] = {}
    max_features: Annotated[Whole, Field(ge=1)] | None = None
    integer: Annotated[list[Name], Many] = []
    monotone: Annotated[dict[Name, Direction], Many] = {}
    fixed_sum: Annotated[list[list[Name]], Many] = []


class EditModel(BaseModel):
    """An edit of an answer; ``row`` is the training series that it follows, ``needed_by`` who needs it."""

    features: list[str]
    start: int
    end: int
    kind: str
    amount: float
    row: int | None
    needed_by: list[str]
    text: str
