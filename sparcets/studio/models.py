"""What goes over the wire: the requests and answers of the API, checked by pydantic."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", examples=["catching-0"])]
Preset = Literal["default", "tiny"]
Name = Annotated[str, Field(max_length=200)]
Step = Annotated[int, Field(ge=0, le=1_000_000)]


class Strict(BaseModel):
    """A request: what is not known is refused rather than ignored."""

    model_config = ConfigDict(extra="forbid")


class ErrorDetail(BaseModel):
    """One problem among several."""

    where: str
    problem: str


class ErrorBody(BaseModel):
    """What is wrong."""

    code: str
    message: str
    details: list[ErrorDetail] = []


class Error(BaseModel):
    """The shape of every error."""

    error: ErrorBody


class Status(BaseModel):
    """What is running."""

    version: str
    workspace: str
    upload_bytes: int
    rows: int
    answers: int
    seconds: float


class Entry(BaseModel):
    """Something that can be chosen by name."""

    name: str
    about: str


class Catalog(BaseModel):
    """What can be chosen."""

    datasets: list[Entry]
    classifiers: list[Entry]
    explainers: list[Entry]


class OpenDataset(Strict):
    """A data set to be opened by name."""

    name: Annotated[str, Field(min_length=1, max_length=64, examples=["catching"])]


class DatasetRecord(BaseModel):
    """A data set of the workspace."""

    id: Id
    name: str
    source: str  # name of the loader, or name of the uploaded file
    uploaded: bool
    seed: int
    description: str
    split: str
    n_train: int
    n_test: int
    n_steps: int
    class_names: list[str]
    class_counts: list[int]
    feature_names: list[str]
    units: list[str] | None
    sampling_rate: float | None
    mutable: list[bool]
    low: list[float]  # smallest and largest training value of each feature
    high: list[float]
    padded: bool


class Series(BaseModel):
    """One test series, (time, features) in the data's own units."""

    row: int
    label: str
    length: int
    values: list[list[float]]


class TrainClassifier(Strict):
    """A classifier to be trained."""

    dataset: Id
    architecture: Annotated[str, Field(min_length=1, max_length=64, examples=["bilstm"])]
    preset: Preset = "default"


class ClassifierRecord(BaseModel):
    """A trained classifier of the workspace."""

    id: Id
    dataset: Id
    architecture: str
    preset: Preset
    seed: int
    test_accuracy: float
    seconds: float


class FitExplainer(Strict):
    """An explainer to be fitted."""

    classifier: Id
    method: Annotated[str, Field(min_length=1, max_length=64, examples=["sparce"])]
    preset: Preset = "default"


class ExplainerRecord(BaseModel):
    """A fitted explainer of the workspace."""

    id: Id
    dataset: Id
    classifier: Id
    method: str
    preset: Preset
    seed: int
    summary: str
    seconds: float


class Job(BaseModel):
    """A training, from the queue to its end."""

    id: Id
    kind: Literal["classifier", "explainer"]
    title: str
    parent: Id  # the data set of a classifier, the classifier of an explainer
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    stage: str = ""
    stages: int = 0  # begun so far
    done: float = 0.0  # of the present stage
    total: float | None = None
    note: str = ""
    seconds: float = 0.0
    error: ErrorBody | None = None
    result: Id | None = None


class Query(BaseModel):
    """A test series in the list: what it is, and what the classifier says."""

    row: int
    label: str
    predicted: str
    probability: float


class Queries(BaseModel):
    """A page of the list of queries."""

    total: int
    items: list[Query]


class Rules(Strict):
    """What an answer may not do; features by name. The same as ``sp.Constraints``."""

    immutable: Annotated[list[Name], Field(max_length=2000)] = []
    frozen: Annotated[list[tuple[Step, Step]], Field(max_length=200)] = []
    ranges: Annotated[dict[Name, tuple[FiniteFloat | None, FiniteFloat | None]], Field(max_length=2000)] = {}
    max_step: Annotated[dict[Name, FiniteFloat], Field(max_length=2000)] = {}
    direction: Annotated[dict[Name, Literal["up", "down"]], Field(max_length=2000)] = {}
    groups: Annotated[dict[Name, list[Name]], Field(max_length=2000)] = {}


class Question(Strict):
    """What is to be explained, by which explainer, within which limits."""

    explainer: Id
    rows: Annotated[list[Annotated[int, Field(ge=0, le=100_000_000)]], Field(min_length=1)]
    target: Name | None = None  # None: the runner-up class of each query
    sparsity: Annotated[float, Field(gt=0, le=1)] | None = None
    answers: Annotated[int, Field(ge=1)] = 1
    constraints: Rules = Rules()


class Export(Question):
    """What is on the screen: the picture shows answer ``shown`` of the first query."""

    shown: Annotated[int, Field(ge=0)] = 0


class Coming(Strict):
    """Questions that may be asked next, the likeliest first."""

    questions: Annotated[list[Question], Field(max_length=64)]


class Change(BaseModel):
    """A stretch in which one feature changes, half-open in steps."""

    feature: str
    start: int
    end: int
    mean_change: float
    units: str


class Answer(BaseModel):
    """One answer: what would have to be different."""

    row: int
    target: str
    predicted: str
    status: Literal["unchanged", "generated", "refined", "neighbour", "not_found"]
    valid: bool
    reason: str
    text: str
    probability_before: list[float]
    probability_after: list[float]
    share_changed: float
    changes: list[Change]
    counterfactual: list[list[float]]


class Answers(BaseModel):
    """Answers, those of one query standing together, best first."""

    method: str
    seconds: float
    answers: list[Answer]
