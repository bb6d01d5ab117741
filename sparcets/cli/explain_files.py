"""``sparcets explain --queries``: all series of Parquet or Arrow files, by several processes or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from sparcets.cli.options import print_json
from sparcets.errors import ConfigError


def check_together(
    queries: Path | None, out: Path | None, *, refused: dict[str, bool], beside: dict[str, bool]
) -> None:
    """Raise if options were given that do not go together.

    Parameters
    ----------
    queries, out
        Those options, or None.
    refused, beside
        Whether options were given that are not for --queries; and those that are for it alone.
    """
    if queries is None:
        if alone := [name for name, given in beside.items() if given]:
            raise ConfigError(f"{', '.join(alone)}: only for Parquet or Arrow files, by --queries.")
        return
    if other := [name for name, given in refused.items() if given]:
        raise ConfigError(f"--queries cannot be combined with {', '.join(other)}.")
    if out is None:
        raise ConfigError("--queries needs --out, a folder for the Parquet files of the answers.")


def explain_files(model: Path, queries: Path, out: Path | None, *, json: bool, **asked: Any) -> None:
    """Explain all series of files, and print what became of them."""
    from sparcets.engines.parquet import explain_parquet

    assert out is not None  # by check_together
    result = explain_parquet(model, queries, out, **asked)
    rate = result.queries / max(result.seconds, 1e-9)
    if json:
        names = ("queries", "answers", "errors", "shards", "computed", "unfinished", "seconds", "explain_s")
        print_json({"folder": str(out), **{name: getattr(result, name) for name in names}})
    else:
        before = result.shards - result.computed - len(result.unfinished)
        there = f" ({before} of {result.shards} shards were there already)" if before else f", {rate:,.0f} per second"
        typer.echo(f"{result.queries:,} series explained: {result.answers:,} answers in {result.seconds:.0f} s{there}")
        if result.errors:
            typer.echo(f"{result.errors:,} series could not be explained; the column error of their rows says why")
        typer.echo(f"saved to {out}")
    for part, why in list(result.unfinished.items())[:3]:
        typer.echo(f"not written: {part}: {why}", err=True)
    if result.unfinished:
        typer.echo(
            f"{len(result.unfinished)} of {result.shards} shards are missing; the same command tries them again",
            err=True,
        )
    if result.unfinished or result.errors == result.queries:
        raise typer.Exit(1)
