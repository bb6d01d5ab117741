"""The reproduction as a whole: plan, run what is missing, and write tables, figures and the page."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import ConfigError, DataNotFoundError, StorageError
from sparcets.core.registry import unknown_name
from sparcets.data.dataset import Dataset
from sparcets.data.load import load_dataset
from sparcets.io.files import atomic_path, write_json
from sparcets.io.folders import inside
from sparcets_paper.benchmark.published import DATASETS
from sparcets_paper.benchmark.store import RESULTS
from sparcets_paper.reproduce.agreement import Row
from sparcets_paper.reproduce.figures import draw_figures
from sparcets_paper.reproduce.page import RUN, make_page, read_run
from sparcets_paper.reproduce.plans import PARTS, SCALES, load_arguments, plan
from sparcets_paper.reproduce.provenance import code_digest
from sparcets_paper.reproduce.tables import make_tables
from sparcets_paper.table import Table

PAGE = "README.md"


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Result of :func:`reproduce`."""

    page: Path  # the report, ``README.md`` in the folder
    tables: Mapping[str, Table]  # by the name of their files in the folder ``tables``
    figures: tuple[Path, ...]
    rows: tuple[Row, ...]  # of all runs of this scale in the folder
    computed: int  # number of runs that were computed in this call
    # Reasons by name, for data sets that are not available and figures that could not be drawn.
    left_out: Mapping[str, str]
    seconds: float  # duration of this call


def reproduce(
    part: str = "all",
    *,
    scale: str = "small",
    repetitions: int | None = None,
    out: str | os.PathLike[str] = "reproduction",
    workers: int | None = None,
    device: str = "auto",
    engine: str = "local",
    address: str | None = None,
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
    on_note: Callable[[str], None] | None = None,
    on_row: Callable[[Mapping[str, Any]], None] | None = None,
) -> Reproduction:
    """Run the paper's experiments, or a part of them, and compare the results with the paper's.

    Results in the folder are not computed again: a second call runs what is missing, what failed, and what other code
    computed (see :mod:`~.provenance`).

    Parameters
    ----------
    part
        ``"table1"``, ``"targets"``, ``"ablation"``, ``"figures"``, ``"timing"``, ``"probes"`` (runs that change one
        setting each, at the full scale only) or ``"all"``.
    scale
        ``"small"`` (a quarter of an hour on two cores) or ``"full"`` (the paper's settings, for a GPU).
    repetitions
        Number of seeds of each run; by default 2 at the small scale and 5 at the full one.
    out
        Folder of the results.
    workers
        Number of processes; None is 1, or with Ray one per GPU or core of the cluster.
    device
        Device of the networks.
    engine, address
        Where the runs are computed: ``"local"``, or ``"ray"`` with the address of the cluster.
    sources
        What to load data sets from, by name of the data set: a file, or a folder or zip archive of recordings in the
        layout of their authors.
    seed
        The first seed; repetitions use the following ones.
    progress
        Whether to show a progress bar; None shows it on a terminal.
    on_note
        Called with a line for every data set that is not available.
    on_row
        Called with every new row.
    """
    started = time.perf_counter()
    folder, sources = Path(out), dict(sources or {})
    run = _begin(folder, part, scale, repetitions, sources, seed)
    sources, seed = run["sources"], run["seed"]
    for name, reason in run["left_out"].items():
        if on_note is not None:
            on_note(f"{name} is left out: {reason}")
    chosen: dict[str, Any] = {"datasets": tuple(run["datasets"]), "sources": sources, "seed": seed}
    planned = plan(part, scale, run["repetitions"], **chosen)
    write_json(folder / RUN, run)

    from sparcets_paper.benchmark.runner import collect, pending_cells, run_plan  # imports torch

    code = code_digest()
    pending = pending_cells(planned, folder, code=code)
    place: dict[str, Any] = {"workers": workers, "device": device, "engine": engine, "address": address}
    run_plan(planned, folder, **place, code=code, progress=progress, on_row=on_row)
    # The page covers all parts in the folder, including those of earlier calls with the same code.
    rows = [row for row in collect(plan("all", scale, run["repetitions"], **chosen), folder) if row.get("code") == code]

    tables = make_tables(rows, run["datasets"], run["parts"])
    for stem, table in tables.items():
        table.save(inside(folder, "tables"), stem)
    figures: list[Path] = []
    if {"figures", "all"} & set(run["parts"]):
        figures, run["figures_left_out"] = draw_figures(
            folder, rows, run["datasets"], sources=sources.values(), redraw=bool(pending)
        )
    seconds = time.perf_counter() - started
    run["seconds"] += seconds
    write_json(folder / RUN, run)
    page = folder / PAGE
    with atomic_path(page) as temporary:
        temporary.write_text(make_page(run, rows, {path.stem for path in figures}), encoding="utf-8")
    return Reproduction(
        page=page,
        tables=tables,
        figures=tuple(figures),
        rows=tuple(rows),
        computed=len(pending),
        left_out={**run["left_out"], **run["figures_left_out"]},
        seconds=seconds,
    )


def dataset_facts(dataset: Dataset, name: str) -> dict[str, Any]:
    """Return the facts about a data set that the tables show."""
    counts = np.bincount(np.concatenate([dataset.y_train, dataset.y_test]), minlength=dataset.n_classes)
    simulated = "simulated" in dataset.name
    return {
        "title": DATASETS[name].title + (" (simulated)" if simulated else ""),
        "n_samples": int(counts.sum()),
        "n_train": len(dataset.y_train),
        "n_test": len(dataset.y_test),
        "n_steps": dataset.n_steps,
        "n_features": dataset.n_features,
        "n_mutable": dataset.n_features if dataset.mutable is None else int(dataset.mutable.sum()),
        "classes": {c: int(n) for c, n in zip(dataset.class_names, counts, strict=True)},
    }


def _begin(
    folder: Path, part: str, scale: str, repetitions: int | None, sources: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Check the arguments and merge them with the settings stored in the folder."""
    plan(part, scale, repetitions, datasets=())
    for name in sources:
        if name not in DATASETS:
            raise unknown_name("data set of the paper", name, DATASETS)
    run: dict[str, Any] = {"scale": scale, "repetitions": 0, "parts": [], "datasets": {}}
    run |= {"figures_left_out": {}, "seconds": 0.0, "sources": {}, "seed": seed}
    if (folder / RUN).exists():
        run |= read_run(folder)
        if run["scale"] != scale:
            raise ConfigError(
                f"{folder} contains a reproduction at scale {run['scale']}, got scale {scale}. Choose another folder "
                f"with --out, or --scale {run['scale']}."
            )
        if run["seed"] != seed:
            raise ConfigError(
                f"{folder} contains runs from seed {run['seed']} on, got seed {seed}. Choose another folder with "
                f"--out, or --seed {run['seed']}."
            )
    elif found := [name for name in (PAGE, "tables", "figures", RESULTS) if (folder / name).exists()]:
        raise StorageError(
            f"{folder} holds {found[0]} but no {RUN}, so it is not of a reproduction. Choose another folder with --out."
        )
    # The stored runs belong to the files of earlier calls; but no path in a folder is followed by itself.
    for name in run["sources"]:
        if name not in sources:
            path = run["sources"][name]
            raise ConfigError(
                f"{folder} holds runs of {name} from {path!r}. Name it again: --source {shlex.quote(f'{name}={path}')}"
            )
    run["sources"] = sources
    run["repetitions"] = max(run["repetitions"], repetitions or SCALES[scale].repetitions)
    run["parts"] = [name for name in PARTS if name in {*run["parts"], part}]
    run["left_out"] = {}
    for name in DATASETS:
        source = sources.get(name)
        try:
            # Load it to see whether it is available, unless its facts are stored in the folder.
            if name not in run["datasets"] or source:
                path, options = load_arguments(SCALES[scale], name, source)
                data = load_dataset(path or name, **options)
                run["datasets"][name] = dataset_facts(data, name)
        except DataNotFoundError as error:
            if source:
                raise
            run["left_out"][name] = str(error)
    run["datasets"] = {name: run["datasets"][name] for name in DATASETS if name in run["datasets"]}
    return run
