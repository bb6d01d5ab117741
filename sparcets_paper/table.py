"""Table: cells of text that can be written as Markdown and CSV.

Cells use Markdown: ``**bold**`` and code in backticks. CSV has their text.
"""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

from sparcets.io.files import as_utf8, atomic_path

MISSING = "–"  # instead of a number

_BOLD = re.compile(r"\*\*(.+?)\*\*")
_CODE = re.compile(r"`(.+?)`")


@dataclass(frozen=True)
class Table:
    """Rows of text under named columns; title and note, which stands below, may be empty.

    >>> table = Table("Two runs", ("run", "valid"), (("first", "**0.9 ± 0.1**"), ("second", "–")))
    >>> print(table.to_markdown())
    ### Two runs
    <BLANKLINE>
    | run | valid |
    |---|---|
    | first | **0.9 ± 0.1** |
    | second | – |
    >>> print(table.to_csv())
    run,valid
    first,0.9 ± 0.1
    second,–
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a cell or a part of it may be ``**bold**``
    note: str = ""

    def to_markdown(self) -> str:
        """Return a heading, the table and the note."""
        heading = [f"### {self.title}", ""] if self.title else []
        lines = [*heading, _markdown_row(self.columns), "|" + "---|" * len(self.columns)]
        lines += [_markdown_row(row) for row in self.rows]
        return "\n".join([*lines, "", self.note] if self.note else lines)

    def to_csv(self) -> str:
        """Return comma-separated lines with a header, without title, note and bold."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([_plain(c) for c in self.columns])
        writer.writerows([_plain(cell) for cell in row] for row in self.rows)
        return text.getvalue().rstrip("\n")

    def save(self, folder: str | os.PathLike[str], stem: str) -> list[Path]:
        """Write ``stem.md`` and ``stem.csv``, each atomically; return their paths."""
        written = []
        for suffix, text in ((".md", self.to_markdown()), (".csv", self.to_csv())):
            path = Path(folder) / f"{stem}{suffix}"
            with atomic_path(path) as temporary:
                temporary.write_bytes(as_utf8(text + "\n"))
            written.append(path)
        return written


def number(values: Sequence[float]) -> str:
    """Format the mean, with the standard deviation if there are several values.

    >>> number([0.2, 0.24]), number([0.0074]), number([])
    ('0.22 ± 0.03', '0.007', '–')
    """
    if not values:
        return MISSING
    mean = fmean(values)
    digits = 3 if abs(mean) < 0.1 else 2
    spread = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean:.{digits}f}{spread}"


def _markdown_row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"


def _plain(cell: str) -> str:
    return _CODE.sub(r"\1", _BOLD.sub(r"\1", cell))
