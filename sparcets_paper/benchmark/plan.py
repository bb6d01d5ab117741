"""What a benchmark measures: a plan is a sequence of cells (data set, classifier, method, seed, …)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from sparcets.core.errors import ConfigError
from sparcets.core.registry import Registry, did_you_mean
from sparcets.core.settings import PRESETS, ClassifierConfig, from_preset
from sparcets.data.load import DATASETS, load_dataset
from sparcets.data.uea import UEA_NAMES

_NOT_IN_KEY = ("label", "experiment", "keep", "figures")  # fields that do not change the result
_SET_ELSEWHERE = ("seed", "device")  # settings of the explainer that the cell and the run determine


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One measurement: one method with one seed, for one classifier on one data set.

    ``settings`` are changes to the preset of the method's settings (``"train.epochs=5"``), ``classifier_config`` those
    to the defaults of :class:`~sparcets.ClassifierConfig`. All seeds of the method explain the same classifier.
    """

    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)  # of the loader
    source: str | None = None  # path to load instead, such as a file with a copy of the data
    classifier: str = "bilstm"  # architecture
    classifier_config: Mapping[str, Any] = field(default_factory=dict)
    method: str = "sparcets"  # a name with a colon is a peer
    preset: str = "default"
    settings: tuple[str, ...] = ()
    target: str | None = None  # by name or index; None stands for the runner-up class of every query
    # Largest share that an answer changes of the entries that may change; None for no limit.
    sparsity: float | None = None
    seed: int = 0
    label: str = ""  # in tables; the method's name by default
    # Number of test series explained, the first ones; None: all that are not labelled as the target.
    queries: int | None = None
    experiment: str = ""  # a free text to group cells by
    keep: int = 0  # number of answers saved as an explanation next to the results
    seconds_per_query: float | None = None  # time limit, for methods that have one (the peers)
    curve: bool = False  # whether to store the ROC curve against the known salient entries
    figures: bool = False  # whether to store the numbers behind the paper's figures

    def __post_init__(self) -> None:
        if not self.label:
            object.__setattr__(self, "label", self.method)
        elsewhere = [s for s in self.settings if s.partition("=")[0].strip() in _SET_ELSEWHERE]
        limit, seconds = self.sparsity, self.seconds_per_query
        checks = [
            (
                not elsewhere,
                f"'settings' must not contain {', '.join(elsewhere)}: the seed is a field of the cell (--seed), and "
                "the device an option of the run (--device)",
            ),
            (self.preset in PRESETS, f"'preset' must be one of {', '.join(PRESETS)}, got {self.preset!r}"),
            (limit is None or 0 < limit <= 1, f"'sparsity' must be in (0, 1] or None, got {limit!r}"),
            (self.queries is None or self.queries >= 1, f"'queries' must be >= 1 or None, got {self.queries!r}"),
            (self.keep >= 0, f"'keep' must be >= 0, got {self.keep!r}"),
            (seconds is None or seconds > 0, "'seconds_per_query' must be > 0 or None"),
        ]
        problems = [message for ok, message in checks if not ok]
        if problems:
            raise ConfigError(f"invalid cell of a benchmark: {'; '.join(problems)}.")

    @property
    def key(self) -> str:
        """Hash, 16 hexadecimal digits, of all fields that determine the result."""
        hashed = {name: value for name, value in self.to_dict().items() if name not in _NOT_IN_KEY}
        hashed["stability"] = False  # a field that the cells of the stored results had
        if self.sparsity is None:
            del hashed["sparsity"]  # and one that those of the reproduction did not have
        return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain


def grid(
    datasets: Iterable[str],
    classifiers: Sequence[str] = ("bilstm",),
    methods: Sequence[str] = ("sparcets",),
    seeds: Sequence[int] = (0,),
    targets: Sequence[str | None] = (None,),
    settings: Iterable[str] = (),
    **common: Any,
) -> list[Cell]:
    """Return a cell for every combination of data sets, classifiers, targets, methods and seeds.

    A setting of the explainers, ``"train.epochs=5"``, is for all, and ``"sparce:train.epochs=5"`` for one method. Other
    fields of :class:`Cell` are the same in all cells.

    Examples
    --------
    >>> cells = grid(["catching"], methods=["nearest", "sparcets"], seeds=range(5), targets=["Control"])
    >>> len(cells), cells[-1].method, cells[-1].seed
    (10, 'sparcets', 4)
    """
    own = _by_method(settings, methods)
    return [
        Cell(dataset=data, classifier=of, target=target, method=method, settings=own[method], seed=seed, **common)
        for data, of, target, method, seed in product(datasets, classifiers, targets, methods, seeds)
    ]


def registry_of(method: str) -> Registry:
    """Return the registry of a method: that of the peers for a name with a colon, such as ``cfts:comte``."""
    from sparcets.methods import EXPLAINERS

    if ":" not in method:
        return EXPLAINERS
    from sparcets_paper.peers import PEERS

    return PEERS


def file_digest(cell: Cell) -> str | None:
    """Return a hash of the file that a cell's data come from; None for data sets known by name."""
    name = cell.source or cell.dataset
    if name in DATASETS or not Path(name).is_file():
        return None
    return hashlib.sha256(Path(name).read_bytes()).hexdigest()[:16]


def check_plan(plan: Sequence[Cell]) -> None:
    """Raise an error for unknown names, missing files and unknown settings, before anything is run."""
    from sparcets.training import ARCHITECTURES

    for cell in plan:
        _check_data(cell.source or cell.dataset)
        registry_of(cell.method).location(cell.method)
        ARCHITECTURES.location(cell.classifier)
        ClassifierConfig.from_dict(cell.classifier_config)
    several = len({cell.method for cell in plan}) > 1
    for cell in plan:
        kind = registry_of(cell.method).load(cell.method).config_class
        try:
            from_preset(kind, cell.preset, cell.target if cell.preset == "paper" else None).override(*cell.settings)
        except ConfigError as error:
            hint = " To set it for one method, put the name in front: sparce:train.epochs=5."
            raise ConfigError(f"{cell.method}: {error}{hint if several and cell.settings else ''}") from error


def _check_data(name: str) -> None:
    if name not in DATASETS and name not in UEA_NAMES and not Path(name).is_file():
        load_dataset(name)  # raises the error


def _by_method(settings: Iterable[str], methods: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the settings of each method: those with its name in front, and those without a name."""
    own: dict[str, list[str]] = {method: [] for method in methods}
    for setting in settings:
        key, equals, value = setting.partition("=")
        method, colon, name = key.rpartition(":")
        if colon and method.strip() not in own:
            raise ConfigError(
                f"the setting {setting!r} is for the method {method!r}, which is not in this benchmark."
                f"{did_you_mean(method, own)} Methods: {', '.join(own)}."
            )
        for known in [method.strip()] if colon else own:
            own[known].append(f"{name}{equals}{value}")
    return {method: tuple(values) for method, values in own.items()}
