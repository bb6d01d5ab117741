"""The paper's figures 1 to 7 from stored rows and kept explanations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.benchmark.published import DATASETS, METHODS
from sparcets.datasets.base import Dataset
from sparcets.datasets.load import load_dataset
from sparcets.errors import DataNotFoundError, SparcetsError
from sparcets.explanation import Explanation, load_explanation
from sparcets.reproduce.measured import Row, Runs
from sparcets.reproduce.plans import BARE
from sparcets.storage import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)
CAPTIONS = {
    "figure1": "Figure 1. A query, a real series of the target class, and the counterfactuals of CounteRGAN and "
    "SPARCE; below each, the feature that SPARCE changes most.",
    "figure2": "Figure 2. The architecture, drawn from the networks of the paper's preset.",
    **{
        f"figure3_{name}": f"Figure 3, {described.title}. t-SNE of queries, real series of the target class and "
        "counterfactuals; each panel is an embedding of its own."
        for name, described in DATASETS.items()
    },
    "figure4": "Figure 4. Moving Box: three queries, what is truly salient, and the size of each method's change; "
    "exact zeros are white.",
    "figure5": "Figure 5. Moving Box: ROC curves of the size of the change against what is truly salient, for both "
    "targets, with bands of one standard deviation over repetitions, where there are several.",
    "figure6": "Figure 6. Catching: distances between body points in originals and in the valid counterfactuals of the "
    "first repetition.",
    "figure7": "Figure 7. Moving Box: four more queries.",
}


class Kept:
    """What the runs left behind: rows, explanations of the first repetition, and the data they are about."""

    def __init__(self, folder: Path, rows: Iterable[Row]) -> None:
        self.folder = folder
        self.runs = Runs(rows)
        self._loaded: dict[str, Dataset] = {}

    def answers(self, dataset: str, label: str) -> Explanation:
        """Return the kept answers of a run towards the paper's target, without queries that were there already."""
        for row in self.runs.of(dataset, label).finished:
            path = self.folder / "explanations" / f"{row['key']}.npz"
            if path.exists():
                e = load_explanation(path)
                return e[e.status != "unchanged"]
        raise DataNotFoundError(
            f"no answers of {label} on {dataset} are kept in {self.folder / 'explanations'}. Run that part first."
        )

    def dataset(self, name: str) -> Dataset:
        """Return a data set as the runs saw it."""
        if name not in self._loaded:
            row = next(row for label in METHODS.values() for row in self.runs.of(name, label).finished)
            self._loaded[name] = load_dataset(row.get("source") or name, **dict(row.get("options") or {}))
        return self._loaded[name]


def draw_figures(
    folder: Path, rows: Iterable[Row], datasets: Iterable[str], *, redraw: bool = True
) -> tuple[list[Path], dict[str, str]]:
    """Draw what can be drawn into ``folder/figures``, each as PNG and SVG.

    Parameters
    ----------
    folder
        Of the results; kept explanations lie in ``explanations``.
    rows
        Rows of the results.
    datasets
        Data sets that are there.
    redraw
        False leaves figures that are there as they are.

    Returns
    -------
    paths, left_out
        Files of the figures; and for those that could not be drawn, why.
    """
    kept, there = Kept(folder, rows), set(datasets)
    makers: dict[str, tuple[str, Callable[[Kept], Figure]]] = {
        "figure1": ("catching", _figure1),
        "figure2": ("catching", _figure2),
        **{f"figure3_{name}": (name, partial(_figure3, name=name)) for name in DATASETS},
        "figure4": ("moving_box", partial(_saliency, which=slice(0, 3), labels=(*METHODS.values(), BARE))),
        "figure5": ("moving_box", _figure5),
        "figure6": ("catching", _figure6),
        "figure7": ("moving_box", partial(_saliency, which=slice(3, 7), labels=tuple(METHODS.values()))),
    }
    paths, left_out = [], {}
    for stem, (name, make) in makers.items():
        if name not in there:
            continue
        files = [folder / "figures" / f"{stem}{suffix}" for suffix in (".png", ".svg")]
        try:
            if redraw or not all(file.exists() for file in files):
                _save(make(kept), files)
            paths += files
        except SparcetsError as error:
            log.warning("%s is left out: %s", stem, error)
            left_out[stem] = str(error)
    return paths, left_out


def _save(figure: Figure, files: Iterable[Path]) -> None:
    import matplotlib

    # Same picture, same bytes: no date, and names of the parts that do not depend on chance.
    with matplotlib.rc_context({"svg.hashsalt": "sparcets"}):
        for file in files:
            with atomic_path(file) as temporary:
                metadata: dict[str, Any] = {"Date": None} if file.suffix == ".svg" else {"Software": None}
                figure.savefig(temporary, metadata=metadata)


def _figure1(kept: Kept) -> Figure:
    from sparcets.plots.heatmap import plot_heatmaps

    made = {label: kept.answers("catching", label) for label in ("CounteRGAN", "SPARCE")}
    (row,) = _shared(made, 1)
    data, first = kept.dataset("catching"), made["SPARCE"]
    scale = first.info.scaler.transform
    query = scale(first.query)[row["SPARCE"]]
    real = scale(data.X_test[data.y_test == first.target[0]])
    nearest = real[np.square(real - query).sum((1, 2)).argmin()]
    before, wanted = (first.class_names[int(c)] for c in (first.predicted[row["SPARCE"]], first.target[0]))
    panels = [(f"query ({before})", query), (f"target ({wanted})", nearest)]
    panels += [(label, scale(e.counterfactual)[row[label]]) for label, e in made.items()]
    return plot_heatmaps(panels, feature_names=first.feature_names, sampling_rate=first.info.sampling_rate)


def _figure2(kept: Kept) -> Figure:
    import torch

    from sparcets.config.explainers import SparceConfig
    from sparcets.config.models import ClassifierConfig
    from sparcets.networks.discriminators import Discriminator
    from sparcets.networks.generators import Generator
    from sparcets.networks.recurrent import BiLstm
    from sparcets.plots.architecture import plot_architecture

    data = kept.dataset("catching")
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


def _figure3(kept: Kept, name: str) -> Figure:
    from sparcets.plots.embedding import embed, plot_embedding

    made = {label: kept.answers(name, label) for label in METHODS.values()}
    data, first = kept.dataset(name), made["SPARCE"]
    targets = data.X_test[data.y_test == first.target[0]]
    return plot_embedding(embed(first.query, targets, {label: e.counterfactual for label, e in made.items()}))


def _figure5(kept: Kept) -> Figure:
    from sparcets.plots.roc import plot_roc

    curves: dict[str, dict[str, tuple[FloatArray, FloatArray, FloatArray]]] = {}
    for target in sorted(DATASETS["moving_box"].classes, reverse=True):  # the paper's main target first
        for label in (*METHODS.values(), BARE):
            found = [row["curve"] for row in kept.runs.of("moving_box", label, target).finished if row.get("curve")]
            if found:
                tpr = np.array([curve["tpr"] for curve in found], dtype=np.float64)  # (repetitions, points)
                spread = tpr.std(0, ddof=1) if len(tpr) > 1 else np.zeros(tpr.shape[1])
                fpr = np.asarray(found[0]["fpr"], dtype=np.float64)
                curves.setdefault(target, {})[label] = (fpr, tpr.mean(0), spread)
    return plot_roc(curves)


def _figure6(kept: Kept) -> Figure:
    from sparcets.metrics.geometry import limb_lengths
    from sparcets.plots.geometry import plot_distances
    from sparcets.skeletons import CATCHING_ARMS, find_skeleton

    made = {label: kept.answers("catching", label) for label in METHODS.values() if label != "ICS"}
    first = made["SPARCE"]
    skeleton = find_skeleton(first.feature_names)
    if skeleton is None:
        raise DataNotFoundError(
            f"no arms among the features {', '.join(first.feature_names)}, so none can be measured."
        )
    series = {"originals": first.query, **{label: e.counterfactual[e.valid] for label, e in made.items()}}
    lengths = {who: limb_lengths(X, skeleton) for who, X in series.items()}
    return plot_distances(
        {f"{a}–{b}": {who: found[f"{a}–{b}"] for who, found in lengths.items()} for a, b in CATCHING_ARMS}
    )


def _saliency(kept: Kept, which: slice, labels: tuple[str, ...]) -> Figure:
    from sparcets.plots.heatmap import plot_saliency

    made = {label: kept.answers("moving_box", label) for label in labels}
    data, first = kept.dataset("moving_box"), made["SPARCE"]
    if data.salient_test is None:
        raise DataNotFoundError(
            "this copy of moving_box holds no salient entries. Let it be generated: leave --source."
        )
    asked = np.flatnonzero(data.y_test != first.target[0])  # the queries of a run: test series of another class
    scaler = first.info.scaler
    rows = []
    for row in _shared(made, which.stop)[which]:
        query = first.query[row["SPARCE"]]
        place = asked[first.query_index[row["SPARCE"]]]
        # Not to the bit: other versions of NumPy draw the same series with other last digits.
        if not np.allclose(query, data.X_test[place], atol=1e-3):
            raise DataNotFoundError("the answers kept are not about this moving_box. Run that part again.")
        sizes = [(label.replace(", ", "\n"), np.abs(e.delta[row[label]] / scaler.scale)) for label, e in made.items()]
        rows.append([("query", scaler.transform(query)), ("salient", data.salient_test[place]), *sizes])
    return plot_saliency(rows)


def _shared(made: Mapping[str, Explanation], n: int) -> list[dict[str, int]]:
    """Return the places, by label, of the answers to ``n`` queries that all answered; those valid in most first."""
    places = {label: {int(q): i for i, q in enumerate(e.query_index)} for label, e in made.items()}
    queries = sorted(set.intersection(*(set(found) for found in places.values())))
    rows = [{label: places[label][q] for label in made} for q in queries]
    rows.sort(key=lambda row: -sum(bool(made[label].valid[i]) for label, i in row.items()))  # stable: else by place
    if len(rows) < n:
        raise DataNotFoundError(f"{n} queries answered by {', '.join(made)} are needed, {len(rows)} are kept.")
    return rows[:n]
