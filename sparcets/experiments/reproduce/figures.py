"""Figures 1 to 7 of the paper, drawn from stored rows and saved explanations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.errors import DataNotFoundError, SparcetsError
from sparcets.experiments.benchmark.published import DATASETS, METHODS
from sparcets.experiments.reproduce.figure_data import StoredRuns, roc_curves, saliency_panels, shared_answers
from sparcets.experiments.reproduce.measured import Row
from sparcets.experiments.reproduce.plans import BARE
from sparcets.storage import atomic_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    folder: Path, rows: Iterable[Row], datasets: Iterable[str], *, redraw: bool = True
) -> tuple[list[Path], dict[str, str]]:
    """Draw the figures into ``folder/figures``, each as PNG and SVG.

    Parameters
    ----------
    folder
        Folder of the results; saved explanations are in ``explanations``.
    rows
        Rows of the results.
    datasets
        Names of the available data sets.
    redraw
        Whether to draw figures again that exist.

    Returns
    -------
    paths, left_out
        Files of the figures, and the reasons for those that could not be drawn, by name.
    """
    stored, available = StoredRuns(folder, rows), set(datasets)
    drawers: dict[str, tuple[str, Callable[[StoredRuns], Figure]]] = {
        "figure1": ("catching", _figure1),
        "figure2": ("catching", _figure2),
        **{f"figure3_{name}": (name, partial(_figure3, name=name)) for name in DATASETS},
        "figure4": ("moving_box", partial(_saliency, which=slice(0, 3), labels=(*METHODS.values(), BARE))),
        "figure5": ("moving_box", _figure5),
        "figure6": ("catching", _figure6),
        "figure7": ("moving_box", partial(_saliency, which=slice(3, 7), labels=tuple(METHODS.values()))),
    }
    paths, left_out = [], {}
    for stem, (name, draw) in drawers.items():
        if name not in available:
            continue
        files = [folder / "figures" / f"{stem}{suffix}" for suffix in (".png", ".svg")]
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
    from sparcets.plots.heatmap import plot_heatmaps

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

    from sparcets.config.explainers import SparceConfig
    from sparcets.config.models import ClassifierConfig
    from sparcets.networks.discriminators import Discriminator
    from sparcets.networks.generators import Generator
    from sparcets.networks.recurrent import BiLstm
    from sparcets.plots.architecture import plot_architecture

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
    from sparcets.metrics.embedding import embed, embed_originals
    from sparcets.plots.embedding import plot_embedding

    answers = {label: stored.answers(name, label) for label in METHODS.values()}
    data, first = stored.dataset(name), answers["SPARCE"]
    targets = data.X_test[data.y_test == first.target[0]]
    at_most = len(first)  # as many of each kind
    maps = embed(first.query, targets, {label: e.counterfactual for label, e in answers.items()}, at_most=at_most)
    return plot_embedding({"originals": embed_originals(first.query, targets, at_most=at_most), **maps})


def _figure5(stored: StoredRuns) -> Figure:
    from sparcets.plots.roc import plot_roc

    return plot_roc(roc_curves(stored.runs))


def _figure6(stored: StoredRuns) -> Figure:
    from sparcets.metrics.geometry import limb_lengths
    from sparcets.plots.geometry import plot_distances
    from sparcets.skeletons import CATCHING_ARMS, find_skeleton

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


def _saliency(stored: StoredRuns, which: slice, labels: tuple[str, ...]) -> Figure:
    from sparcets.plots.heatmap import plot_saliency

    return plot_saliency(saliency_panels(stored, which, labels))
