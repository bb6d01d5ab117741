"""Pydantic models of the server's requests and responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sparcets.web.schema import ConstraintsModel, EditModel, Name, Outcome, Pair, RequestModel, Value, Whole

T = TypeVar("T")
Listed: TypeAlias = Annotated[
    list[T], Field(fail_fast=True)
]  # of numbers: the first that is none is told, not each of many
EXAMPLE: dict[str, Any] = {"series": [[[0.1, 0.2], [0.3, 0.1], [0.2, 0.4]]], "target": "brisk", "sparsity": 0.2}


class NotClass(RequestModel):
    """Any class but one, as ``sp.Not``."""

    not_: Annotated[Name | Whole, Field(alias="not")]


class NumberTarget(RequestModel):
    """For a model of numbers, of all outputs or of one: ``sp.AtLeast``, ``AtMost``, ``Between`` or ``Change``."""

    at_least: float | None = None
    at_most: float | None = None
    between: Pair[float] | None = None
    change: float | None = None
    output: Name | Whole | None = None

    @model_validator(mode="after")
    def _is_one_of_them(self) -> NumberTarget:
        if [self.at_least, self.at_most, self.between, self.change].count(None) != 3:
            raise ValueError("give one of at_least, at_most, between and change")
        return self


class Question(RequestModel):
    """What is asked about every series of a request; series with the same question are explained together."""

    target: Name | Whole | NotClass | NumberTarget | None = Field(
        default=None, description="Name or index of the class; by default the runner-up of each series."
    )
    constraints: ConstraintsModel | None = None
    sparsity: Annotated[float, Field(gt=0, le=1)] | None = Field(
        default=None, description="Change at most this share of the entries that may change."
    )
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="Least probability of the target that counts as reached."
    )
    edits: Annotated[Whole, Field(ge=1)] | None = Field(
        default=None, description="Largest number of edits of an answer; for the method sparcets."
    )
    n: Annotated[Whole, Field(ge=1)] = Field(default=1, description="Answers per series.")


class ExplainRequest(Question):
    """Series to explain, and what is asked about them."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    series: Listed[Listed[Listed[Value | None]]] = Field(
        min_length=1, description="Series (time, features) in the data's own units; null where a value is missing."
    )
    ids: list[Name] | None = Field(default=None, description="A name for each series, kept with its answers.")
    side: dict[Name, Listed[float | Listed[float] | Listed[Listed[float]]]] | None = Field(
        default=None,
        description="For a model that takes more than the series, by name: for each series a number, or several.",
    )
    counterfactual: bool = Field(
        default=True, description="Whether answers hold the whole counterfactual, or only the values that change."
    )
    text: bool = Field(default=True, description="Whether answers are described in sentences, which takes longer.")


class Changed(BaseModel):
    """Consecutive steps in which one feature changes, half-open; its new values, if the whole series is left out."""

    feature: str
    start: int
    end: int
    values: list[float] | None


class Answer(BaseModel):
    """One counterfactual of one series; what is not known, or was not asked for, is null."""

    series: int = Field(description="Index of the series in the request.")
    id: str | None
    predicted: str | dict[str, float] = Field(description="Class of the series; or the numbers, by output.")
    target: str
    status: Outcome
    reason: str = Field(description="Why no counterfactual was found, or what the model itself says against it.")
    valid: bool = Field(description="Whether the model says the target of the counterfactual.")
    probability: float | None = Field(description="Of the target, for the counterfactual; null for numbers.")
    prediction: str | dict[str, float] = Field(description="What the model says of the counterfactual.")
    verdict: Literal["unchanged", "not reached", "believed", "trick", "doubtful"]
    support: dict[str, float | None] = Field(
        description="Share of the other models of each kind that predict the target."
    )
    share_changed: float
    changed: list[Changed]
    edits: list[EditModel] = Field(description="What the answer consists of, what the model needs first.")
    counterfactual: list[list[float | None]] | None
    text: str | None


class ExplainResponse(BaseModel):
    """Answers in the order of the series, ``n`` for each, the best first."""

    method: str
    answers: list[Answer]


class ModelResponse(BaseModel):
    """What is served, and what its series must look like."""

    method: str
    version: str
    n_steps: int
    lengths: Literal["equal", "any"] = Field(description="Whether series of other lengths than n_steps are explained.")
    features: list[str]
    units: list[str] | None
    sampling_rate: float | None
    mutable: list[bool]
    classes: list[str] = Field(description="Empty for a model of numbers.")
    outputs: list[str] = Field(description="Names of the numbers; empty for a model of classes.")
    side: list[str] = Field(description="Names of the side inputs.")
    summary: str


class Health(BaseModel):
    """That the server runs."""

    status: Literal["ok"] = "ok"


class Ready(BaseModel):
    """How many workers can explain."""

    workers: int
