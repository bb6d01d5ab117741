"""``sparcets evaluate``: all measures of a saved explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.fit_folder import data_of, load_fitted_model
from sparcets.cli.options import DataOptions, Device, Json, Seed, parse_options, print_json, print_table
from sparcets.errors import ConfigError


def evaluate(
    explanation: Annotated[Path, typer.Argument(help="File saved by `sparcets explain --out` (.npz).")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="Data set of the queries; default: that of --model.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-m", help="Folder written by `sparcets fit`, for its classifier and data set."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to save the scores to (.json).")] = None,
    option: DataOptions = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Evaluate an explanation: the paper's measures, agreement of other models, plausibility."""
    from sparcets.datasets.load import load_dataset
    from sparcets.evaluation.evaluate import evaluate as measure
    from sparcets.evaluation.scores import better, number
    from sparcets.explanation.files import load_explanation

    if option and dataset is None:
        raise ConfigError("--option belongs to a data set: give --dataset too.")
    e = load_explanation(explanation)
    run, classifier = (None, None) if model is None else load_fitted_model(model, device=device)
    name, options = data_of(run, dataset, seed)
    data = None if name is None else load_dataset(name, **{**options, **parse_options(option)})
    scores = measure(e, data, classifier=classifier, device=device, seed=seed)
    if out is not None:
        scores.save(out)
    if json:
        print_json({key: value for key, value in scores.to_dict().items() if key != "per_query"})
        return
    numbers = ("mean", "std", "low", "high")
    lines = [
        (name, *(number(s[key]) for key in numbers), int(s["n"]), better(name)) for name, s in scores.summary.items()
    ]
    print_table(["measure", *numbers, "n", "better"], lines)
    for remark in scores.remarks():
        typer.echo(remark)
    if out is not None:
        typer.echo(f"saved to {out}")
