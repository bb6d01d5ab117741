"""``sparcets studio``: start the web application and its API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.options import Classes, Device, Layout, Model, Output, Seed, own_model


def studio(
    workspace: Annotated[Path, typer.Option("--workspace", help="Folder for data, classifiers and explainers.")] = Path(
        "sparcets-studio"
    ),
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default that of this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="SPARCETS_STUDIO_TOKEN",
            help="Secret that requests must contain; by default the one of the workspace, created at the first start. "
            "Other users of the machine can see options; use the variable for a token of your own.",
        ),
    ] = None,
    api_only: Annotated[bool, typer.Option("--api-only", help="Serve the API without the page.")] = False,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    explainer: Annotated[
        list[Path] | None,
        typer.Option("--explainer", help="Folder written by `sparcets fit`, to use on the page; may be repeated."),
    ] = None,
    model: Model = None,
    output: Output = None,
    layout: Layout = None,
    classes: Classes = None,
    seed: Seed = 0,
    device: Device = "auto",
) -> None:
    """Start the studio, a local web application to explain series in the browser."""
    from sparcets.studio.app import serve

    own = own_model(model, output, layout, classes)
    for folder in explainer or []:
        _add(folder, workspace, device, model)
    serve(
        workspace,
        host=host,
        port=port,
        token=token,
        api_only=api_only,
        seed=seed,
        device=device,
        open_page=open_page,
        model=own,
        say=lambda line: typer.echo(line, err=True),
    )


def _add(folder: Path, workspace: Path, device: str, model: str | None) -> None:
    """Copy a fit into the workspace."""
    from sparcets.cli.fit import CLASSIFIER, EXPLAINER, load_fit
    from sparcets.io.folders import inside
    from sparcets.models.own_model import needs_code
    from sparcets.studio.own_explainer import add_fit
    from sparcets.studio.workspace import Workspace

    own = model if needs_code(inside(folder, CLASSIFIER)) else None  # --model may be for the page alone
    run, explainer = load_fit(folder, device=device, model=own, command=("studio", "--explainer", str(folder)))
    record = add_fit(Workspace(workspace), run, explainer, folder / CLASSIFIER, folder / EXPLAINER)
    typer.echo(f"explainer: {folder} is {record.id} in the workspace", err=True)
