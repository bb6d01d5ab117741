"""A small dose of every campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.campaigns.registry import CAMPAIGNS, OK, Trial, UnavailableError, all_campaigns, campaign, carry_out

# What takes long and is guarded elsewhere: a run that is killed and resumed (tests/paper/benchmark/test_runner.py), and
# Ctrl-C in shorter commands.
LONG = ("kill in benchmark run", "Ctrl-C in reproduce")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in all_campaigns()]
)
def test_a_small_dose(name: str, tmp_path: Path) -> None:
    count = carry_out(name, CAMPAIGNS[name].dose, seed=0, part=0, folder=tmp_path)
    if count.skipped:
        pytest.skip(count.skipped)
    assert (count.failures, count.failed) == ([], 0)
    assert count.tried >= CAMPAIGNS[name].dose


def test_failures_are_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CAMPAIGNS, "odd", raising=False)

    @campaign("odd", trials=10, dose=1)
    def odd(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
        for i in range(trials):
            yield Trial(f"number {i}", entries=3) if i % 2 else OK

    count = carry_out("odd", 5, seed=0, part=0, folder=tmp_path)
    assert (count.tried, count.failed, count.entries, count.failures) == (5, 2, 6, ["number 1", "number 3"])
    monkeypatch.delitem(CAMPAIGNS, "odd")


def test_a_campaign_that_cannot_run_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @campaign("never", trials=1, dose=1)
    def never(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[Trial]:
        raise UnavailableError("no disk")
        yield OK

    assert carry_out("never", 1, seed=0, part=0, folder=tmp_path).skipped == "no disk"
    monkeypatch.delitem(CAMPAIGNS, "never")
