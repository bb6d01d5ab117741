"""``sparcets reproduce``: the paper's tables and figures, from runs of our own."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.options import Device, Json, Seed, print_json, print_table
from sparcets.errors import ConfigError


class Part(str, Enum):
    """Parts of the paper."""

    table1 = "table1"
    targets = "targets"
    ablation = "ablation"
    figures = "figures"
    timing = "timing"
    all = "all"


class Size(str, Enum):
    """How much is run."""

    small = "small"
    full = "full"


def reproduce(
    part: Annotated[
        Part, typer.Argument(metavar="PART", help="table1, targets, ablation, figures, timing, or all of them: all.")
    ],
    scale: Annotated[
        Size, typer.Option(help="small: a quarter of an hour on two cores. full: the paper's settings, for a GPU.")
    ] = Size.small,
    repetitions: Annotated[
        int | None, typer.Option(min=1, help="Seeds of each run; by default 2 at the small scale, 5 at the full one.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of the results; what it holds already is not run again.")
    ] = Path("reproduction"),
    workers: Annotated[int, typer.Option(min=1, help="Runs side by side.")] = 2,
    source: Annotated[
        list[str] | None,
        typer.Option("--source", help="Load a data set from a file instead, as name=path; repeat it for more."),
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Run the paper's experiments again and put our numbers beside its own.

    Tables, figures and a page that joins them are written to the folder; a second call does only what is missing.
    """
    from sparcets.benchmark.store import brief
    from sparcets.reproduce.run import reproduce as run

    made = run(
        part.value,
        scale=scale.value,
        repetitions=repetitions,
        out=out,
        workers=workers,
        device=device,
        sources=_sources(source),
        seed=seed,
        on_note=lambda line: typer.echo(line, err=True),
        on_row=None if sys.stderr.isatty() else lambda row: typer.echo(brief(row), err=True),  # a bar shows it there
    )
    failed = [row for row in made.rows if row.get("error")]
    if json:
        print_json(
            {
                "page": str(made.page),
                "tables": {stem: str(out / "tables" / f"{stem}.md") for stem in made.tables},
                "figures": [str(path) for path in made.figures],
                "runs": len(made.rows),
                "computed": made.computed,
                "failed": {row["key"]: row["error"] for row in failed},
                "left_out": dict(made.left_out),
                "seconds": round(made.seconds, 1),
            }
        )
        return
    for stem, table in made.tables.items():
        if part in (stem, Part.all):
            rows = [[cell.replace("**", "") for cell in row] for row in table.rows]
            print_table(table.columns, rows, title=table.title)
            typer.echo("")
    typer.echo(
        f"{made.computed} of {len(made.rows)} runs were new, {len(failed)} failed; {made.seconds:.0f} s. "
        f"Tables, {len(made.figures) // 2} figures and the page are in {out.resolve()}; start with {made.page.name}."
    )


def _sources(settings: list[str] | None) -> dict[str, str]:
    pairs = {}
    for setting in settings or []:
        name, equals, path = setting.partition("=")
        if not equals or not path:
            raise ConfigError(f"cannot read --source {setting!r}: write it as name=path.")
        pairs[name.strip()] = path.strip()
    return pairs
