"""Explanations, series and predictions as the API answers them, and as files to take away."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.segments import find_segments
from sparcets.studio.errors import ApiError
from sparcets.studio.models import Answer, Answers, Change, Export, Queries, Query, Series
from sparcets.studio.snippet import python_lines

if TYPE_CHECKING:
    from sparcets.datasets.base import Dataset
    from sparcets.explanation import Explanation
    from sparcets.studio.desk import Desk

MEDIA = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "npz": "application/octet-stream",
    "py": "text/x-python",
}


def series(dataset: Dataset, row: int) -> Series:
    """Return a test series."""
    if row >= len(dataset.X_test):
        raise ApiError(404, "not_found", f"no test series {row}: there are {len(dataset.X_test)}, numbered from 0.")
    return Series(
        row=row,
        label=dataset.class_names[int(dataset.y_test[row])],
        length=dataset.n_steps if dataset.lengths_test is None else int(dataset.lengths_test[row]),
        values=dataset.X_test[row].tolist(),
    )


def queries(dataset: Dataset, proba: FloatArray, *, predicted: str | None, wrong: bool, page: slice) -> Queries:
    """Return a page of the list of test series, with what a classifier says of them.

    Parameters
    ----------
    dataset
        The data.
    proba
        What the classifier says (series, classes).
    predicted
        Only those that are called so.
    wrong
        Only those that are not called by their label.
    page
        Which of those.
    """
    names, said = dataset.class_names, proba.argmax(1)
    kept = np.ones(len(said), dtype=bool)
    if predicted is not None:
        if predicted not in names:
            raise ApiError(422, "no_such_class", f"no class {predicted!r}; there are {', '.join(names)}.")
        kept &= said == names.index(predicted)
    if wrong:
        kept &= said != dataset.y_test
    rows = np.flatnonzero(kept)
    items = [
        Query(
            row=int(r),
            label=names[int(dataset.y_test[r])],
            predicted=names[int(said[r])],
            probability=float(proba[r, said[r]]),
        )
        for r in rows[page]
    ]
    return Queries(total=len(rows), items=items)


def answers(explanation: Explanation, rows: Sequence[int]) -> Answers:
    """Return an explanation as it goes over the wire; ``rows`` are the places of its queries in the test part."""
    return Answers(
        method=explanation.method,
        seconds=explanation.seconds,
        answers=[_answer(explanation, i, rows) for i in range(len(explanation))],
    )


def _answer(e: Explanation, i: int, rows: Sequence[int]) -> Answer:
    status: Any = str(e.status[i])
    return Answer(
        row=rows[int(e.query_index[i])],
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
        counterfactual=e.counterfactual[i].tolist(),
    )


def _changes(e: Explanation, i: int) -> list[Change]:
    found = find_segments(e.changed[i : i + 1])
    delta = e.counterfactual[i].astype(np.float64) - e.query[i]
    units = e.info.units or ("",) * e.info.n_features
    return [
        Change(
            feature=e.feature_names[f],
            start=int(start),
            end=int(end),
            mean_change=float(delta[start:end, f].mean()),
            units=units[f],
        )
        for f, start, end in zip(found.feature, found.start, found.end, strict=True)
    ]


def exported(desk: Desk, asked: Export, kind: str) -> bytes:
    """Return what is on the screen as the bytes of a file."""
    if kind == "py":
        return python_lines(desk.workspace, asked).encode()
    explanation = desk.explain(asked)
    if asked.shown >= len(explanation):
        raise ApiError(422, "no_such_answer", f"no answer {asked.shown}: there are {len(explanation)}.")
    if kind == "csv":
        frame = explanation.to_frame()
        frame["query"] = np.array(asked.rows)[frame["query"].to_numpy(dtype=np.int64)]
        return str(frame.to_csv(index=False)).encode()
    if kind == "npz":
        with tempfile.TemporaryDirectory() as folder:
            explanation.save(Path(folder, "run.npz"))
            return Path(folder, "run.npz").read_bytes()
    drawn = BytesIO()
    explanation.plot(asked.shown).savefig(drawn, format=kind)
    return drawn.getvalue()
