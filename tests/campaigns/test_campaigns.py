"""A small dose of every campaign."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.campaigns.registry import CAMPAIGNS, all_campaigns, carry_out


@pytest.mark.parametrize("name", all_campaigns())
def test_a_small_dose(name: str, tmp_path: Path) -> None:
    count = carry_out(name, CAMPAIGNS[name].dose, seed=0, part=0, folder=tmp_path)
    assert (count.failures, count.failed) == ([], 0) and count.tried >= CAMPAIGNS[name].dose
