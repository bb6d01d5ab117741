"""Rows of the speed benchmark as cells of a table, for the terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

COLUMNS = ("part", "what", "batch", "value", "unit", "reference", "times as fast")


def cells(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a row.

    >>> cells({"part": "latency", "name": "one query, p50", "value": 7.123, "unit": "ms"})
    ['latency', 'one query, p50', '', '7.12', 'ms', '', '']
    """
    if "error" in row:
        return [row["part"], row["error"], *[""] * (len(COLUMNS) - 2)]
    ratio = row.get("ratio")
    return [
        row["part"],
        row["name"],
        str(row.get("batch", "")),
        short(row["value"]),
        row["unit"],
        row.get("reference", ""),
        "" if ratio is None else short(ratio),
    ]


def short(value: float) -> str:
    """Return a number with three significant digits.

    >>> [short(v) for v in (0.01234, 1.0, 1234.5, 123456)]
    ['0.0123', '1.00', '1,234', '123,456']
    """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 0.1 else f"{value:.{1 if abs(value) >= 10 else 2}f}"
