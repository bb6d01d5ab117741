"""Converts explanations, series and predictions to API responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.studio.models import (
    Change,
    CounterfactualResult,
    CurveResponse,
    DatasetRecord,
    Description,
    ExplainResponse,
    QueryPage,
    QuerySummary,
    Series,
    SkeletonResponse,
    VerdictEntry,
    VerdictResult,
)
from sparcets.studio.recordings import AllRecordings, Predictions
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.core.evidence import Verdict
    from sparcets.core.explanation import Explanation
    from sparcets.show.verdict import Conclusion


def series(recordings: AllRecordings, row: int) -> Series:
    """Return a recording."""
    recordings.check(row, 404)
    part, index = recordings.place(row)
    return Series(
        row=row,
        part=_part(recordings, row),
        **_names(recordings.ids, recordings.subjects, row),
        label=_label(recordings, row),
        length=recordings.length(row),
        values=_plain(recordings.parts[part].X[index]),
    )


def query_page(
    recordings: AllRecordings,
    predictions: Predictions,
    *,
    part: str | None,
    search: str | None,
    predicted: str | None,
    wrong: bool,
    page: slice,
) -> QueryPage:
    """Return a page of the list of recordings with a classifier's predictions.

    Parameters
    ----------
    recordings
        All recordings of the data set.
    predictions
        Of the classifier.
    part
        Only recordings of this part.
    search
        Only those with this text in their id or subject.
    predicted
        Only those with this predicted class.
    wrong
        Only those that are misclassified.
    page
        Which of the remaining ones to return.
    """
    names = recordings.class_names
    kept = np.ones(len(recordings), dtype=bool) if part is None else recordings.part_names == part
    if search:
        kept &= recordings.matches(search)
    rows = np.flatnonzero(kept)
    if predicted is not None or wrong:
        classes = predictions.of(rows).argmax(1)
        if predicted is not None:
            if predicted not in names:
                raise ApiError(422, "no_such_class", f"no class {predicted!r}; there are {', '.join(names)}.")
            rows, classes = (values[classes == names.index(predicted)] for values in (rows, classes))
        if wrong:
            labels = recordings.labels[rows]
            rows = rows[(classes != labels) & (labels >= 0)]
    shown = rows[page]
    proba = predictions.of(shown)
    items = [
        QuerySummary(
            row=int(row),
            part=_part(recordings, int(row)),
            **_names(recordings.ids, recordings.subjects, int(row)),
            label=_label(recordings, int(row)),
            predicted=names[int(p.argmax())],
            probability=float(p.max()),
        )
        for row, p in zip(shown, proba, strict=True)
    ]
    counts: Any = {name: int((recordings.part_names == name).sum()) for name in ("test", "train", "new")}
    return QueryPage(total=len(rows), counts=counts, items=items)


def _part(recordings: AllRecordings, row: int) -> Any:
    return str(recordings.part_names[row])


def _label(recordings: AllRecordings, row: int) -> str | None:
    label = int(recordings.labels[row])
    return None if label < 0 else recordings.class_names[label]


def to_response(explanation: Explanation, rows: Sequence[int]) -> ExplainResponse:
    """Return an explanation as an API response; ``rows`` are the rows of its queries in the list of recordings."""
    return ExplainResponse(
        method=explanation.method,
        seconds=explanation.seconds,
        answers=[_result(explanation, i, rows) for i in range(len(explanation))],
    )


def _result(e: Explanation, i: int, rows: Sequence[int]) -> CounterfactualResult:
    from sparcets.show.text import build_narrative

    status: Any = str(e.status[i])
    narrative = build_narrative(e[i])
    parts = {name: getattr(narrative, name) for name in Description.model_fields}
    return CounterfactualResult(
        row=rows[int(e.query_index[i])],
        **_names(e.ids, e.subjects, i),
        target=e.class_names[int(e.target[i])],
        predicted=e.class_names[int(e.predicted[i])],
        status=status,
        valid=bool(e.valid[i]),
        verdict=_verdict(narrative.conclusion),
        support={name: _finite(share) for name, share in zip(e.families, e.support[i], strict=True)},
        reason=str(e.reason[i]),
        text=str(narrative),
        description=Description.model_validate(parts),
        probability_before=e.proba_before[i].tolist(),
        probability_after=e.proba_after[i].tolist(),
        share_changed=float(e.share_changed[i]),
        changes=_changes(e, i),
        counterfactual=_plain(e.counterfactual[i]),
    )


def skeleton(record: DatasetRecord) -> SkeletonResponse:
    """Return the body that the features name; of three coordinates, the two with the largest range."""
    from sparcets.motion.skeleton import find_skeleton
    from sparcets.motion.stick_figure import BALL, OUTLINE

    names = record.feature_names
    found = find_skeleton(names)
    if found is None:
        return SkeletonResponse()
    points = dict(found.points)
    for extra in ("Head", BALL):
        if f"{extra}_x" in names and f"{extra}_y" in names:
            points[extra] = (names.index(f"{extra}_x"), names.index(f"{extra}_y"))
    size = min(len(indices) for indices in points.values())
    spans = np.array([[record.high[f] - record.low[f] for f in indices[:size]] for indices in found.points.values()])
    first, second = sorted(np.argsort(-spans.mean(0), kind="stable")[:2].tolist())
    return SkeletonResponse(
        limbs=[list(pair) for pair in found.limbs],
        outline=[list(pair) for pair in OUTLINE if all(point in points for point in pair)],
        points={name: [indices[first], indices[second]] for name, indices in points.items()},
        ball=BALL if BALL in points else None,
    )


def to_curve(e: Explanation) -> CurveResponse:
    """Return the curve of one answer, found without a cap."""
    points = np.flatnonzero(~np.isnan(e.curve["share"][0]))
    order = points[np.argsort(e.curve["share"][0, points], kind="stable")]
    return CurveResponse(
        target=str(e.target_names[0]),
        needed=float(e.share_changed[0]),
        share=e.curve["share"][0, order].tolist(),
        support=e.curve["support"][0, order].tolist(),
        valid=(e.curve["valid"][0, order] == 1).tolist(),
        flips_at=_finite(e.flips_at[0]),
        least_believed=_finite(e.least_believed[0]),
        fragile=bool(e.fragile[0]),
    )


def _verdict(conclusion: Conclusion) -> VerdictResult:
    entry = verdict_entry(conclusion.verdict).model_dump()
    return VerdictResult(**entry, sentence=conclusion.sentence, doubts=list(conclusion.doubts))


def verdict_entry(verdict: Verdict) -> VerdictEntry:
    """Return a verdict as an API response."""
    tone: Any = verdict.tone
    return VerdictEntry(word=verdict.word, symbol=verdict.symbol, tone=tone, meaning=verdict.meaning)


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain(series: FloatArray) -> list[list[float | None]]:
    """Return a series (time, features) for JSON, None where an entry is missing."""
    return [[None if value != value else value for value in step] for step in series.tolist()]


def _names(ids: Any, subjects: Any, i: int) -> dict[str, str | None]:
    """Return the id and the recorded person of a series; None where unknown."""
    return {"id": None if ids is None else str(ids[i]), "subject": None if subjects is None else str(subjects[i])}


def _changes(e: Explanation, i: int) -> list[Change]:
    frame = e[i].to_frame()[["feature", "start", "end", "mean_change", "units"]]
    return [Change.model_validate(row) for row in frame.to_dict("records")]
