"""``sparcets export``: save a fitted generator as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.options import Device, Json, NamedAgain, check_named, in_bytes, print_json


def export(
    model: Annotated[Path, typer.Argument(help="Folder written by `sparcets fit`.")],
    out: Annotated[Path, typer.Option("--out", help="File to write (.onnx).")],
    own: NamedAgain = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Save a fitted generator as ONNX and compare it with torch; unlike explain, it does not check its answers."""
    from sparcets.io.files import file_to_write
    from sparcets.methods.export import export_generator
    from sparcets.methods.fit_folder import load_fit

    file_to_write(out)  # raises before anything is computed
    check_named(model, own, "export", model, "--out", out)
    _, explainer = load_fit(model, device=device, model=own)
    difference = export_generator(explainer, out)
    if json:
        print_json({"file": str(out), "bytes": out.stat().st_size, "largest_difference": difference})
        return
    typer.echo(f"saved to {out} ({in_bytes(out.stat().st_size)})")
    typer.echo(f"onnxruntime and torch differ by {difference:.1g} standard deviations at most")
