"""``sparcets reproduce``: the tables and figures of the paper from our own runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.options import Address, Device, Engine, Json, Seed, print_json, print_table
from sparcets.core.errors import ConfigError


def reproduce(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="table1, targets, ablation, figures, timing, probes or all.")
    ],
    scale: Annotated[
        str, typer.Option(help="small: a quarter of an hour on two cores. full: the paper's settings, for a GPU.")
    ] = "small",
    repetitions: Annotated[
        int | None,
        typer.Option(min=1, help="Number of seeds per run; by default 2 at the small scale and 5 at the full one."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the results; stored runs are not computed again.")
    ] = Path("reproduction"),
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes; default: 2, or with Ray one per GPU or core of the cluster."),
    ] = None,
    engine: Engine = "local",
    address: Address = None,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="File or folder to load a data set from, as name=path; may be repeated."),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Run the paper's experiments and compare the results with its numbers.

    Writes tables, figures and a page with all of them to the folder; a second call runs only what is missing.
    """
    from sparcets_paper.benchmark.store import format_row
    from sparcets_paper.reproduce.run import reproduce as run

    result = run(
        part,
        scale=scale,
        repetitions=repetitions,
        out=out,
        workers=2 if workers is None and engine == "local" else workers,
        device=device,
        engine=engine,
        address=address,
        sources=_sources(source),
        seed=seed,
        on_note=lambda line: typer.echo(line, err=True),
        on_row=None
        if sys.stderr.isatty()
        else lambda row: typer.echo(format_row(row), err=True),  # a bar shows the rows
    )
    failed = [row for row in result.rows if row.get("error")]
    if json:
        print_json(
            {
                "page": str(result.page),
                "tables": {stem: str(out / "tables" / f"{stem}.md") for stem in result.tables},
                "figures": [str(path) for path in result.figures],
                "runs": len(result.rows),
                "computed": result.computed,
                "failed": {row["key"]: row["error"] for row in failed},
                "left_out": dict(result.left_out),
                "seconds": round(result.seconds, 1),
            }
        )
        return
    for stem, table in result.tables.items():
        if part in (stem, "all"):
            rows = [[cell.replace("**", "") for cell in row] for row in table.rows]
            print_table(table.columns, rows, title=table.title)
            typer.echo("")
    typer.echo(
        f"{result.computed} of {len(result.rows)} runs are new, {len(failed)} failed; {result.seconds:.0f} s. "
        f"Tables, {len(result.figures) // 2} figures and the page {result.page.name} are in {out.resolve()}."
    )


def _sources(settings: list[str] | None) -> dict[str, str]:
    pairs = {}
    for setting in settings or []:
        name, equals, path = setting.partition("=")
        if not equals or not path:
            raise ConfigError(f"--source must have the form name=path, got {setting!r}.")
        pairs[name.strip()] = path.strip()
    return pairs
