"""A small dose of every campaign."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.campaigns.registry import CAMPAIGNS, all_campaigns, campaign, carry_out

# What takes long and is guarded elsewhere: a run that is killed and resumed (tests/paper/benchmark/test_runner.py), and
# Ctrl-C in shorter commands.
LONG = ("kill in benchmark run", "Ctrl-C in reproduce")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in LONG)) for name in all_campaigns()]
)
def test_a_small_dose(name: str, tmp_path: Path) -> None:
    count = carry_out(name, CAMPAIGNS[name].dose, seed=0, part=0, folder=tmp_path)
    assert (count.failures, count.failed) == ([], 0)
    assert count.tried >= CAMPAIGNS[name].dose


def test_failures_are_counted_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CAMPAIGNS, "odd", raising=False)

    @campaign("odd", trials=10, dose=1)
    def odd(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[str]:
        for i in range(trials):
            yield f"number {i}" if i % 2 else ""

    count = carry_out("odd", 5, seed=0, part=0, folder=tmp_path)
    assert (count.tried, count.failed, count.failures) == (5, 2, ["number 1", "number 3"])
    monkeypatch.delitem(CAMPAIGNS, "odd")
