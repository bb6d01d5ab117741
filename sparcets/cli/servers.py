"""``sparcets studio`` and ``sparcets serve``: the web application for people, and the server for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli import options
from sparcets.core.registry import require_extra

Host = Annotated[str, typer.Option(help="Address to listen on; by default that of this machine only.")]


def studio(
    workspace: Annotated[Path, typer.Option(help="Folder for data, classifiers and explainers.")] = Path(
        "sparcets-studio"
    ),
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="SPARCETS_STUDIO_TOKEN",
            help="Secret that requests must contain; by default the one of the workspace, created at the first start. "
            "Other users of the machine can see options; use the variable for a token of your own.",
        ),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    explainer: Annotated[
        list[Path] | None, options.repeated("Folder written by `sparcets fit`, to use on the page", "--explainer")
    ] = None,
    model: options.Model = None,
    output: options.Output = None,
    layout: options.Layout = None,
    classes: options.Classes = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
) -> None:
    """Start the studio, a local web application to explain series in the browser."""
    for package in ("fastapi", "uvicorn"):
        require_extra(package, "the studio", "studio")
    from sparcets.studio.app import serve

    own = options.own_model(model, output, layout, classes)
    for folder in explainer or []:
        _add(folder, workspace, device, model)
    serve(
        workspace,
        host=host,
        port=port,
        token=token,
        seed=seed,
        device=device,
        open_page=open_page,
        model=own,
        say=lambda line: typer.echo(line, err=True),
    )


def _add(folder: Path, workspace: Path, device: str, model: str | None) -> None:
    """Copy a fit into the workspace."""
    from sparcets.io.folders import inside
    from sparcets.methods.folder import CLASSIFIER, EXPLAINER, load_fit
    from sparcets.models.own_model import needs_code
    from sparcets.studio.workspace import Workspace, add_fit

    own = model if needs_code(inside(folder, CLASSIFIER)) else None  # --model may be for the page alone
    options.check_named(folder, own, "studio", "--explainer", folder)
    run, explainer = load_fit(folder, device=device, model=own)
    record = add_fit(Workspace(workspace), run, explainer, folder / CLASSIFIER, folder / EXPLAINER)
    typer.echo(f"explainer: {folder} is {record.id} in the workspace", err=True)


def serve(
    model: Annotated[
        Path, typer.Argument(help="Folder written by `sparcets fit`; a Python file of your own is named by --model.")
    ],
    own: options.NamedAgain = None,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 8766,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="SPARCETS_SERVE_TOKEN",
            help="Secret that requests must contain; by default a new one, which is printed. Other users of the "
            "machine can see options; use the variable or --token-file for a token of your own.",
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File that holds the token; it is made, readable for you alone, if there is none."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=256, help="Processes that explain, with one thread each.")] = 1,
    timeout: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds after which a request without an answer is refused.")
    ] = 30.0,
    device: options.Device = "auto",
) -> None:
    """Serve a fitted explainer to programs: POST /explain, with health checks, metrics and OpenAPI."""
    for package in ("fastapi", "uvicorn", "prometheus_client"):
        require_extra(package, "the server", "serve")
    from sparcets.server.app import serve as run

    options.check_named(model, own, "serve", model)
    run(
        model,
        own_model=own,
        host=host,
        port=port,
        token=token,
        token_file=token_file,
        workers=workers,
        seconds=timeout,
        device=device,
        say=lambda line: typer.echo(line, err=True),
    )
