"""reproduce: plan, run what is missing, and write tables, figures and the page."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.benchmark.published import DATASETS
from sparcets.datasets.base import Dataset
from sparcets.datasets.load import load_dataset
from sparcets.errors import ConfigError, DataNotFoundError
from sparcets.registry import unknown_name
from sparcets.report.tables import Table
from sparcets.reproduce.figures import draw_figures
from sparcets.reproduce.measured import Row
from sparcets.reproduce.page import RUN, make_page
from sparcets.reproduce.plans import SCALES, WHAT, plan
from sparcets.reproduce.tables import make_tables
from sparcets.storage import atomic_path, read_json, write_json


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """What :func:`reproduce` made.

    Attributes
    ----------
    page
        The report, ``README.md`` in the folder.
    tables
        By the name of their files in ``tables``.
    figures
        Their files in ``figures``.
    rows
        Rows of all runs of this scale in the folder.
    computed
        How many of them are new.
    left_out
        Data sets that are not here, and figures that could not be drawn, each with the reason.
    seconds
        What this call took.
    """

    page: Path
    tables: Mapping[str, Table]
    figures: tuple[Path, ...]
    rows: tuple[Row, ...]
    computed: int
    left_out: Mapping[str, str]
    seconds: float


def reproduce(
    what: str = "all",
    *,
    scale: str = "small",
    repetitions: int | None = None,
    out: str | os.PathLike[str] = "reproduction",
    workers: int = 1,
    device: str = "auto",
    sources: Mapping[str, str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
    on_note: Callable[[str], None] | None = None,
    on_row: Callable[[Mapping[str, Any]], None] | None = None,
) -> Reproduction:
    """Run the paper's experiments, or a part of them, and put the results beside the paper's.

    What the folder holds already is not run again: a second call does what is missing, and what failed.

    Parameters
    ----------
    what
        ``"table1"``, ``"targets"``, ``"ablation"``, ``"figures"``, ``"timing"`` or ``"all"``.
    scale
        ``"small"`` (a quarter of an hour on two cores) or ``"full"`` (the paper's settings; wants a GPU).
    repetitions
        Seeds of each run; by default 2 and 5.
    out
        Folder of the results.
    workers
        Runs side by side.
    device
        Where they run.
    sources
        Files to load data sets from instead, by name.
    seed
        The first seed; repetitions take those after it.
    progress
        Whether to draw a bar; None draws it where a person is looking.
    on_note
        Called with each line a user should know before the work starts.
    on_row
        Called with the row of every run that was finished now.
    """
    started = time.perf_counter()
    folder, sources = Path(out), dict(sources or {})
    run = _begin(folder, what, scale, repetitions, sources, seed)
    sources, seed = run["sources"], run["seed"]
    for name, why in run["left_out"].items():
        if on_note is not None:
            on_note(f"{name} is left out: {why}")
    chosen: dict[str, Any] = {"datasets": tuple(run["datasets"]), "sources": sources, "seed": seed}
    planned = plan(what, scale, run["repetitions"], **chosen)
    write_json(folder / RUN, run)

    from sparcets.benchmark.runner import collect, left_to_do, run_plan  # brings torch

    missing = left_to_do(planned, folder)
    run_plan(planned, folder, workers=workers, device=device, progress=progress, on_row=on_row)
    # The page is about all parts that the folder holds, this one and those of earlier calls.
    rows = collect(plan("all", scale, run["repetitions"], **chosen), folder)

    tables = make_tables(rows, run["datasets"], run["asked"])
    for stem, table in tables.items():
        table.save(folder / "tables", stem)
    figures: list[Path] = []
    if {"figures", "all"} & set(run["asked"]):
        figures, run["figures_left_out"] = draw_figures(folder, rows, run["datasets"], redraw=bool(missing))
    seconds = time.perf_counter() - started
    run["seconds"] += seconds
    write_json(folder / RUN, run)
    page = folder / "README.md"
    with atomic_path(page) as temporary:
        temporary.write_text(make_page(run, rows, {path.stem for path in figures}), encoding="utf-8")
    return Reproduction(
        page=page,
        tables=tables,
        figures=tuple(figures),
        rows=tuple(rows),
        computed=len(missing),
        left_out={**run["left_out"], **run["figures_left_out"]},
        seconds=seconds,
    )


def describe(dataset: Dataset, name: str) -> dict[str, Any]:
    """Return what the tables tell of a data set."""
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
    folder: Path, what: str, scale: str, repetitions: int | None, sources: Mapping[str, str], seed: int
) -> dict[str, Any]:
    """Check what was asked for and join it to what the folder holds; mistakes show before any work."""
    plan(what, scale, repetitions, datasets=())
    for name in sources:
        if name not in DATASETS:
            raise unknown_name("data set of the paper", name, DATASETS)
    run: dict[str, Any] = {"scale": scale, "repetitions": 0, "asked": [], "datasets": {}}
    run |= {"figures_left_out": {}, "seconds": 0.0, "sources": {}, "seed": seed}
    if (folder / RUN).exists():
        run |= read_json(folder / RUN, "a reproduction")
        if run["scale"] != scale:
            raise ConfigError(
                f"{folder} holds a reproduction at scale {run['scale']}, but scale {scale} was asked for. Give another "
                f"folder with --out, or --scale {run['scale']}."
            )
        if run["seed"] != seed:
            raise ConfigError(
                f"{folder} holds runs from seed {run['seed']} on, but seed {seed} was asked for. Give another folder "
                f"with --out, or --seed {run['seed']}."
            )
    # What was loaded from a file stays so: the runs that are there are about that file.
    run["sources"] = sources = {**run["sources"], **sources}
    run["repetitions"] = max(run["repetitions"], repetitions or SCALES[scale].repetitions)
    run["asked"] = [part for part in WHAT if part in {*run["asked"], what}]
    run["left_out"] = {}
    for name in DATASETS:
        source = sources.get(name)
        try:
            # Loaded to see whether it is here; what a folder knows already it need not load again.
            if name not in run["datasets"] or source:
                data = load_dataset(source or name, **({} if source else SCALES[scale].options[name]))
                run["datasets"][name] = describe(data, name)
        except DataNotFoundError as error:
            if source:
                raise
            run["left_out"][name] = str(error)
    run["datasets"] = {name: run["datasets"][name] for name in DATASETS if name in run["datasets"]}
    return run
