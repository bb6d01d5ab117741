"""Data of the figures of a reproduction: saved answers, ROC curves and panels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from sparcets.arrays import BoolArray, FloatArray
from sparcets.datasets.base import Dataset
from sparcets.datasets.load import load_dataset
from sparcets.errors import DataNotFoundError
from sparcets.experiments.benchmark.published import DATASETS, METHODS
from sparcets.experiments.reproduce.compact import FOLDER, TOLERANCE, load_compact, queried_rows
from sparcets.experiments.reproduce.measured import Row, Runs
from sparcets.experiments.reproduce.plans import BARE
from sparcets.explanation.files import load_explanation
from sparcets.explanation.result import Explanation


class StoredRuns:
    """Rows of finished runs, the saved explanations of their first repetition, and their data sets."""

    def __init__(self, folder: Path, rows: Iterable[Row]) -> None:
        self.folder = folder
        self.runs = Runs(rows)
        self._datasets: dict[str, Dataset] = {}

    def answers(self, dataset: str, label: str) -> Explanation:
        """Return the saved answers of a run towards the paper's target, without queries that were in it already."""
        for row in self.runs.of(dataset, label).finished:
            path = self.folder / "explanations" / f"{row['key']}.npz"
            if path.exists():
                e = load_explanation(path)
                return e[e.status != "unchanged"]
            compact = self.folder / FOLDER / f"{row['key']}.npz"
            if compact.exists():
                return load_compact(compact, self.dataset(dataset))
        raise DataNotFoundError(
            f"no answers of {label} on {dataset} are saved in {self.folder / 'explanations'}. Run that part first."
        )

    def dataset(self, name: str) -> Dataset:
        """Return a data set as the runs loaded it."""
        if name not in self._datasets:
            row = next(row for label in METHODS.values() for row in self.runs.of(name, label).finished)
            self._datasets[name] = load_dataset(row.get("source") or name, **dict(row.get("options") or {}))
        return self._datasets[name]


def roc_curves(runs: Runs) -> dict[str, dict[str, tuple[FloatArray, FloatArray, FloatArray]]]:
    """Return the ROC curves on Moving Box by target and label: false positive rates, mean and std of the true ones."""
    curves: dict[str, dict[str, tuple[FloatArray, FloatArray, FloatArray]]] = {}
    for target in sorted(DATASETS["moving_box"].classes, reverse=True):  # the paper's main target first
        for label in (*METHODS.values(), BARE):
            found = [row["curve"] for row in runs.of("moving_box", label, target).finished if row.get("curve")]
            if found:
                tpr = np.array([curve["tpr"] for curve in found], dtype=np.float64)  # (repetitions, points)
                std = tpr.std(0, ddof=1) if len(tpr) > 1 else np.zeros(tpr.shape[1])
                fpr = np.asarray(found[0]["fpr"], dtype=np.float64)
                curves.setdefault(target, {})[label] = (fpr, tpr.mean(0), std)
    return curves


def saliency_panels(
    stored: StoredRuns, which: slice, labels: tuple[str, ...]
) -> list[list[tuple[str, FloatArray | BoolArray]]]:
    """Return titles and panels (time, features) for queries of Moving Box: query, salient entries, size of the changes.

    Parameters
    ----------
    stored
        Runs on Moving Box, SPARCE among them.
    which
        Which of the queries that all methods answered.
    labels
        Methods.
    """
    answers = {label: stored.answers("moving_box", label) for label in labels}
    data, first = stored.dataset("moving_box"), answers["SPARCE"]
    if data.salient_test is None:
        raise DataNotFoundError(
            "this copy of moving_box has no salient entries. Leave --source out to generate the data set."
        )
    queried = queried_rows(data, int(first.target[0]))
    scaler = first.info.scaler
    rows: list[list[tuple[str, FloatArray | BoolArray]]] = []
    for row in shared_answers(answers, which.stop)[which]:
        query = first.query[row["SPARCE"]]
        position = queried[first.query_index[row["SPARCE"]]]
        if not np.allclose(query, data.X_test[position], atol=TOLERANCE):
            raise DataNotFoundError("the saved answers belong to another moving_box. Run that part again.")
        sizes = [
            (label.replace(", ", "\n"), np.abs(e.delta[row[label]] / scaler.scale)) for label, e in answers.items()
        ]
        rows.append([("query", scaler.transform(query)), ("salient", data.salient_test[position]), *sizes])
    return rows


def shared_answers(answers: Mapping[str, Explanation], n: int) -> list[dict[str, int]]:
    """Return the indices, by label, of the answers to ``n`` queries that all methods answered.

    Queries with more valid answers come first; otherwise the order is that of the data.
    """
    indices = {label: {int(q): i for i, q in enumerate(e.query_index)} for label, e in answers.items()}
    queries = sorted(set.intersection(*(set(found) for found in indices.values())))
    rows = [{label: indices[label][q] for label in answers} for q in queries]
    rows.sort(key=lambda row: -sum(bool(answers[label].valid[i]) for label, i in row.items()))
    if len(rows) < n:
        raise DataNotFoundError(f"{n} queries answered by {', '.join(answers)} are needed, {len(rows)} are saved.")
    return rows[:n]
