"""Run a plan, in parallel if requested; finished cells are skipped, so that a stopped run can be resumed."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sparcets.core.errors import BusyError
from sparcets.core.progress import progress_bar
from sparcets.io.engines import make_engine
from sparcets.io.files import remove_leftovers
from sparcets.io.folders import inside
from sparcets.io.locks import LOCK, locked
from sparcets.training.device import resolve_device
from sparcets_paper.benchmark.cell import RunContext, cell_fields, cuda_works, failure, prepare, run_cell
from sparcets_paper.benchmark.plan import Cell, file_digest
from sparcets_paper.benchmark.store import RESULTS, ResultStore, format_row

log = logging.getLogger(__name__)

Row = dict[str, Any]


def run_plan(
    plan: Sequence[Cell],
    folder: str | os.PathLike[str],
    *,
    workers: int | None = None,
    device: str = "auto",
    engine: str = "local",
    address: str | None = None,
    code: str | None = None,
    progress: bool | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Run the cells of a plan that have no result yet, failed, or whose data file or code has changed since.

    Classifiers and judges are trained first, once for all cells that share them. A cell that fails becomes a row with
    its error; the others continue. Several workers are processes, which may share one GPU and need an importable main
    module (``if __name__ == "__main__"``); None is this process, or with Ray one per GPU or core of the cluster.
    Several runs may share a folder: each cell is computed by one of them, and a run ends when all its cells have a row.

    Each finished cell is a row of ``results.jsonl`` in the folder; saved answers are in ``explanations``, trained
    networks in ``classifiers``, and the network among the judges in the user's cache. With the engine ``"ray"``,
    ``address`` is that of the cluster, whose nodes must reach the folder and the data by the same paths. ``code`` is a
    digest of the code that decides the results, which is stored in the rows: cells whose row names another one are run
    again. Returns one row per cell of the plan, in its order, both new and stored ones.
    """
    folder = Path(folder)
    for name in ("classifiers", "explainers", "explanations"):
        inside(folder, name)  # they are written to, and what is damaged in them is replaced
    own = rf"(\.cell-[0-9a-f]+|\.{re.escape(RESULTS)})"
    for part, name in (("", own), ("classifiers", "[0-9a-f]{16}"), ("explainers", "[0-9a-f]{16}")):
        remove_leftovers(folder / part, name + re.escape(LOCK), _remove_empty)
    store = ResultStore(folder / RESULTS)
    pending = pending_cells(plan, folder, code=code)
    if pending and engine == "local":
        resolve_device(device)  # else a wrong device would be an error of every cell
    before = {row["key"]: row["started"] for row in store.rows() if "started" in row}
    done = store.done()
    for path in dict.fromkeys(cell.source or cell.dataset for cell in pending if cell.key in done):
        changed = path if code is None else f"{path}, or the code,"
        log.warning("%s has changed since its results were stored; its cells are run again", changed)
    if not pending:  # no engine is started for nothing
        return collect(plan, folder)
    groups = _by_data(pending)
    bar_of_cells = progress_bar("benchmark", len(groups) + len(pending), show=progress)
    with make_engine(engine, address=address, device=device) as place, bar_of_cells as bar:
        number = place.n_workers(workers)
        context = RunContext(folder, device, code)

        def finish(row: Row) -> None:
            if on_row is not None:
                on_row(row)
            bar.advance(1, format_row(row))

        def fail(cell: Cell, error: Exception) -> None:
            finish(store.append({**cell_fields(cell, code), **failure(error), "workers": number}))

        ready: set[str] = set()
        for group, error in place.map_unordered(partial(prepare, context), groups, workers=number):
            bar.advance(1, f"{group[0].dataset}: classifier and judges")
            if error is None:
                log.info("%s: classifier and judges are ready", group[0].dataset)
                ready |= {cell.key for cell in group}
                continue
            for cell in group:
                fail(cell, error)
        # In the order of the plan. Cells that another run is computing come last, where this run waits for them.
        queue = [cell for cell in pending if cell.key in ready]
        for wait in (False, True):
            if not queue:
                break
            work = partial(_run, context, before, number, wait)
            computed_elsewhere: list[Cell] = []
            for cell, row in place.map_unordered(work, queue, workers=number):
                if isinstance(row, Exception):
                    fail(cell, row)
                elif row is None:
                    computed_elsewhere.append(cell)
                elif row.pop("new"):
                    finish(row)
                else:
                    bar.advance(1, format_row(row))
            queue = computed_elsewhere
    return collect(plan, folder)


def pending_cells(plan: Sequence[Cell], folder: str | os.PathLike[str], *, code: str | None = None) -> list[Cell]:
    """Return the cells of a plan that :func:`run_plan` would run, each once."""
    rows = {row["key"]: row for row in ResultStore(Path(folder) / RESULTS).rows()}
    digests: dict[str, str | None] = {}  # by path, so that each file is read once
    pending: dict[str, Cell] = {}
    for cell in plan:
        row = rows.get(cell.key)
        if row is None or "error" in row or (code is not None and row.get("code") != code):
            pending[cell.key] = cell
        elif before := row.get("data", {}).get("digest"):  # data sets known by name have none
            path = cell.source or cell.dataset
            if path not in digests:
                digests[path] = file_digest(cell)
            if digests[path] not in (None, before):  # None: the file no longer exists; its results stay
                pending[cell.key] = cell
    return list(pending.values())


def collect(plan: Sequence[Cell], folder: str | os.PathLike[str]) -> list[Row]:
    """Return the stored rows of a plan's cells, in its order and with its labels; cells without a row are left out."""
    stored = {row["key"]: row for row in ResultStore(Path(folder) / RESULTS).rows()}
    return [
        {**stored[cell.key], "label": cell.label, "experiment": cell.experiment} for cell in plan if cell.key in stored
    ]


def _by_data(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Group the cells by what they share: data set and classifier."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        data = (cell.source or cell.dataset, sorted(cell.options.items()))
        groups.setdefault(repr((data, cell.classifier, sorted(cell.classifier_config.items()))), []).append(cell)
    return list(groups.values())


def _run(context: RunContext, before: Mapping[str, str], workers: int, wait: bool, cell: Cell) -> Row | None:
    """Run a cell and store its row, with ``new`` set; return the row of another run if there is one by now.

    Without ``wait``, return None for a cell that another run is computing.
    """
    store = ResultStore(context.folder / RESULTS)
    try:
        # Held until the row is stored, so that no other run computes the cell in between.
        with locked(context.folder / f".cell-{cell.key}{LOCK}", what=f"the cell {cell.key}", wait=wait):
            stored = next((row for row in store.rows() if row["key"] == cell.key), None)
            if stored is not None and stored.get("started") != before.get(cell.key):
                return {**stored, "new": False}
            row = run_cell(cell, context)
            if "error" in row and not cuda_works():
                # Ends this process, which cannot use CUDA any more; the engine starts another.
                raise RuntimeError(row["error"])
            return {**store.append({**row, "workers": workers}), "new": True}
    except BusyError:
        return None


def _remove_empty(file: Path) -> None:
    if not file.stat().st_size:  # lock files are empty
        file.unlink()
