"""Explanations, series and predictions as responses: one answer, many together, lists and maps of recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.series import FloatArray, IntArray
from sparcets.studio import models
from sparcets.studio.recordings import AllRecordings, Predictions
from sparcets.web.errors import ApiError
from sparcets.web.schema import EditModel

if TYPE_CHECKING:
    from sparcets.core.explanation import Explanation


def series(recordings: AllRecordings, row: int) -> models.Series:
    """Return a recording."""
    recordings.check(row, 404)
    part, index = recordings.places[row]
    return models.Series(
        **_recording(recordings, row),
        length=int(recordings.steps[row]),
        values=_plain(recordings.X[part][index]),
    )


def query_page(recordings: AllRecordings, predictions: Predictions, chosen: models.QueryFilter) -> models.QueryPage:
    """Return a page of the list of recordings with a classifier's predictions."""
    names = recordings.class_names
    kept = np.ones(len(recordings), dtype=bool) if chosen.part is None else recordings.part_names == chosen.part
    if chosen.search:
        kept &= recordings.matches(chosen.search)
    rows = np.flatnonzero(kept)
    if chosen.predicted is not None or chosen.wrong:
        classes = predictions.of(rows).argmax(1)
        if chosen.predicted is not None:
            if chosen.predicted not in names:
                raise ApiError(422, "no_such_class", f"no class {chosen.predicted!r}; there are {', '.join(names)}.")
            rows, classes = (values[classes == names.index(chosen.predicted)] for values in (rows, classes))
        if chosen.wrong:
            labels = recordings.labels[rows]
            rows = rows[(classes != labels) & (labels >= 0)]
    shown = rows[chosen.offset : chosen.offset + chosen.limit]
    proba = predictions.of(shown)
    items = [
        models.QuerySummary(**_recording(recordings, row), predicted=names[int(p.argmax())], probability=float(p.max()))
        for row, p in zip(shown.tolist(), proba, strict=True)
    ]
    counts: Any = {name: int((recordings.part_names == name).sum()) for name in ("test", "train", "new")}
    return models.QueryPage(total=len(rows), counts=counts, items=items)


def _recording(recordings: AllRecordings, row: int) -> dict[str, Any]:
    """Return what :class:`~sparcets.studio.models.Recording` holds."""
    label, names = int(recordings.labels[row]), _names(recordings.ids, recordings.subjects, row)
    known = None if label < 0 else recordings.class_names[label]
    return {"row": row, "part": str(recordings.part_names[row]), **names, "label": known}


def to_response(explanation: Explanation, rows: Sequence[int]) -> models.ExplainResponse:
    """Return an explanation as an API response; ``rows`` are the rows of its queries in the list of recordings."""
    return models.ExplainResponse(
        method=explanation.method,
        seconds=explanation.seconds,
        answers=[_result(explanation, i, rows) for i in range(len(explanation))],
    )


def _result(e: Explanation, i: int, rows: Sequence[int]) -> models.CounterfactualResult:
    from sparcets.show.edit_text import as_dict
    from sparcets.show.text import build_narrative

    status: Any = str(e.status[i])
    narrative = build_narrative(e[i])
    conclusion = narrative.conclusion
    verdict = models.VerdictEntry.model_validate(conclusion.verdict, from_attributes=True).model_dump()
    return models.CounterfactualResult(
        row=rows[int(e.query_index[i])],
        **_names(e.ids, e.subjects, i),
        target=e.class_names[int(e.target[i])],
        predicted=e.class_names[int(e.predicted[i])],
        status=status,
        valid=bool(e.valid[i]),
        verdict=models.VerdictResult(**verdict, sentence=conclusion.sentence, doubts=list(conclusion.doubts)),
        support={name: _finite(share) for name, share in zip(e.families, e.support[i], strict=True)},
        reason=str(e.reason[i]),
        text=str(narrative),
        description=models.Description.model_validate(narrative, from_attributes=True),
        probability_before=e.proba_before[i].tolist(),
        probability_after=e.proba_after[i].tolist(),
        share_changed=float(e.share_changed[i]),
        edits=[EditModel(**as_dict(edit)) for edit in e.edits(i)],
        counterfactual=_plain(e.counterfactual[i]),
    )


def skeleton(record: models.DatasetRecord) -> models.SkeletonResponse:
    """Return the body that the features name; of three coordinates, the two with the largest range."""
    from sparcets.motion.skeleton import find_skeleton
    from sparcets.motion.stick_figure import BALL, OUTLINE, drawn_points

    names = record.feature_names
    found = find_skeleton(names)
    if found is None:
        return models.SkeletonResponse()
    points = drawn_points(found, names)
    size = min(len(indices) for indices in points.values())
    spans = np.array([[record.high[f] - record.low[f] for f in indices[:size]] for indices in found.points.values()])
    first, second = sorted(np.argsort(-spans.mean(0), kind="stable")[:2].tolist())
    return models.SkeletonResponse(
        limbs=[list(pair) for pair in found.limbs],
        outline=[list(pair) for pair in OUTLINE if all(point in points for point in pair)],
        points={name: [indices[first], indices[second]] for name, indices in points.items()},
        ball=BALL if BALL in points else None,
    )


def to_curve(e: Explanation) -> models.CurveResponse:
    """Return the curve of one answer, found without a cap."""
    points = np.flatnonzero(~np.isnan(e.curve["share"][0]))
    order = points[np.argsort(e.curve["share"][0, points], kind="stable")]
    return models.CurveResponse(
        target=str(e.target_names[0]),
        needed=float(e.share_changed[0]),
        share=e.curve["share"][0, order].tolist(),
        support=e.curve["support"][0, order].tolist(),
        valid=(e.curve["valid"][0, order] == 1).tolist(),
        flips_at=_finite(e.flips_at[0]),
        least_believed=_finite(e.least_believed[0]),
        fragile=bool(e.fragile[0]),
    )


def _finite(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _plain(series: FloatArray) -> list[list[float | None]]:
    """Return a series (time, features) for JSON, None where an entry is missing."""
    return [[None if value != value else value for value in step] for step in series.tolist()]


def _names(ids: Any, subjects: Any, i: int) -> dict[str, str | None]:
    """Return the id and the recorded person of a series; None where unknown."""
    return {"id": None if ids is None else str(ids[i]), "subject": None if subjects is None else str(subjects[i])}


MAX_PATTERNS = 12  # most frequent changes that are listed
MAX_EXCEPTIONS = 10
ONE_WAY = 0.5  # net change, as a share of all change, from which a feature is higher or lower on the whole
UNLIKE = 2.5  # robust standard deviations below the median of the similarities
SAMPLE = 400  # recordings from which the axes of the map are computed
MAX_STEPS = 100  # of a series in the map; longer ones are thinned out


def summarise(e: Explanation, rows: Sequence[int]) -> models.GroupResponse:
    """Return what the answers have in common, one for each of the recordings ``rows``."""
    reached = np.flatnonzero(e.valid & (e.status != "unchanged") & (e.status != "not_found"))
    delta = e.delta[reached] / e.info.scaler.scale  # (answers, time, features)
    changed = e.changed[reached]
    n = max(len(reached), 1)
    likeness = similarities(delta)
    return models.GroupResponse(
        n=len(e),
        n_reached=len(reached),
        verdicts=dict(Counter(e.verdict.tolist())),
        share=(changed.sum(0) / n).tolist(),
        change=(delta.sum(0) / n).tolist(),
        patterns=patterns(e, reached),
        exceptions=_exceptions(e, rows, reached, likeness),
        rows=list(rows),
    )


def similarities(delta: FloatArray) -> FloatArray:
    """Return how alike each change (answers, time, features) is to the mean of the others: their cosine (answers,).

    >>> same = np.tile([[[1.0], [0.0]]], (3, 1, 1))
    >>> similarities(np.concatenate([same, -same[:1]])).round(2).tolist()
    [1.0, 1.0, 1.0, -1.0]
    """
    if len(delta) < 2:
        return np.ones(len(delta))
    flat = delta.reshape(len(delta), -1)
    flat = flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-12)
    others = flat.sum(0) - flat  # the direction of the mean of the others
    size = np.maximum(np.linalg.norm(others, axis=1), 1e-12)
    return np.asarray((flat * others).sum(1) / size)


def patterns(e: Explanation, reached: IntArray) -> list[models.Pattern]:
    """Return what most answers do to a feature, each with the number of answers and the median amount."""
    delta = np.where(e.changed, e.delta, 0.0)[reached].astype(np.float64)
    size, steps = np.abs(delta).sum(1), (delta != 0).sum(1)  # (answers, features)
    net = delta.sum(1) / np.maximum(size, 1e-300)
    way = np.where(np.abs(net) < ONE_WAY, 0, np.sign(net))
    found = []
    for f, name in enumerate(e.feature_names):
        for sign, how in ((1, "higher"), (-1, "lower"), (0, "both ways")):
            alike = (steps[:, f] > 0) & (way[:, f] == sign)
            if (count := int(alike.sum())) > 1:
                amount = float(np.median(size[alike, f] / steps[alike, f]))
                unit = e.info.units[f] if e.info.units else ""
                found.append(models.Pattern(what=name, how=how, count=count, amount=amount, unit=unit))
    return sorted(found, key=lambda pattern: -pattern.count)[:MAX_PATTERNS]


def _exceptions(
    e: Explanation, rows: Sequence[int], reached: IntArray, likeness: FloatArray
) -> list[models.GroupException]:
    """Return the recordings that are not like the others: no answer, one that nobody believes, or an unusual one."""
    why = {"not reached": "no answer was found", "trick": "the answer fools the model alone"}
    found = {i: why[verdict] for i, verdict in enumerate(e.verdict.tolist()) if verdict in why}
    middle = float(np.median(likeness)) if len(likeness) else 0.0
    spread = 1.4826 * float(np.median(np.abs(likeness - middle))) if len(likeness) else 0.0
    for k in np.argsort(likeness, kind="stable").tolist():
        if likeness[k] < middle - UNLIKE * max(spread, 0.02):
            found.setdefault(int(reached[k]), _unusual(e, int(reached[k]), reached))
    return [
        models.GroupException(row=rows[i], **_names(e.ids, e.subjects, i), verdict=str(e.verdict[i]), why=text)
        for i, text in list(found.items())[:MAX_EXCEPTIONS]
    ]


def _unusual(e: Explanation, i: int, reached: IntArray) -> str:
    """Say what an answer changes that the others do not: the features with the largest excess of change."""
    size = np.abs(e.delta / e.info.scaler.scale).sum(1)  # (answers, features)
    own = size[i] / max(float(size[i].sum()), 1e-12)
    usual = size[reached].mean(0) / max(float(size[reached].mean(0).sum()), 1e-12)
    order = np.argsort(-(own - usual), kind="stable")
    names = [e.feature_names[f] for f in order[:2] if own[f] - usual[f] > 0.05]
    return f"changes {' and '.join(names)} more than the others do" if names else "changes the same features otherwise"


def overview(recordings: AllRecordings, predictions: Predictions) -> models.Overview:
    """Return the confusion table of a classifier, and every recording as a point."""
    proba = predictions.of(np.arange(len(recordings)))
    classes, n_classes = proba.argmax(1), len(recordings.class_names)
    tables: dict[Any, list[list[int]]] = {}
    for part in ("test", "train", "new"):
        of_part = (recordings.part_names == part) & (recordings.labels >= 0)
        if of_part.any():
            cells = recordings.labels[of_part] * n_classes + classes[of_part]
            tables[part] = np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes).tolist()
    x, y = positions(recordings).T
    return models.Overview(
        confusion=tables,
        x=x.round(4).tolist(),
        y=y.round(4).tolist(),
        predicted=classes.tolist(),
        labels=recordings.labels.tolist(),
        parts=recordings.part_names.tolist(),
        probability=proba.max(1).round(4).tolist(),
        names=None if recordings.ids is None else recordings.ids.tolist(),
    )


def positions(recordings: AllRecordings) -> FloatArray:
    """Return a place in the plane for every recording (recordings, 2): its first two principal components.

    Series are standardised by feature; missing entries and padding count as the mean.
    """
    from sklearn.decomposition import PCA

    n_steps = recordings.X[0].shape[1]
    steps = np.linspace(0, n_steps - 1, min(MAX_STEPS, n_steps)).astype(int)
    flat = np.concatenate([X[:, steps] for X in recordings.X]).astype(np.float64)
    flat[steps >= recordings.steps[:, None]] = np.nan
    sample = flat[np.linspace(0, len(flat) - 1, min(SAMPLE, len(flat))).astype(int)]
    center, scale = np.nanmean(sample, (0, 1)), np.nanstd(sample, (0, 1))
    scale = np.where(scale > 0, scale, 1.0)

    def standardised(series: FloatArray) -> FloatArray:
        return np.asarray(np.nan_to_num((series - center) / scale).reshape(len(series), -1))

    axes = standardised(sample)
    pca = PCA(min(2, *axes.shape), svd_solver="full").fit(axes)
    parts = [pca.transform(standardised(flat[start : start + SAMPLE])) for start in range(0, len(flat), SAMPLE)]
    return np.pad(np.concatenate(parts), ((0, 0), (0, 2 - pca.n_components_)))
