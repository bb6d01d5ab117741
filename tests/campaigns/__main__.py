"""``python -m tests.campaigns``: run whole campaigns, print a table, exit with 1 if a trial failed."""

import argparse
import math
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from .registry import Count, all_campaigns, carry_out

os.environ.setdefault("OMP_NUM_THREADS", "1")  # of the processes started below


def main() -> int:
    """Run the campaigns that are named, or all of them."""
    campaigns = all_campaigns()
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="campaign", help=f"default: all ({', '.join(campaigns)})")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the trials (default: all of them)")
    parser.add_argument("--seed", type=int, default=0)
    # More than cores: many trials wait for the processes that they started.
    parser.add_argument("--processes", type=int, default=min(2 * (os.cpu_count() or 1), 4))
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(campaigns)):
        parser.error(f"no campaign {', '.join(unknown)}. Choose from: {', '.join(campaigns)}")
    names = options.names or list(campaigns)
    counts = _run(names, options.scale, options.seed, options.processes)
    _print(counts, f"seed {options.seed}, scale {options.scale:g}")
    return int(any(count.failed for count in counts.values()))


def _run(names: list[str], scale: float, seed: int, processes: int) -> dict[str, Count]:
    """Make the trials in several processes, and return the counts."""
    campaigns = all_campaigns()
    counts = {name: Count() for name in names}
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total} parts"))
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool,
        Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as progress,
    ):
        futures: dict[Future[Count], str] = {}
        for name in names:
            each = math.ceil(campaigns[name].trials * scale / campaigns[name].parts)
            for part in range(campaigns[name].parts):
                (own := Path(folder, f"{names.index(name)}-{part}")).mkdir()
                futures[pool.submit(carry_out, name, each, seed=seed, part=part, folder=own)] = name
        task = progress.add_task("campaigns", total=len(futures))
        for done in as_completed(futures):
            error = done.exception()  # one part that breaks takes nothing from the others
            counts[futures[done]].add(Count(failed=1, failures=[repr(error)]) if error else done.result())
            progress.advance(task)
    return counts


def _print(counts: dict[str, Count], conditions: str) -> None:
    console = Console(width=120)
    table = Table("campaign", box=None)
    for column in ("tried", "failed", "seconds"):
        table.add_column(column, justify="right")
    for name, count in counts.items():
        table.add_row(name, f"{count.tried:,}", f"{count.failed:,}", f"{count.seconds:.0f}")
    totals = (sum(getattr(count, which) for count in counts.values()) for which in ("tried", "failed"))
    table.add_row("all", *(f"{total:,}" for total in totals), end_section=True)
    console.print(table)
    console.print(conditions, markup=False, highlight=False)
    for name, count in counts.items():
        for failure in count.failures:
            console.print(f"{name}: {failure}", markup=False, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
