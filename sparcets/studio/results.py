"""Converts explanations, series and predictions to API responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.studio.errors import ApiError
from sparcets.studio.models import (
    Change,
    CounterfactualResult,
    ExplainResponse,
    QueryPage,
    QuerySummary,
    Series,
)

if TYPE_CHECKING:
    from sparcets.datasets.base import Dataset
    from sparcets.explanation.result import Explanation


def series(dataset: Dataset, row: int) -> Series:
    """Return a test series."""
    if row >= len(dataset.X_test):
        raise ApiError(404, "not_found", f"no test series {row}: there are {len(dataset.X_test)}, numbered from 0.")
    return Series(
        row=row,
        **_names(dataset.ids_test, dataset.subjects_test, row),
        label=dataset.class_names[int(dataset.y_test[row])],
        length=dataset.n_steps if dataset.lengths_test is None else int(dataset.lengths_test[row]),
        values=_plain(dataset.X_test[row]),
    )


def query_page(dataset: Dataset, proba: FloatArray, *, predicted: str | None, wrong: bool, page: slice) -> QueryPage:
    """Return a page of the list of test series with a classifier's predictions.

    Parameters
    ----------
    dataset
        The data set.
    proba
        Predicted probabilities, (series, classes).
    predicted
        Only series with this predicted class.
    wrong
        Only series that are misclassified.
    page
        Which of the remaining series to return.
    """
    names, classes = dataset.class_names, proba.argmax(1)
    kept = np.ones(len(classes), dtype=bool)
    if predicted is not None:
        if predicted not in names:
            raise ApiError(422, "no_such_class", f"no class {predicted!r}; there are {', '.join(names)}.")
        kept &= classes == names.index(predicted)
    if wrong:
        kept &= classes != dataset.y_test
    rows = np.flatnonzero(kept)
    items = [
        QuerySummary(
            row=int(r),
            **_names(dataset.ids_test, dataset.subjects_test, int(r)),
            label=names[int(dataset.y_test[r])],
            predicted=names[int(classes[r])],
            probability=float(proba[r, classes[r]]),
        )
        for r in rows[page]
    ]
    return QueryPage(total=len(rows), items=items)


def to_response(explanation: Explanation, rows: Sequence[int]) -> ExplainResponse:
    """Return an explanation as an API response; ``rows`` are the indices of its queries in the test set."""
    return ExplainResponse(
        method=explanation.method,
        seconds=explanation.seconds,
        answers=[_result(explanation, i, rows) for i in range(len(explanation))],
    )


def _result(e: Explanation, i: int, rows: Sequence[int]) -> CounterfactualResult:
    status: Any = str(e.status[i])
    return CounterfactualResult(
        row=rows[int(e.query_index[i])],
        **_names(e.ids, e.subjects, i),
        target=e.class_names[int(e.target[i])],
        predicted=e.class_names[int(e.predicted[i])],
        status=status,
        valid=bool(e.valid[i]),
        reason=str(e.reason[i]),
        text=e.text(i),
        probability_before=e.proba_before[i].tolist(),
        probability_after=e.proba_after[i].tolist(),
        share_changed=float(e.share_changed[i]),
        changes=_changes(e, i),
        counterfactual=_plain(e.counterfactual[i]),
    )


def _plain(series: FloatArray) -> list[list[float | None]]:
    """Return a series (time, features) for JSON, None where an entry is missing."""
    return [[None if value != value else value for value in step] for step in series.tolist()]


def _names(ids: Any, subjects: Any, i: int) -> dict[str, str | None]:
    """Return the id and the recorded person of a series; None where unknown."""
    return {"id": None if ids is None else str(ids[i]), "subject": None if subjects is None else str(subjects[i])}


def _changes(e: Explanation, i: int) -> list[Change]:
    frame = e[i].to_frame()[["feature", "start", "end", "mean_change", "units"]]
    return [Change.model_validate(row) for row in frame.to_dict("records")]
