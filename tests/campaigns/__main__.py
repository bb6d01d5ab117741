"""``python -m tests.campaigns``: run whole campaigns, print a table, exit with 1 if a trial failed."""

import argparse
import math
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path

from sparcets.core.progress import progress_bar

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
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool,
        progress_bar("campaigns", sum(campaigns[name].parts for name in names)) as bar,
    ):
        futures: dict[Future[Count], str] = {}
        for name in names:
            each = math.ceil(campaigns[name].trials * scale / campaigns[name].parts)
            for part in range(campaigns[name].parts):
                (own := Path(folder, f"{names.index(name)}-{part}")).mkdir()
                futures[pool.submit(carry_out, name, each, seed=seed, part=part, folder=own)] = name
        for done in as_completed(futures):
            error = done.exception()  # one part that breaks takes nothing from the others
            counts[futures[done]].add(Count(failed=1, failures=[repr(error)]) if error else done.result())
            bar.advance(1)
    return counts


def _print(counts: dict[str, Count], conditions: str) -> None:
    total = Count()
    for name, count in [*counts.items(), ("all", total)]:
        print(f"{name:<40}{count.tried:>10,} tried {count.failed:>6,} failed {count.seconds:>8.0f} s")  # noqa: T201
        total.add(count if count is not total else Count())
    failures = [f"{name}: {failure}" for name, count in counts.items() for failure in count.failures]
    print(conditions, *failures, sep="\n")  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
