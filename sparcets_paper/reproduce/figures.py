"""Figures 1 to 7 of the paper, drawn from stored rows and saved explanations."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import DataNotFoundError, FileFormatError, SparcetsError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.series import IntArray
from sparcets.data.dataset import Dataset
from sparcets.data.load import load_dataset
from sparcets.io.explanations import load_explanation
from sparcets.io.files import UNREADABLE, atomic_path, write_npz
from sparcets.io.folders import inside
from sparcets.motion.limbs import limb_lengths
from sparcets.motion.skeleton import CATCHING_ARMS, find_skeleton
from sparcets_paper.benchmark.figure_numbers import embed
from sparcets_paper.benchmark.published import DATASETS, METHODS
from sparcets_paper.benchmark.store import RESULTS
from sparcets_paper.plots.architecture import plot_architecture
from sparcets_paper.plots.benchmark import Curve, plot_distances, plot_embedding, plot_roc
from sparcets_paper.plots.heatmap import Panel, plot_heatmaps, plot_saliency
from sparcets_paper.reproduce.agreement import Row, Runs
from sparcets_paper.reproduce.plans import DRAWN

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FOLDER = "answers"  # in the folder of a reproduction
# The generated series differ in the last digits between versions of NumPy.
TOLERANCE = 1e-3


def save_compact(e: Explanation, path: str | os.PathLike[str]) -> None:
    """Write the answers of a run towards one class that are not ``unchanged``, in about 2 bytes per changed entry.

    They are answers to the test series of all other classes, or to some of them, which ``query_index`` counts.
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


class StoredRuns:
    """Rows of finished runs, the saved explanations of their first repetition, and their data sets.

    ``sources`` are the paths of data that the caller has named; rows cannot name others.
    """

    def __init__(self, folder: Path, rows: Iterable[Row], sources: Iterable[str] = ()) -> None:
        self.folder, self.sources = folder, {None, *sources}
        self.runs = Runs(rows)
        self._datasets: dict[str, Dataset] = {}

    def answers(self, dataset: str, label: str) -> Explanation:
        """Return the saved answers of a run towards the paper's target, without queries that were in it already."""
        for row in self.runs.of(dataset, label).finished:
            path = inside(self.folder, f"explanations/{row['key']}.npz", named_by=self.folder / RESULTS)
            if path.exists():
                e = load_explanation(path)
                return e[e.status != "unchanged"]
            compact = inside(self.folder, f"{FOLDER}/{row['key']}.npz", named_by=self.folder / RESULTS)
            if compact.exists():
                return load_compact(compact, self.dataset(dataset))
        raise DataNotFoundError(
            f"no answers of {label} on {dataset} are saved in {self.folder / 'explanations'}. Run that part first."
        )

    def dataset(self, name: str) -> Dataset:
        """Return a data set as the runs loaded it."""
        if name not in self._datasets:
            row = next(row for label in METHODS.values() for row in self.runs.of(name, label).finished)
            source, options = row.get("source"), dict(row.get("options") or {})
            if not {source, options.get("path")} <= self.sources:
                raise DataNotFoundError(f"a stored run of {name} names a path of its own, which is not followed.")
            self._datasets[name] = load_dataset(source or name, **options)
        return self._datasets[name]


def roc_curves(runs: Runs) -> dict[str, dict[str, Curve]]:
    """Return the ROC curves on Moving Box by target and label: false positive rates, mean and std of the true ones."""
    curves: dict[str, dict[str, Curve]] = {}
    for target, label, group in runs.boxes():
        found = [row["curve"] for row in group.finished if row.get("curve")]
        if found:
            tpr = np.array([curve["tpr"] for curve in found], dtype=np.float64)  # (repetitions, points)
            std = tpr.std(0, ddof=1) if len(tpr) > 1 else np.zeros(tpr.shape[1])
            curves.setdefault(target, {})[label] = (np.array(found[0]["fpr"], dtype=np.float64), tpr.mean(0), std)
    return curves


def saliency_panels(stored: StoredRuns, which: slice, labels: tuple[str, ...]) -> list[list[Panel]]:
    """Return titles and panels (time, features) for queries of Moving Box: query, salient entries, size of the changes.

    ``which`` are those to take of the queries that all methods, SPARCE among them, answered.
    """
    answers = {label: stored.answers("moving_box", label) for label in labels}
    data, first = stored.dataset("moving_box"), answers["SPARCE"]
    if data.salient_test is None:
        raise DataNotFoundError(
            "this copy of moving_box has no salient entries. Leave --source out to generate the data set."
        )
    queried = queried_rows(data, int(first.target[0]))
    scaler = first.info.scaler
    rows: list[list[Panel]] = []
    for row in shared_answers(answers, which.stop)[which]:
        query = first.query[row["SPARCE"]]
        position = queried[first.query_index[row["SPARCE"]]]
        if not np.allclose(query, data.X_test[position], atol=TOLERANCE):
            raise DataNotFoundError("the saved answers belong to another moving_box. Run that part again.")
        panels = [("query", scaler.transform(query)), ("salient", data.salient_test[position])]
        sizes = {label: np.abs(e.delta[row[label]] / scaler.scale) for label, e in answers.items()}
        rows.append([*panels, *((label.replace(", ", "\n"), size) for label, size in sizes.items())])
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


log = logging.getLogger(__name__)
CAPTIONS = {
    "figure1": "Figure 1. A query, a real series of the target class, and the counterfactuals of CounteRGAN and "
    "SPARCE; below each, the feature that SPARCE changes most.",
    "figure2": "Figure 2. The architecture, drawn from the networks of the paper's preset.",
    **{
        f"figure3_{name}": f"Figure 3, {described.title}. t-SNE of queries and real series of the target class "
        "(originals), and of both with the counterfactuals of each method; each panel is an embedding of its own."
        for name, described in DATASETS.items()
    },
    "figure4": "Figure 4. Moving Box: three queries, the salient entries, and the size of each method's change; "
    "exact zeros are white.",
    "figure5": "Figure 5. Moving Box: ROC curves of the size of the change against the salient entries, for both "
    "targets, with bands of one standard deviation if there are several repetitions.",
    "figure6": "Figure 6. Catching: distances between body points in originals and in the valid counterfactuals of the "
    "first repetition.",
    "figure7": "Figure 7. Moving Box: four more queries.",
}


def draw_figures(
    folder: Path, rows: Iterable[Row], datasets: Iterable[str], *, sources: Iterable[str] = (), redraw: bool = True
) -> tuple[list[Path], dict[str, str]]:
    """Draw the figures into ``folder/figures``, each as PNG and SVG; those that exist only if ``redraw``.

    ``sources`` are the paths of data that the caller has named; rows cannot name others. Returns the files of the
    figures, and the reasons for those that could not be drawn, by name.
    """
    stored, available, methods = StoredRuns(folder, rows, sources), set(datasets), tuple(METHODS.values())
    drawers: dict[str, tuple[str, Callable[[StoredRuns], Figure]]] = {
        "figure1": ("catching", _figure1),
        "figure2": ("catching", _figure2),
        **{f"figure3_{name}": (name, partial(_figure3, name=name)) for name in DATASETS},
        "figure4": ("moving_box", lambda stored: plot_saliency(saliency_panels(stored, slice(0, 3), DRAWN))),
        "figure5": ("moving_box", _figure5),
        "figure6": ("catching", _figure6),
        "figure7": ("moving_box", lambda stored: plot_saliency(saliency_panels(stored, slice(3, 7), methods))),
    }
    paths, left_out = [], {}
    for stem, (name, draw) in drawers.items():
        if name not in available:
            continue
        files = [inside(folder, f"figures/{stem}{suffix}") for suffix in (".png", ".svg")]
        try:
            if redraw or not all(file.exists() for file in files):
                _save(draw(stored), files)
            paths += files
        except SparcetsError as error:
            log.warning("%s is left out: %s", stem, error)
            left_out[stem] = str(error)
    return paths, left_out


def _save(figure: Figure, files: Iterable[Path]) -> None:
    import matplotlib

    # The same figure has the same bytes: no date, and fixed identifiers in the SVG.
    with matplotlib.rc_context({"svg.hashsalt": "sparcets"}):
        for file in files:
            with atomic_path(file) as temporary:
                metadata: dict[str, Any] = {"Date": None} if file.suffix == ".svg" else {"Software": None}
                figure.savefig(temporary, metadata=metadata)


def _figure1(stored: StoredRuns) -> Figure:
    answers = {label: stored.answers("catching", label) for label in ("CounteRGAN", "SPARCE")}
    (row,) = shared_answers(answers, 1)
    data, first = stored.dataset("catching"), answers["SPARCE"]
    scale = first.info.scaler.transform
    query = scale(first.query)[row["SPARCE"]]
    real = scale(data.X_test[data.y_test == first.target[0]])
    nearest = real[np.square(real - query).sum((1, 2)).argmin()]
    predicted, target = (first.class_names[int(c)] for c in (first.predicted[row["SPARCE"]], first.target[0]))
    panels = [(f"query ({predicted})", query), (f"target ({target})", nearest)]
    panels += [(label, scale(e.counterfactual)[row[label]]) for label, e in answers.items()]
    return plot_heatmaps(panels, feature_names=first.feature_names, sampling_rate=first.info.sampling_rate)


def _figure2(stored: StoredRuns) -> Figure:
    import torch

    from sparcets.core.settings import ClassifierConfig, SparceConfig
    from sparcets.training.architectures import BiLstm
    from sparcets.training.generator import Discriminator, Generator

    data = stored.dataset("catching")
    F = data.n_features
    config, classifier = SparceConfig.paper(target=DATASETS["catching"].target), ClassifierConfig()
    mutable = np.flatnonzero(np.ones(F) if data.mutable is None else data.mutable).tolist()
    sizes: dict[str, Any] = {"n_features": F, "n_targets": 1}
    generator = Generator(
        **sizes, **config.generator.to_dict(), mutable=mutable, head="sparse", low=torch.zeros(F), high=torch.ones(F)
    )
    discriminator = Discriminator(**sizes, **config.discriminator.to_dict())
    model = BiLstm(F, data.n_classes, classifier.hidden, classifier.layers, classifier.dropout)
    return plot_architecture(generator, discriminator, model, n_steps=data.n_steps, n_features=F)


def _figure3(stored: StoredRuns, name: str) -> Figure:
    answers = {label: stored.answers(name, label) for label in METHODS.values()}
    data, first = stored.dataset(name), answers["SPARCE"]
    targets = data.X_test[data.y_test == first.target[0]]
    if len(first) < 3 or len(targets) < 3:
        raise DataNotFoundError(f"a map needs at least 3 series of each kind, {name} has {len(first)}, {len(targets)}.")
    series = {"originals": first.query[:0], **{label: e.counterfactual for label, e in answers.items()}}
    return plot_embedding(embed(first.query, targets, series, at_most=len(first)))  # as many of each kind


def _figure5(stored: StoredRuns) -> Figure:
    curves = roc_curves(stored.runs)
    if not curves:
        raise DataNotFoundError("no ROC curve is stored. Run the figures first.")
    return plot_roc(curves)


def _figure6(stored: StoredRuns) -> Figure:
    answers = {label: stored.answers("catching", label) for label in METHODS.values() if label != "ICS"}
    first = answers["SPARCE"]
    skeleton = find_skeleton(first.feature_names)
    if skeleton is None:
        raise DataNotFoundError(f"limb lengths need the features of two arms, got {', '.join(first.feature_names)}.")
    series = {"originals": first.query, **{label: e.counterfactual[e.valid] for label, e in answers.items()}}
    lengths = {name: limb_lengths(X, skeleton) for name, X in series.items()}
    return plot_distances(
        {f"{a}–{b}": {name: found[f"{a}–{b}"] for name, found in lengths.items()} for a, b in CATCHING_ARMS}
    )
