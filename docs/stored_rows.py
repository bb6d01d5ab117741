"""Rows of ``results/``, and tables that name the commits they were measured at."""

import json
from pathlib import Path
from typing import Any

from sparcets_paper.table import Table

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"


def stored(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file of results."""
    return [json.loads(line) for line in (RESULTS / name).read_text(encoding="utf-8").splitlines()]


def percent(share: float | None) -> str:
    """Return a share as people write it, and nothing for None."""
    return "" if share is None else f"{100 * share:.0f} %"


def commits(rows: list[dict[str, Any]]) -> str:
    """Return the commits of rows, in words."""
    return ", ".join(sorted({row["commit"][:7] for row in rows}))


def of_commits(
    columns: tuple[str, ...], cells: list[tuple[str, ...]], rows: list[dict[str, Any]], note: str = ""
) -> str:
    """Return a table of measured rows, with the commits they name below it."""
    return Table("", columns, tuple(cells), f"{note}Commits {commits(rows)}.").to_markdown()
