"""Rows of results in files of JSON lines: a row that is measured again replaces the one before."""

import json
import subprocess
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


def commit() -> str:
    """Return the commit of the code that is measured, with a mark if the code is not as in the commit."""
    head = ["git", "rev-parse", "HEAD"]
    changed = ["git", "status", "--porcelain", "--", "sparcets", "benchmarks"]
    said = [
        subprocess.run(command, cwd=RESULTS.parent, capture_output=True, text=True, check=True).stdout.strip()
        for command in (head, changed)
    ]
    return said[0] + ("-changed" if said[1] else "")


COMMIT = commit()  # at the start: what is changed later is not measured


def read(name: str) -> list[dict[str, Any]]:
    """Return the stored rows of a file."""
    path = RESULTS / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def store(name: str, row: dict[str, Any], identity: tuple[str, ...]) -> None:
    """Store a row, in the place of the one with the same values of ``identity`` if there is one."""
    rows = {tuple(one[key] for key in identity): one for one in (*read(name), row)}
    (RESULTS / name).write_text("".join(f"{json.dumps(one)}\n" for one in rows.values()))
    print(row, flush=True)
