"""``sparcets serve``: answer requests of programs with a saved explainer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.fit import check_named
from sparcets.cli.options import Device, NamedAgain


def serve(
    model: Annotated[
        Path, typer.Argument(help="Folder written by `sparcets fit`; a Python file of your own is named by --model.")
    ],
    own: NamedAgain = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default that of this machine only.")
    ] = "127.0.0.1",
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
    device: Device = "auto",
) -> None:
    """Serve a fitted explainer to programs: POST /explain, with health checks, metrics and OpenAPI."""
    from sparcets.server.serve import serve as run

    check_named(model, own, ("serve", str(model)))
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
