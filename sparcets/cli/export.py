"""``sparcets export``: the fitted generator as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.options import Device, Json, in_bytes, print_json


def export(
    model: Annotated[Path, typer.Argument(help="Folder that `sparcets fit` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="File to write (.onnx).")],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Write the fitted generator as ONNX, compared with torch; the check by the classifier stays with `explain`."""
    from sparcets.classifiers.torch_classifier import load_classifier
    from sparcets.explainers.export import export_generator
    from sparcets.explainers.load import load

    explainer = load(model / "explainer", classifier=load_classifier(model / "classifier", device=device))
    difference = export_generator(explainer, out)
    if json:
        print_json({"file": str(out), "bytes": out.stat().st_size, "largest_difference": difference})
        return
    typer.echo(f"saved to {out} ({in_bytes(out.stat().st_size)})")
    typer.echo(f"onnxruntime and torch differ by {difference:.1g} standard deviations at most")
