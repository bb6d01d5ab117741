"""Run a plan: what is done is not done again, the rest side by side; stop it at any time and start it again."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from sparcets.benchmark.cell import Workplace, card_works, describe, failure, prepare, run_cell
from sparcets.benchmark.plan import Cell, Plan
from sparcets.benchmark.store import RESULTS, ResultStore, brief, to_plain
from sparcets.engines.local import map_unordered
from sparcets.progress import progress_bar

Row = dict[str, Any]


def run_plan(
    plan: Plan,
    folder: str | os.PathLike[str],
    *,
    workers: int = 1,
    device: str = "auto",
    progress: bool | None = None,
    retry_errors: bool = False,
    on_row: Callable[[Row], None] | None = None,
) -> list[Row]:
    """Measure the cells of a plan that are not measured yet.

    Classifiers and judges are trained first, once for all cells that share them. A cell that fails is a row with its
    error, and the others go on. With several workers each is a process of its own; they may share one GPU.

    Parameters
    ----------
    plan
        What to measure; a cell that stands there twice is run once.
    folder
        Where the results are: ``results.jsonl``, one row per cell, appended as soon as it is finished; kept answers in
        ``explanations``, trained networks in ``classifiers`` and ``judges``.
    workers
        Processes; 1 works in this one. More need a main program that can be imported (``if __name__ == "__main__"``).
    device
        Where the networks run: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
    progress
        Whether to draw a progress bar; None draws it on a terminal.
    retry_errors
        Whether cells that ended in an error are run again.
    on_row
        Called with every row that was finished now.

    Returns
    -------
    rows
        One per cell of the plan, in its order, new and old ones alike.
    """
    folder = Path(folder)
    store = ResultStore(folder / RESULTS)
    done = store.done(retry_errors=retry_errors)
    todo = list({cell.key: cell for cell in plan.cells if cell.key not in done}.values())
    groups = _sharing(todo)
    with progress_bar("benchmark", len(groups) + len(todo), show=progress) as bar:

        def finish(row: Row) -> None:
            row = to_plain({**row, "workers": workers})
            store.append(row)
            if on_row is not None:
                on_row(row)
            bar.advance(1, brief(row))

        # What cells share is trained before any of them is begun; each group's cells join the queue when theirs is.
        queue: deque[Cell | list[Cell]] = deque(groups)
        for item, result in map_unordered(partial(_work, Workplace(folder, device)), queue, workers=workers):
            if isinstance(item, Cell):
                finish({**describe(item), **failure(result)} if isinstance(result, Exception) else result)
                continue
            bar.advance(1, f"{item[0].dataset}: classifier and judges")
            broken = dict.fromkeys((cell.key for cell in item), result) if isinstance(result, Exception) else result
            for cell in item:
                if cell.key in broken:
                    finish({**describe(cell), **failure(broken[cell.key])})
            queue.extend(cell for cell in item if cell.key not in broken)
    return collect(plan, folder)


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
