"""Options that several commands share, and functions that print results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from sparcets.errors import ConfigError

Seed = Annotated[int, typer.Option(help="Random seed.")]
Device = Annotated[str, typer.Option(help="Device of the networks: auto, cpu, cuda, cuda:1 or mps.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Engine = Annotated[
    str, typer.Option("--engine", help="Where the work is done: local (processes on this machine), or ray (a cluster).")
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", help="Address of the Ray cluster, host:port; default: that of this machine, or a new one on it."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(help="Number of processes; default: 1, or with Ray one per GPU or core of the cluster.", min=1),
]
Data = Annotated[
    str, typer.Option("--dataset", "-d", help="Name of a data set, or path to a .npz, .csv, .parquet or .ts file.")
]
DataOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="Option of the data set, as key=value; may be repeated; sparcets data info lists them."
    ),
]


def print_json(data: Any) -> None:
    """Print JSON on stdout."""
    typer.echo(json.dumps(data, indent=2, ensure_ascii=False))


def in_bytes(size: int) -> str:
    """Format a file size.

    >>> in_bytes(61_300), in_bytes(6_582_118)
    ('61 kB', '6.6 MB')
    """
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table on stdout: formatted on a terminal, tab-separated otherwise."""
    import sys

    if not sys.stdout.isatty():
        for line in [columns, *rows]:
            typer.echo("\t".join(str(cell) for cell in line))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, title=title, title_justify="left", box=None, pad_edge=False)
    for row in rows:  # as Text: brackets in names are no markup
        table.add_row(*(Text(str(cell), getattr(cell, "terminal_style", "")) for cell in row))
    Console().print(table)


def parse_options(settings: list[str] | None) -> dict[str, Any]:
    """Convert ``["split=subject", "n=3"]`` to keyword arguments; numbers, lists, true, false and none are parsed."""
    import ast

    words: dict[str, Any] = {"true": True, "false": False, "none": None}
    result: dict[str, Any] = {}
    for setting in settings or []:
        key, equals, text = setting.partition("=")
        if not equals:
            raise ConfigError(f"cannot read the option {setting!r}: write it as key=value.")
        try:
            result[key.strip()] = words.get(text.lower(), ast.literal_eval(text)) if text else ""
        except (SyntaxError, ValueError):
            result[key.strip()] = words.get(text.lower(), text.split(",") if "," in text else text)
    return result
