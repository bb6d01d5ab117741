"""Answers of a run in little space: their changes in half precision. The queries are those of the data set."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from sparcets.arrays import IntArray
from sparcets.datasets.base import Dataset
from sparcets.errors import DataNotFoundError, FileFormatError
from sparcets.explanation.result import Explanation
from sparcets.explanation.series_info import SeriesInfo
from sparcets.npz import UNREADABLE, write_npz
from sparcets.storage import atomic_path

FOLDER = "answers"  # in the folder of a reproduction
# The generated series differ in the last digits between versions of NumPy.
TOLERANCE = 1e-3


def save_compact(e: Explanation, path: str | os.PathLike[str]) -> None:
    """Write the answers of a run towards one class that are not ``unchanged``.

    Parameters
    ----------
    e
        Answers to the test series of all other classes, or to some of them; ``query_index`` counts these.
    path
        The file, about 2 bytes per changed entry.
    """
    answered = e[e.status != "unchanged"]
    arrays = {
        "delta": (answered.delta / answered.info.scaler.scale).astype(np.float16),
        "means": answered.query.mean((1, 2)).astype(np.float32),
        "query_index": answered.query_index.astype(np.int32),
        "target": answered.target.astype(np.int32),
        "status": answered.status,
        "proba_before": answered.proba_before.astype(np.float32),
        "proba_after": answered.proba_after.astype(np.float32),
    }
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        write_npz(file, arrays, compress=True)


def load_compact(path: str | os.PathLike[str], data: Dataset) -> Explanation:
    """Return the answers in a file of :func:`save_compact`, with the queries of the data set they belong to.

    Changes are rounded to three digits; entries that were not changed are not changed here either.
    """
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        target = arrays["target"]
        rows = queried_rows(data, int(target[0]))[arrays["query_index"]]
        query = data.X_test[rows]
        same = np.allclose(query.mean((1, 2)), arrays["means"], atol=TOLERANCE)
        info = SeriesInfo.from_series(data.X_train, data.class_names, source=data)
        delta = arrays["delta"].astype(np.float64) * info.scaler.scale  # (answers, time, features)
        counterfactual = np.where(delta == 0, query, query + delta).astype(query.dtype)
        found = Explanation(
            query=query,
            counterfactual=counterfactual,
            target=target.astype(np.int64),
            status=arrays["status"],
            reason=np.full(len(target), ""),
            query_index=arrays["query_index"].astype(np.int64),
            proba_before=arrays["proba_before"],
            proba_after=arrays["proba_after"],
            info=info,
            mutable=np.ones(data.n_features, dtype=bool) if data.mutable is None else data.mutable,
        )
    except UNREADABLE as error:
        raise FileFormatError(f"{path} does not hold answers to {data.name}: {error}. Restore it.") from error
    if not same:
        raise DataNotFoundError(f"the answers in {path} belong to another {data.name}. Run that part again.")
    return found


def queried_rows(data: Dataset, target: int) -> IntArray:
    """Return the rows of the test part that a run explains: the series of other classes than the target."""
    return np.flatnonzero(data.y_test != target)
