"""Run a plan: what is done is not done again, the rest side by side; stop it at any time and start it again."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from sparcets.benchmark.cell import Workplace, card_works, describe, failure, prepare, run_cell
from sparcets.benchmark.plan import Cell, Plan, file_digest
from sparcets.benchmark.store import RESULTS, ResultStore, brief, to_plain
from sparcets.engines.local import map_unordered
from sparcets.progress import progress_bar
from sparcets.training.device import resolve_device

log = logging.getLogger(__name__)

Row = dict[str, Any]


def run_plan(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    device: str = "auto",
    progress: bool | None = None,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure the cells of a plan that are not measured yet, failed, or whose data file has changed since.

    Classifiers and judges are trained first, once for all cells that share them. A cell that fails is a row with its
    error, and the others go on. With several workers each is a process of its own; they may share one GPU.

    Parameters
    ----------
    plan
        What to measure; a cell that stands there twice is run once.
    folder
        Where the results are: ``results.jsonl``, one row per cell, appended as soon as it is finished; kept answers in
        ``explanations``, trained networks in ``classifiers``. Judges are in the user's cache, for all folders.
    workers
        Processes; 1 works in this one. More need a main program that can be imported (``if __name__ == "__main__"``).
    device
        Where the networks run: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
    progress
        Whether to draw a progress bar; None draws it on a terminal.
    on_row
        Called with every row that was finished now.

    Returns
    -------
    rows
        One per cell of the plan, in its order, new and old ones alike.
    """
    folder = Path(folder)
    store = ResultStore(folder / RESULTS)
    todo = left_to_do(plan, folder)
    if todo:
        resolve_device(device)  # a mistake here would be an error of every cell
    done = store.done()
    for path in dict.fromkeys(cell.source or cell.dataset for cell in todo if cell.key in done):
        log.warning("%s has changed since it was measured; its runs are done again", path)
    groups = _sharing(todo)
    begun: dict[str, float] = {}  # when the preparation of a group was, by its first cell
    with progress_bar("benchmark", len(groups) + len(todo), show=progress) as bar:

        def finish(row: Row) -> None:
            row = to_plain({**row, "workers": workers})
            store.append(row)
            if on_row is not None:
                on_row(row)
            bar.advance(1, brief(row))

        def begin(item: Cell | list[Cell]) -> None:
            if isinstance(item, list):
                begun[item[0].key] = time.perf_counter()
                log.info("%s: preparing classifier and judges", item[0].dataset)

        # What cells share is trained before any of them is begun; each group's cells join the queue when theirs is.
        queue: deque[Cell | list[Cell]] = deque(groups)
        work = partial(_work, Workplace(folder, device))
        for item, result in map_unordered(work, queue, workers=workers, on_start=begin):
            if isinstance(item, Cell):
                finish({**describe(item), **failure(result)} if isinstance(result, Exception) else result)
                continue
            bar.advance(1, f"{item[0].dataset}: classifier and judges")
            broken = dict.fromkeys((cell.key for cell in item), result) if isinstance(result, Exception) else result
            if len(broken) < len(item):
                seconds = time.perf_counter() - begun[item[0].key]
                log.info("%s: classifier and judges are ready after %.0f s", item[0].dataset, seconds)
            for cell in item:
                if cell.key in broken:
                    finish({**describe(cell), **failure(broken[cell.key])})
            queue.extend(cell for cell in item if cell.key not in broken)
    return collect(plan, folder)


def left_to_do(plan: Plan, folder: str | os.PathLike[str]) -> list[Cell]:
    """Return the cells of a plan that :func:`run_plan` would run, each once."""
    rows = {row["key"]: row for row in ResultStore(Path(folder) / RESULTS).rows()}
    digests: dict[str, str | None] = {}  # so that each file is read once
    left: dict[str, Cell] = {}
    for cell in plan.cells:
        row = rows.get(cell.key)
        if row is None or "error" in row:
            left[cell.key] = cell
        elif before := row.get("data", {}).get("digest"):  # there is none for data that come by name
            path = cell.source or cell.dataset
            if path not in digests:
                digests[path] = file_digest(cell)
            if digests[path] not in (None, before):  # a file that is gone has not changed
                left[cell.key] = cell
    return list(left.values())


def collect(plan: Plan, folder: str | os.PathLike[str]) -> list[Row]:
    """Return the stored rows of a plan's cells, in its order and under its labels; cells not run yet are left out."""
    stored = {row["key"]: row for row in ResultStore(Path(folder) / RESULTS).rows()}
    return [
        {**stored[cell.key], "label": cell.label, "experiment": cell.experiment}
        for cell in plan.cells
        if cell.key in stored
    ]


def _sharing(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Return the cells in groups that share data: what they need is trained by one process, one after the other."""
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(repr((cell.source or cell.dataset, sorted(cell.options.items()))), []).append(cell)
    return list(groups.values())


def _work(workplace: Workplace, item: Cell | list[Cell]) -> dict[str, Any]:
    """What a worker does: measure a cell, or train what a group of them shares."""
    return _run(workplace, item) if isinstance(item, Cell) else _prepare(workplace, item)


def _prepare(workplace: Workplace, cells: list[Cell]) -> dict[str, Exception]:
    """Train what the cells need, each once; return what went wrong, by the keys of the cells that cannot be run."""
    outcome: dict[str, Exception | None] = {}
    for cell in cells:
        needs = _needs(cell)
        if needs not in outcome:
            try:
                prepare(cell, workplace)
                outcome[needs] = None
            except Exception as error:
                outcome[needs] = error
    failed = ((cell.key, outcome[_needs(cell)]) for cell in cells)
    return {key: error for key, error in failed if error is not None}


def _needs(cell: Cell) -> str:
    return repr((cell.classifier, sorted(cell.classifier_config.items()), cell.stability))


def _run(workplace: Workplace, cell: Cell) -> Row:
    row = run_cell(cell, workplace)
    if "error" in row and not card_works():
        raise RuntimeError(row["error"])  # this process is of no more use; the engine starts another
    return row
