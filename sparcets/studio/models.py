"""Limits on requests, and the pydantic models of requests, responses and records."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator

from sparcets.web.errors import ErrorBody
from sparcets.web.requests import MIB, WebLimits
from sparcets.web.schema import ConstraintsModel, EditModel, Name, Outcome, RequestModel, Step, Value, Whole, Windows

UPLOADS = re.compile(r"/api/v1/datasets/(upload|[^/]+/recordings)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits(WebLimits):
    """Limits per request and for all requests together."""

    upload_bytes: int = 64 * MIB  # size of an uploaded file
    uploads: int = 4  # files that are received or read at the same time
    readers: int = 2  # of them, files that are read
    reader_bytes: int = 2048 * MIB  # memory of the process that reads an uploaded file
    reader_seconds: float = 120.0  # its time
    unpacked_bytes: int = 512 * MIB  # uncompressed size of an .npz file, and of the series of any file
    columns: int = 100_000  # of a .csv file
    series_values: int = 1_000_000  # values of one series, which the page draws
    record_bytes: int = MIB  # names of features and classes, which the page loads
    rows: int = 64  # queries per request
    answers: int = 5  # counterfactuals per query
    exported_rows: int = 500  # queries of one file; those that are not explained yet count as those of a request
    queued_requests: int = 32  # queued requests
    queued_jobs: int = 8  # queued training jobs
    job_seconds: float = 4 * 3600.0  # time limit of one training job
    cached_models: int = 8  # LRU cache size for data sets, classifiers and explainers, each
    answer_bytes: int = 256 * MIB  # LRU cache size for answers: a slider moves back and forth, and files need them

    def max_bytes(self, path: str) -> int:
        """Return the largest size of a request to a path."""
        return self.upload_bytes if UPLOADS.fullmatch(path) else self.body_bytes


Id = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", examples=["catching-0"])]
Preset = Literal["default", "tiny"]
JobKind = Literal["classifier", "explainer"]
Part = Literal["test", "train", "new"]  # new: added later, without a part in any training


class LogIn(RequestModel):
    """Request to open a session, with a code that is valid once or with the token."""

    code: Annotated[str, Field(max_length=200)] | None = None
    token: Annotated[str, Field(max_length=1000)] | None = None

    @model_validator(mode="after")
    def _one_of_the_two(self) -> LogIn:
        if (self.code is None) == (self.token is None):
            raise ValueError("give the code or the token")
        return self


class Session(BaseModel):
    """A session that was opened: ``Authorization: Bearer <secret>``, until it was idle or open for so many seconds."""

    secret: str
    idle_seconds: float
    seconds: float


class Status(BaseModel):
    """Version and limits of the running studio."""

    version: str
    workspace: str
    upload_bytes: int
    rows: int
    answers: int
    seconds: float


class CatalogEntry(BaseModel):
    """Name and description of a registered data set, classifier or explainer; ``own``: the user's own model."""

    name: str
    about: str
    own: bool = False


class VerdictEntry(BaseModel):
    """A verdict as it is shown everywhere; ``tone`` is the name of its colour."""

    word: str
    symbol: str
    tone: Literal["green", "amber", "red", "grey"]
    meaning: str


class Catalog(BaseModel):
    """Everything that can be selected by name, and the verdicts that answers can have."""

    datasets: list[CatalogEntry]
    classifiers: list[CatalogEntry]
    explainers: list[CatalogEntry]
    verdicts: list[VerdictEntry]


class OpenDataset(RequestModel):
    """Request to open a data set by name."""

    name: Annotated[str, Field(min_length=1, max_length=64, examples=["catching"])]


class DatasetRecord(BaseModel):
    """A data set in the workspace."""

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
    feature_names: list[str]
    units: list[str] | None
    sampling_rate: float | None
    mutable: list[bool]
    low: list[float]  # smallest and largest training value of each feature
    high: list[float]
    n_missing: int  # missing values
    padded: bool


class Recording(BaseModel):
    """A recording by its row in the list, and its label, if it has one."""

    row: int
    part: Part
    id: str | None = None
    subject: str | None = None
    label: str | None


class Series(Recording):
    """One recording; ``values`` is (time, features) in the data's own units."""

    length: int
    values: list[list[float | None]]


class TrainClassifier(RequestModel):
    """Request to train a classifier."""

    dataset: Id
    architecture: Annotated[str, Field(min_length=1, max_length=64, examples=["bilstm"])]
    preset: Preset = "default"


class ClassifierRecord(BaseModel):
    """A trained classifier in the workspace."""

    id: Id
    dataset: Id
    architecture: str
    preset: Preset
    seed: int
    test_accuracy: float
    seconds: float
    own: bool  # the user's own model, which was not trained here


class FitExplainer(RequestModel):
    """Request to fit an explainer."""

    classifier: Id
    method: Annotated[str, Field(min_length=1, max_length=64, examples=["sparcets"])]
    preset: Preset = "default"


class ExplainerRecord(BaseModel):
    """A fitted explainer in the workspace."""

    id: Id
    dataset: Id
    classifier: Id
    method: str
    preset: Preset
    seed: int
    summary: str
    seconds: float
    doubts: list[str]  # what speaks against the model itself


class Job(BaseModel):
    """A training job and its progress."""

    id: Id
    kind: JobKind
    title: str
    parent: Id  # the data set of a classifier, the classifier of an explainer
    state: Literal["queued", "running", "done", "failed", "cancelled", "lost"]  # lost: the studio ended before it
    stage: str = ""
    done: float = 0.0  # progress of the current stage, out of ``total``
    total: float | None = None
    note: str = ""
    share: float = 0.0  # progress of the whole training, 0 to 1, as far as it can be known
    left: float | None = None  # seconds, about
    curves: dict[str, list[float | None]] = {}  # values that the training reported, by name
    seconds: float = 0.0
    error: ErrorBody | None = None
    result: Id | None = None


class QuerySummary(Recording):
    """A recording in the list: its label, if it has one, and the classifier's prediction."""

    predicted: str
    probability: float


class QueryFilter(BaseModel):
    """Which recordings are listed; ``search`` is a part of an id or subject, ``wrong`` keeps those misclassified."""

    offset: Annotated[int, Field(ge=0, le=100_000_000)] = 0
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    part: Part | None = None
    search: Annotated[str, Field(max_length=200)] | None = None
    predicted: Annotated[str, Field(max_length=200)] | None = None
    wrong: bool = False


class QueryPage(BaseModel):
    """A page of the list of recordings; ``counts`` has the number of all recordings by part."""

    total: int
    counts: dict[Part, int]
    items: list[QuerySummary]


class ConstraintsRequest(ConstraintsModel):
    """Constraints on a counterfactual; ``frozen_features`` are windows of single features, beside those of all."""

    frozen_features: Annotated[dict[Name, Windows], Field(max_length=2000)] = {}


class Stroke(RequestModel):
    """A change drawn by hand: a bump of height ``by`` around the step ``at``, ``width`` steps to both sides."""

    feature: Name
    at: Step
    width: Step
    by: Value


class ExplainRequest(RequestModel):
    """Request to explain recordings; ``answers`` is the number of counterfactuals per query.

    ``strokes`` change the recording first. They stay as they are, and the rest is searched for, unless ``find_rest`` is
    false: then the answer is what was drawn.
    """

    explainer: Id
    rows: Annotated[list[Annotated[Whole, Field(ge=0, le=100_000_000)]], Field(min_length=1)]
    target: Name | None = None  # None: the runner-up class of each query
    sparsity: Annotated[float, Field(gt=0, le=1)] | None = None
    answers: Annotated[Whole, Field(ge=1)] = 1
    constraints: ConstraintsRequest = ConstraintsRequest()
    strokes: Annotated[list[Stroke], Field(max_length=200)] = []
    find_rest: bool = True

    @model_validator(mode="after")
    def _strokes_are_drawn_on_one_recording(self) -> ExplainRequest:
        if self.strokes and len(self.rows) > 1:
            raise ValueError(f"strokes are drawn on one recording, got {len(self.rows)} rows")
        return self


class AnswerRequest(ExplainRequest):
    """Request to explain recordings on the page; an ``urgent`` one comes before all that can wait."""

    urgent: bool = False


class ExportRequest(ExplainRequest):
    """Request to export an explanation; the plot shows counterfactual ``shown``."""

    shown: Annotated[Whole, Field(ge=0)] = 0


class VerdictResult(VerdictEntry):
    """How far an answer can be trusted: what is said about it, and what speaks against it."""

    sentence: str
    doubts: list[str]


class Description(BaseModel):
    """What an answer changes, in sentences; ``changes`` are phrases, the largest first."""

    opening: str
    changes: list[str]
    rest: str
    unchanged: str
    trust: str
    doubts: list[str]
    note: str


class CounterfactualResult(BaseModel):
    """One counterfactual of one query; ``counterfactual`` is (time, features)."""

    row: int
    id: str | None = None
    subject: str | None = None
    target: str
    predicted: str
    status: Outcome
    valid: bool
    verdict: VerdictResult
    support: dict[str, float | None]  # share of each family of other models that predicts the target
    reason: str
    text: str
    description: Description
    probability_before: list[float]
    probability_after: list[float]
    share_changed: float
    edits: list[EditModel]
    counterfactual: list[list[float | None]]


class ExplainResponse(BaseModel):
    """Counterfactuals grouped by query, best first."""

    method: str
    seconds: float
    answers: list[CounterfactualResult]


class CurveResponse(BaseModel):
    """How belief falls as less may change, for one recording; no points for methods without other models.

    Each point has the ``share`` of changed values, the ``support`` of the family of other models that is convinced
    least, and whether the classifier predicts the target (``valid``).
    """

    target: str
    needed: float  # share of the answer without a cap
    share: list[float]
    support: list[float]
    valid: list[bool]
    flips_at: float | None  # smallest share at which the classifier predicts the target
    least_believed: float | None  # smallest share at which all families agree
    fragile: bool


class Pattern(BaseModel):
    """A change that several answers share: who does what, in how many answers, and by how much (the median)."""

    what: str
    how: str
    count: int
    amount: float
    unit: str


class GroupException(BaseModel):
    """A recording whose answer is not like those of the others."""

    row: int
    id: str | None
    subject: str | None
    verdict: str
    why: str


class GroupResponse(BaseModel):
    """What the answers of many recordings have in common; ``share`` and ``change`` are (time, features).

    ``share`` is that of the answers that change an entry, ``change`` their mean change in standard deviations, both
    over the answers that reach the target.
    """

    n: int
    n_reached: int
    verdicts: dict[str, int]
    share: list[list[float]]
    change: list[list[float]]
    patterns: list[Pattern]
    exceptions: list[GroupException]
    rows: list[int]


class Overview(BaseModel):
    """The predictions of a classifier: confusion tables by part (labels × predictions), and a point per recording."""

    confusion: dict[Part, list[list[int]]]
    x: list[float]
    y: list[float]
    predicted: list[int]
    labels: list[int]  # -1 where unknown
    parts: list[Part]
    probability: list[float]
    names: list[str] | None


class SkeletonResponse(BaseModel):
    """Body points among the features, two coordinates each; no limbs if the features name no body."""

    limbs: list[list[str]] | None = None
    outline: list[list[str]] = []
    points: dict[str, list[int]] = {}
    ball: str | None = None


class AddedRecordings(BaseModel):
    """Recordings that were added to a data set: their number, and the row of the first."""

    n: int
    first_row: int
