"""What a campaign is, and the list of them."""

from __future__ import annotations

import importlib
import logging
import pkgutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from zlib import crc32

import numpy as np

SHOWN = 20  # failures that are kept in words; all are counted


Run = Callable[[int, np.random.Generator, Path], Iterator[str]]


@dataclass(frozen=True)
class Campaign:
    """A kind of trial, repeated.

    Attributes
    ----------
    name
        What is tried.
    run
        Called with a number of trials, a generator of random numbers and an empty folder; yields, for each trial, what
        broke, in words from which it can be repeated; "" if nothing did.
        What it does depends on these arguments alone, so that a failure can be repeated.
    trials
        Their number in ``make campaign``.
    dose
        Their number in the tests.
    parts
        In how many parts ``make campaign`` divides it, so that several processes can share it.
    """

    name: str
    run: Run
    trials: int
    dose: int
    parts: int


@dataclass
class Count:
    """Counts of a campaign, or of a part of it."""

    tried: int = 0
    failed: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        """Add the counts of another part."""
        self.tried += other.tried
        self.failed += other.failed
        self.seconds += other.seconds
        self.failures = (self.failures + other.failures)[:SHOWN]


CAMPAIGNS: dict[str, Campaign] = {}


def campaign(name: str, *, trials: int, dose: int, parts: int = 1) -> Callable[[Run], Run]:
    """Add a function to the list of campaigns."""

    def register(run: Run) -> Run:
        CAMPAIGNS[name] = Campaign(name, run, trials, dose, parts)
        return run

    return register


def all_campaigns() -> dict[str, Campaign]:
    """Return the campaigns of every module beside this one."""
    package = __name__.rpartition(".")[0]
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if not module.name.startswith(("test_", "__")):
            importlib.import_module(f"{package}.{module.name}")
    return CAMPAIGNS


def carry_out(name: str, trials: int, *, seed: int, part: int, folder: Path) -> Count:
    """Make some trials of a campaign, and count."""
    campaign = all_campaigns()[name]
    count, started = Count(), time.perf_counter()
    rng = np.random.default_rng([seed, crc32(name.encode()), part])
    logger = logging.getLogger("sparcets")
    level = logger.level
    logger.setLevel(logging.ERROR)  # fits are short, and say so
    try:
        for failure in campaign.run(trials, rng, folder):
            count.tried += 1
            if failure:
                count.failed += 1
                count.failures = [*count.failures, failure][:SHOWN]
    finally:
        logger.setLevel(level)
    count.seconds = time.perf_counter() - started
    return count
