"""The runs behind each table and figure, at the paper's scale and at a small one for two cores.

A run that several tables need has the same key in each of them, so it is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sparcets.core.errors import ConfigError
from sparcets.core.registry import unknown_name
from sparcets_paper.benchmark.plan import Cell
from sparcets_paper.benchmark.published import DATASETS, METHODS, TERMS

PARTS = ("table1", "targets", "ablation", "figures", "timing", "probes", "all")
KEPT = 200  # answers of the first repetition that are saved for the figures, see DRAWN

_NO_SPARSITY, _NO_SMOOTHNESS, _TRAINS = "weights.sparsity=0", "weights.smoothness=0", "trains_sparsity=true"
BARE = "SPARCE, λ4,5 = 0"
LONGER = 300  # epochs, three times the paper's
# Name in tables -> method, and settings that differ from the paper's preset.
VARIANTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{title: (method, ()) for method, title in METHODS.items()},
    BARE: ("sparce", (_NO_SPARSITY, _NO_SMOOTHNESS)),
    "SPARCE, λ5 = 0": ("sparce", (_NO_SMOOTHNESS,)),
    "SPARCE, λ4 = 0": ("sparce", (_NO_SPARSITY,)),
    "SPARCE, λ4 trains, λ5 = 0": ("sparce", (_TRAINS, _NO_SMOOTHNESS)),
    "SPARCE, λ4 trains": ("sparce", (_TRAINS,)),
    "ICS, published search": ("ics", ("steps=10", "max_lambdas=5", "lambda_step=0.001")),
    "SPARCE, own units": ("sparce", ("standardise=false",)),
    "SPARCE, sigmoid classifier": ("sparce", ()),
    **{f"{METHODS[m]}, {LONGER} epochs": (m, (f"train.epochs={LONGER}",)) for m in ("gan", "countergan", "sparce")},
}
# The rows of the ablation: the paper's four, then two whose sparsity term has a gradient, unlike the paper's.
ABLATED = dict(zip(TERMS, (BARE, "SPARCE, λ5 = 0", "SPARCE, λ4 = 0", "SPARCE"), strict=True))
TRAINED = {"+λ4, with a gradient": "SPARCE, λ4 trains, λ5 = 0", "both, with a gradient": "SPARCE, λ4 trains"}
# Runs that change one thing, to find out why a number differs from the paper's: label -> data sets.
LONG = tuple(f"{title}, {LONGER} epochs" for method, title in METHODS.items() if method != "ics")
PROBES: Mapping[str, tuple[str, ...]] = {
    "ICS, published search": tuple(DATASETS),
    "SPARCE, own units": ("motionsense",),
    "SPARCE, sigmoid classifier": ("moving_box",),
    **dict.fromkeys(LONG, ("moving_box",)),
}
LONG_REPETITIONS = 2
CLASSIFIERS: Mapping[str, Mapping[str, Any]] = {"SPARCE, sigmoid classifier": {"output": "sigmoid"}}
DRAWN = (*METHODS.values(), BARE)  # runs whose answers the figures show
# Whose training is that of another run, since the sparsity term has no gradient; they load it once it is stored.
SAME_TRAINING = ("SPARCE, λ5 = 0", "SPARCE, λ4 = 0")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is run; settings are those that differ from the defaults or the paper's preset."""

    repetitions: int  # default number of seeds per run
    options: Mapping[str, Mapping[str, Any]]  # of each data set
    classifier: Mapping[str, Any]
    settings: Mapping[str, tuple[str, ...]]  # of each method
    epochs: Mapping[str, int] | None = None  # of the three adversarial methods on each data set; None: 100
    queries: int | None = None  # largest number of test queries
    probes: bool = False


# Few training steps need a larger learning rate, and a narrow generator cannot do without 40 % of its units.
_SMALL_GAN = ("generator.hidden=32", "generator.dropout=0.1", "train.lr=0.003")
SCALES: Mapping[str, Scale] = {
    "full": Scale(
        repetitions=5,
        options={name: {} for name in DATASETS},
        classifier={},
        settings=dict.fromkeys(METHODS, ()),
        probes=True,
    ),
    # A large test part makes the training part, which determines the time, small.
    "small": Scale(
        repetitions=2,
        options={"catching": {}, "motionsense": {"test_size": 0.8}, "moving_box": {"n_per_combination": 100}},
        classifier={"epochs": 20, "patience": 5, "lr": 0.003},
        settings={"ics": ("steps=50", "max_lambdas=5"), **dict.fromkeys(("gan", "countergan", "sparce"), _SMALL_GAN)},
        epochs={"catching": 20, "motionsense": 20, "moving_box": 15},
        queries=150,
    ),
}


def plan(
    part: str,
    scale: str,
    repetitions: int | None = None,
    *,
    datasets: Iterable[str] = tuple(DATASETS),
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
) -> list[Cell]:
    """Return the runs for a table, for the figures, or for everything.

    Parameters
    ----------
    part
        One of :data:`PARTS`.
    scale
        ``"full"``, the paper's scale, or ``"small"``.
    repetitions
        Number of seeds, from ``seed`` on; None for the default of the scale.
    datasets
        The available data sets.
    sources
        Files to load data sets from, by name.
    seed
        The first seed.

    Examples
    --------
    >>> [cell.label for cell in plan("table1", "small", 1, datasets=["catching"])]
    ['ICS', 'GAN', 'CounteRGAN', 'SPARCE']
    """
    if part not in PARTS:
        raise unknown_name("part of the paper", part, PARTS)
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    repetitions = SCALES[scale].repetitions if repetitions is None else repetitions
    if repetitions < 1:
        raise ConfigError(f"repetitions must be >= 1, got {repetitions}.")
    if part == "probes" and not SCALES[scale].probes:
        raise ConfigError(
            f"the probes change the paper's settings one by one, which scale {scale} does not use: add --scale full."
        )
    parts = ("table1", "targets", "ablation", "figures", "probes") if part == "all" else (part,)
    cells: dict[str, Cell] = {}
    for each in parts:
        if each == "probes" and not SCALES[scale].probes:
            continue
        for name in datasets:
            for label, target in _runs(each, name):
                for number in range(min(repetitions, LONG_REPETITIONS) if label in LONG else repetitions):
                    cell = _cell(
                        SCALES[scale],
                        name,
                        label,
                        source=(sources or {}).get(name),
                        target=target,
                        seed=seed + number,
                        experiment="table1" if each == "timing" else each,
                        keep=KEPT if number == 0 and label in DRAWN and target == DATASETS[name].target else 0,
                    )
                    cells.setdefault(cell.key, cell)
    found = list(cells.values())
    return sorted(found, key=partial(_order, first=seed)) if part == "all" else found


def _order(cell: Cell, first: int) -> tuple[int, int, int]:
    """Return the place of a run: long ones first, then the paper's, one repetition after the other, then the rest."""
    own = cell.label in TRAINED.values() or cell.label in CLASSIFIERS
    if cell.label in LONG:
        rank = 0 if cell.seed == first else 4
    else:
        rank = 3 if own else 2 if cell.label in (*PROBES, *SAME_TRAINING) else 1
    return rank, cell.seed, -list(DATASETS).index(cell.dataset)


def _runs(part: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield label and target of the runs that a part needs on a data set."""
    published = DATASETS[name]
    if part in ("table1", "timing", "figures"):
        yield from ((title, published.target) for title in METHODS.values())
    if part == "targets":
        yield from (("SPARCE", target) for target in published.classes if target not in published.left_out)
    if part == "ablation":
        yield from ((label, published.target) for label in (*ABLATED.values(), *TRAINED.values()))
    if part == "probes":
        yield from ((label, published.target) for label, names in PROBES.items() if name in names)
    if part == "figures" and name == "moving_box":  # the ROC curves: both targets, all methods, and λ4 = λ5 = 0
        yield from ((label, target) for target in published.classes for label in (*METHODS.values(), BARE))


def _cell(scale: Scale, name: str, label: str, *, source: str | None, **fields: Any) -> Cell:
    method, extra = VARIANTS[label]
    epochs = () if scale.epochs is None or method == "ics" else (f"train.epochs={scale.epochs[name]}",)
    classifier = {**scale.classifier, **CLASSIFIERS.get(label, {})}
    path, options = load_arguments(scale, name, source)
    return Cell(
        dataset=name,
        options=options,
        source=path,
        classifier_config=classifier,
        method=method,
        preset="paper",
        settings=(*scale.settings[method], *epochs, *extra),
        label=label,
        queries=scale.queries,
        curve=name == "moving_box",
        figures=True,
        **fields,
    )


def load_arguments(scale: Scale, name: str, source: str | None) -> tuple[str | None, Mapping[str, Any]]:
    """Return the file to load a data set from, if it is one, and the options of its loader.

    A folder or a zip archive holds the recordings as their authors publish them; the loader of the data set reads it.
    """
    if source is None:
        return None, scale.options[name]
    if Path(source).is_dir() or Path(source).suffix == ".zip":
        return None, {"path": source}
    return source, {}
