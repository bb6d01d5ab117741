"""docs/models-and-data.md: its rows are those of the script, its numbers those stored, and the code runs."""

import runpy
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "models-and-data.md"
QUICK = ["1 feature", "a class by name", "a module that returns a dict", "features that may not change", "a .npz file"]


@cache
def script() -> dict[str, Any]:
    """Return the names of docs/models_and_data.py."""
    return runpy.run_path(str(ROOT / "docs" / "models_and_data.py"))


def cells() -> list[Any]:
    return list(script()["read_cells"]()[1])


def test_the_page_is_that_of_the_stored_rows() -> None:
    assert PAGE.read_text(encoding="utf-8") == script()["page"](), "run: make docs"


def test_the_stored_rows_are_those_of_the_script() -> None:
    stored = script()["read_rows"]()
    known = [{key: row[key] for key in ("group", "what", "prepared", "code")} for row in stored]
    assert known == [cell.identity for cell in cells()], "run: python docs/models_and_data.py"
    assert all(row["version"] and row["commit"] and row["result"] for row in stored)
    assert len(stored) >= 40 and {row["group"] for row in stored} == {
        *("Series", "Doors", "Models", "Questions", "Constraints"),
    }


@pytest.mark.parametrize("what", QUICK)
def test_some_rows_run(what: str) -> None:
    (cell,) = [cell for cell in cells() if cell.what == what]
    found = script()["run"](cell, script()["read_cells"]()[0])
    assert found["result"] == "ran" and found["valid"] == found["answers"] > 0
