"""A small dose of every campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.registry import CAMPAIGNS, all_campaigns, carry_out

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
