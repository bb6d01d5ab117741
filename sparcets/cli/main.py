"""The command line application: collects the commands."""

from __future__ import annotations

from typing import Annotated

import typer

from sparcets import __version__
from sparcets.cli import (
    benchmark,
    data,
    demo,
    evaluate,
    explain,
    export,
    fit,
    listing,
    report,
    reproduce,
    serve,
    studio,
)

app = typer.Typer(
    name="sparcets",
    help="Counterfactual explanations for models that classify multivariate time series.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.add_typer(data.app, name="data")
app.command("fit")(fit.fit)
app.command("explain")(explain.explain)
app.command("evaluate")(evaluate.evaluate)
app.command("report")(report.report)
app.command("export")(export.export)
app.add_typer(benchmark.app, name="benchmark")
app.command("reproduce")(reproduce.reproduce)
app.command("studio")(studio.studio)
app.command("serve")(serve.serve)
app.command("list")(listing.list_all)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"sparcets {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show log messages, and the traceback of an error.")] = False,
) -> None:
    """Handle the options before a command."""
