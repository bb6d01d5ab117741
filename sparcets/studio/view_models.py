"""Pydantic models of responses that are views of many numbers: curves, groups, overviews and bodies."""

from __future__ import annotations

from pydantic import BaseModel

from sparcets.studio.models import Part


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
    likeness: float | None  # cosine of its change and that of the others


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
    row_verdicts: list[str]
    row_shares: list[float]


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
