"""``sparcets data``: describe and fetch data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparcets.cli.options import DataOptions, Json, Seed, parse_options, print_json, print_table

app = typer.Typer(help="Describe and fetch data sets.", no_args_is_help=True)


@app.command("info")
def info(
    name: Annotated[str, typer.Argument(help="Name of a data set, or path to a file.")],
    option: DataOptions = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Load a data set and describe it."""
    import numpy as np

    from sparcets.core.validation import default_feature_names
    from sparcets.data.dataset import label_table
    from sparcets.data.load import DATASETS, load_dataset, loader_options

    given = parse_options(option)
    dataset = load_dataset(name, **{"seed": seed, **given})
    heads, rows = label_table(dataset)
    labels: dict[str, Any] = {"classes": {name: counts for name, *counts in rows}}
    if dataset.task == "regression":
        known = ("unit", "training", "test")
        labels = {"numbers": {name: dict(zip(known, values, strict=True)) for name, *values in rows}}
    facts: dict[str, Any] = {
        "name": dataset.name,
        "description": dataset.description,
        "steps": dataset.n_steps,
        **labels,
        "features": list(dataset.feature_names or default_feature_names(dataset.n_features)),
        "mutable": [True] * dataset.n_features if dataset.mutable is None else dataset.mutable.tolist(),
        "units": None if dataset.units is None else list(dataset.units),
        "sampling_rate": dataset.sampling_rate,
        "lengths": None if dataset.lengths_train is None else [int(f(dataset.lengths_train)) for f in (np.min, np.max)],
        "split": dataset.split,
    }
    if name in DATASETS or Path(name).is_file():
        facts["options"] = loader_options(name) | given
    if json:
        print_json(facts)
        return
    typer.echo(repr(dataset))
    if dataset.description:
        typer.echo(dataset.description)
    print_table(heads, rows)
    named = zip(facts["features"], facts["mutable"], strict=True)
    typer.echo("features: " + ", ".join(name if free else f"{name} (immutable)" for name, free in named))
    if facts["units"] is not None:
        typer.echo(f"units: {', '.join(dict.fromkeys(facts['units']))}")
    if facts["sampling_rate"] is not None:
        typer.echo(f"sampling rate: {facts['sampling_rate']:g} Hz")
    if facts["lengths"] is not None:
        typer.echo(f"series of unequal length: {facts['lengths'][0]} to {facts['lengths'][1]} steps, padded")
    typer.echo(f"split: {facts['split']}")
    if "options" in facts:
        typer.echo("options: " + ", ".join(f"{k}={v}" for k, v in facts["options"].items()))


@app.command("fetch")
def fetch(
    name: Annotated[str, typer.Argument(help="Name of the data set.")],
    url: Annotated[str | None, typer.Option(help="Address to fetch from instead of the authors' repository.")] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder to save to instead of SPARCETS_DATA.")] = None,
    json: Json = False,
) -> None:
    """Download a data set; an interrupted download is resumed, and the file is checked against a digest."""
    from sparcets.core.progress import progress_bar
    from sparcets.data.fetch import fetch as download

    with progress_bar(f"fetching {name}", 100) as bar:
        done_before = 0.0

        def moved(done: int, total: int | None) -> None:
            nonlocal done_before
            share = 100 * done / total if total else 0.0
            bar.advance(share - done_before, f"{done / 1e6:.1f} MB")
            done_before = share

        path = download(name, url=url, folder=folder, progress=moved)
    if json:
        print_json({"name": name, "path": str(path)})
    else:
        typer.echo(f"{name} is in {path}")
