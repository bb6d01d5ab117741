"""``sparcets evaluate``: all measures of a saved explanation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparcets.cli.options import DataOptions, Device, Json, Seed, check_named, parse_options, print_json, print_table
from sparcets.core.errors import ConfigError


def evaluate(
    explanation: Annotated[Path, typer.Argument(help="File saved by `sparcets explain --out` (.npz).")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", help="Data set of the queries; default: that of --model.")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            help="Folder written by `sparcets fit`, for its classifier and data set. If it was fitted to a Python file "
            "of your own, give the option again with FILE.py:FUNCTION: the file is run, and never without being named.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to save the scores to (.json).")] = None,
    option: DataOptions = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Evaluate an explanation: the paper's measures, agreement of other models, plausibility."""
    from sparcets.data.load import load_dataset
    from sparcets.evaluation.evaluate import evaluate as measure
    from sparcets.evaluation.scores import better, number
    from sparcets.io.explanations import load_explanation
    from sparcets.io.files import file_to_write
    from sparcets.methods.folder import data_asked_for, load_fitted_model

    if option and dataset is None:
        raise ConfigError("--option belongs to a data set: give --dataset too.")
    if out is not None:
        file_to_write(out)  # raises before anything is computed
    e = load_explanation(explanation)
    folder, own = _folder_and_code(model or [])
    run, classifier = None, None
    if folder is not None:
        check_named(folder, own, "evaluate", explanation, "--model", folder)
        run, classifier = load_fitted_model(folder, device=device, model=own)
    name, options = data_asked_for(run, dataset, seed)
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


def _folder_and_code(given: list[str]) -> tuple[Path | None, str | None]:
    """Return the folder of a fit and the Python file of its model, as --model named them."""
    code = [text for text in given if text.rpartition(":")[0].endswith(".py")]
    folders = [Path(text) for text in given if text not in code]
    if len(code) > 1 or len(folders) > 1 or (code and not folders):
        raise ConfigError(
            "--model names one folder of a fit, and once more FILE.py:FUNCTION if that was fitted to such a model; got "
            f"{', '.join(given)}."
        )
    return next(iter(folders), None), next(iter(code), None)
