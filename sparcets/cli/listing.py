"""``sparcets list``: the methods, data sets and classifier architectures."""

from __future__ import annotations

from typing import Annotated

import typer

from sparcets.cli.options import Json, print_json, print_table


def list_all(
    archive: Annotated[
        bool, typer.Option("--archive", help="Include the data sets of the UEA/UCR archive by name.")
    ] = False,
    json: Json = False,
) -> None:
    """List methods, data sets and classifier architectures."""
    # Registries hold names and texts only, so that listing them imports neither torch nor a data set.
    from sparcets.datasets.load import DATASETS
    from sparcets.datasets.uea_names import MULTIVARIATE, UNIVARIATE
    from sparcets.explainers import EXPLAINERS
    from sparcets.networks import ARCHITECTURES

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
