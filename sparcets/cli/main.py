"""The command line application: collects the commands."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Annotated

import typer

from sparcets import __version__
from sparcets.cli import data, demo, evaluate, explain, fit, report, servers
from sparcets.cli.options import Json, print_json, print_table


def list_all(
    archive: Annotated[
        bool, typer.Option("--archive", help="Include the data sets of the UEA/UCR archive by name.")
    ] = False,
    json: Json = False,
) -> None:
    """List methods, data sets and classifier architectures."""
    # Registries hold names and texts only, so that listing them imports neither torch nor a data set.
    from sparcets.data.load import DATASETS
    from sparcets.data.uea import MULTIVARIATE, UNIVARIATE
    from sparcets.methods import EXPLAINERS
    from sparcets.training import ARCHITECTURES

    registries = {"explainers": EXPLAINERS, "datasets": DATASETS, "classifiers": ARCHITECTURES}
    known = {kind: {name: registry.about.get(name, "") for name in registry} for kind, registry in registries.items()}
    if archive:
        known["datasets"] |= dict.fromkeys(MULTIVARIATE, "UEA archive, multivariate")
        known["datasets"] |= dict.fromkeys(UNIVARIATE, "UCR archive, univariate")
    if json:
        print_json(known)
        return
    rows = [
        (kind.rstrip("s"), name, about or f"from {registries[kind].location(name)}")
        for kind, names in known.items()
        for name, about in names.items()
    ]
    print_table(["kind", "name", "description"], rows)
    if not archive:
        n = len(MULTIVARIATE) + len(UNIVARIATE)
        typer.echo(f"also: {n} data sets of the UEA/UCR archive (listed with --archive), and files of your own")


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
app.command("export")(fit.export)
app.command("studio")(servers.studio)
app.command("serve")(servers.serve)
app.command("list")(list_all)
for point in entry_points(group="sparcets.commands"):  # a typer.Typer, or a function
    command = point.load()
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=point.name)
    else:
        app.command(point.name)(command)


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
