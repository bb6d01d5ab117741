"""What is run for each table and figure, at the paper's scale and at one that two cores manage in a quarter of an hour.

A run that several tables need is planned once for each of them with the same key, and so computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sparcets.benchmark.plan import Cell, Plan
from sparcets.benchmark.published import DATASETS, METHODS, TERMS
from sparcets.errors import ConfigError
from sparcets.registry import unknown_name

WHAT = ("table1", "targets", "ablation", "figures", "timing", "all")
KEPT = 200  # answers of the first repetition that are stored, for the figures

_NO_SPARSITY, _NO_SMOOTHNESS, _TRAINS = "weights.sparsity=0", "weights.smoothness=0", "trains_sparsity=true"
BARE = "SPARCE, λ4,5 = 0"
# Name in tables -> method and what is set beside the paper's preset.
VARIANTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    **{title: (method, ()) for method, title in METHODS.items()},
    BARE: ("sparce", (_NO_SPARSITY, _NO_SMOOTHNESS)),
    "SPARCE, λ5 = 0": ("sparce", (_NO_SMOOTHNESS,)),
    "SPARCE, λ4 = 0": ("sparce", (_NO_SPARSITY,)),
    "SPARCE, λ4 trains, λ5 = 0": ("sparce", (_TRAINS, _NO_SMOOTHNESS)),
    "SPARCE, λ4 trains": ("sparce", (_TRAINS,)),
}
# The rows of the ablation: the paper's four, then those whose sparsity term has a gradient, which the paper's had not.
ABLATED = dict(zip(TERMS, (BARE, "SPARCE, λ5 = 0", "SPARCE, λ4 = 0", "SPARCE"), strict=True))
TRAINED = {"+λ4, with a gradient": "SPARCE, λ4 trains, λ5 = 0", "both, with a gradient": "SPARCE, λ4 trains"}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How much is run.

    Attributes
    ----------
    repetitions
        Seeds per run, if the user does not say.
    options
        Options of each data set.
    classifier
        Settings of the classifier, beside its defaults.
    settings
        Settings of each method, beside the paper's preset.
    epochs
        Of the three adversarial methods on each data set; None leaves the paper's 100.
    queries
        Test queries explained at most.
    """

    repetitions: int
    options: Mapping[str, Mapping[str, Any]]
    classifier: Mapping[str, Any]
    settings: Mapping[str, tuple[str, ...]]
    epochs: Mapping[str, int] | None = None
    queries: int | None = None


# So few steps must be larger ones, and a narrow generator cannot spare 40 % of its units.
_SMALL_GAN = ("generator.hidden=32", "generator.dropout=0.1", "train.lr=0.003")
SCALES: Mapping[str, Scale] = {
    "full": Scale(
        repetitions=5,
        options={name: {} for name in DATASETS},
        classifier={},
        settings=dict.fromkeys(METHODS, ()),
    ),
    # A large test part is a small training part: that is what costs time.
    "small": Scale(
        repetitions=2,
        options={"catching": {}, "motionsense": {"test_size": 0.8}, "moving_box": {"n_per_combination": 100}},
        classifier={"epochs": 20, "patience": 5, "lr": 0.003},
        settings={"ics": ("steps=50", "raises=5"), **dict.fromkeys(("gan", "countergan", "sparce"), _SMALL_GAN)},
        epochs={"catching": 20, "motionsense": 20, "moving_box": 15},
        queries=150,
    ),
}


def plan(
    what: str,
    scale: str,
    repetitions: int | None = None,
    *,
    datasets: Iterable[str] = tuple(DATASETS),
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Plan:
    """Return the runs that a table, the figures, or everything, needs.

    Parameters
    ----------
    what
        One of :data:`WHAT`.
    scale
        ``"full"``, the paper's, or ``"small"``.
    repetitions
        Seeds of each run, ``seed`` and those after it; None takes the scale's number.
    datasets
        The data sets that are there.
    sources
        Files to load data sets from, by name.
    seed
        The first one.

    Examples
    --------
    >>> [cell.label for cell in plan("table1", "small", 1, datasets=["catching"]).cells]
    ['ICS', 'GAN', 'CounteRGAN', 'SPARCE']
    """
    if what not in WHAT:
        raise unknown_name("part of the paper", what, WHAT)
    if scale not in SCALES:
        raise unknown_name("scale", scale, SCALES)
    repetitions = SCALES[scale].repetitions if repetitions is None else repetitions
    if repetitions < 1:
        raise ConfigError(f"repetitions must be >= 1, got {repetitions}.")
    wanted = ("table1", "targets", "ablation", "figures") if what == "all" else (what,)
    cells: dict[str, Cell] = {}
    for part in wanted:
        for name in datasets:
            for label, target in _runs(part, name):
                for number in range(repetitions):
                    made = _cell(
                        SCALES[scale],
                        name,
                        label,
                        source=(sources or {}).get(name),
                        target=target,
                        seed=seed + number,
                        experiment="table1" if part == "timing" else part,
                        keep=KEPT if number == 0 else 0,
                    )
                    cells.setdefault(made.key, made)
    return Plan(cells=tuple(cells.values()))


def _runs(part: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield what a part needs of a data set: name in tables, and target."""
    described = DATASETS[name]
    if part in ("table1", "timing", "figures"):
        yield from ((title, described.target) for title in METHODS.values())
    if part == "targets":
        yield from (("SPARCE", target) for target in described.classes if target not in described.left_out)
    if part == "ablation":
        yield from ((label, described.target) for label in (*ABLATED.values(), *TRAINED.values()))
    if part == "figures" and name == "moving_box":  # the ROC curves: both targets, all methods, and no λ4, λ5
        yield from ((label, target) for target in described.classes for label in (*METHODS.values(), BARE))


def _cell(scale: Scale, name: str, label: str, *, source: str | None, **fields: Any) -> Cell:
    method, extra = VARIANTS[label]
    epochs = () if scale.epochs is None or method == "ics" else (f"train.epochs={scale.epochs[name]}",)
    return Cell(
        dataset=name,
        options={} if source else scale.options[name],
        source=source,
        classifier_config=scale.classifier,
        method=method,
        preset="paper",
        settings=(*scale.settings[method], *epochs, *extra),
        label=label,
        queries=scale.queries,
        curve=name == "moving_box",
        **fields,
    )
