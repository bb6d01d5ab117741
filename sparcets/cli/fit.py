"""``sparcets fit``: train a classifier and fit an explainer to it; ``sparcets export``: its generator as ONNX."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparcets.cli import options
from sparcets.cli.options import Many, repeated
from sparcets.core.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset

MODEL_OF_NUMBERS = (
    "A model that predicts numbers is your own: give --model model.onnx, or --model FILE.py:FUNCTION for a function "
    "that returns it."
)


def fit(
    dataset: options.Data,
    out: Annotated[Path, typer.Option(help="Folder for the classifier and the explainer.")],
    method: Annotated[str, typer.Option("--method", "-m", help="Explainer; see: sparcets list.")] = "sparcets",
    classifier: Annotated[
        str, typer.Option("--classifier", "-c", help="Architecture to train, or folder of a saved classifier.")
    ] = "bilstm",
    model: options.Model = None,
    output: options.Output = None,
    layout: options.Layout = None,
    classes: options.Classes = None,
    preset: Annotated[str, typer.Option(help="Preset of the settings: default, quick, paper or tiny.")] = "default",
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Fit for this target class only; required by the preset paper.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="Folder for checkpoints, from which an interrupted training is resumed."),
    ] = None,
    setting: Annotated[Many, repeated("Setting of the explainer, as key=value", "--set")] = None,
    classifier_setting: Annotated[Many, repeated("Setting of the classifier, as key=value", "--set-classifier")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the fit that the folder holds.")] = False,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Let other users of this machine read the new folder; else only you can, as it holds recordings.",
        ),
    ] = False,
    option: options.DataOptions = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Train a classifier, or take your own model, fit an explainer to it, and save both."""
    asked = options.Options(**locals())
    from sparcets import __version__
    from sparcets.core.settings import from_preset
    from sparcets.data.load import load_dataset
    from sparcets.methods import EXPLAINERS
    from sparcets.methods.folder import new_folder, write_fit
    from sparcets.training.device import resolve_device

    kind = EXPLAINERS.load(method)
    resolve_device(device)  # raises before any data are loaded
    given = (f"seed={seed}", f"device={device}", *(setting or []))
    config = from_preset(kind.config_class, preset, target).override(*given)
    own = options.own_model(model, output, layout, classes)
    of_data: dict[str, Any] = {"seed": seed, **options.parse_options(option)}
    if own is None:
        if of_data.get("task") == "regression":
            raise ConfigError(MODEL_OF_NUMBERS)
        build = _classifier_builder(asked)
    else:
        own.check_outside(out)
        if classifier != "bilstm" or classifier_setting:
            raise ConfigError("give --model for your own model, or --classifier for one to train, not both.")
    place = new_folder(out, force=force, shared=shared)
    data = load_dataset(dataset, **of_data)
    if own is None and data.task == "regression":
        raise ConfigError(f"the labels of {data.name!r} are numbers. {MODEL_OF_NUMBERS}")
    if own is not None:
        order = None if data.task == "regression" else own.class_names
        if order is not None and order != data.class_names and Path(dataset).is_file():
            of_data["class_names"] = list(order)  # labels follow the model's outputs
            data = load_dataset(dataset, **of_data)
        own = replace(own, task=data.task)
    with place as folder:  # a path that cannot be written shows before any training
        explained: Any = build(data) if own is None else own.load()
        explainer = kind(explained, config).fit(data, checkpoint=checkpoint)
        quality = _quality(explained, data)
        run = {
            "dataset": dataset,
            "dataset_options": of_data,
            "dataset_name": data.name,
            "split": data.split,
            "classifier": explained.architecture if own is None else own.name,
            **quality,
            "method": method,
            "config": config.to_dict(),
            "version": __version__,
        }
        known = {"model": explained, "X": data.X_train, "side": data.side_train}
        write_fit(folder, explained.save if own is None else partial(own.save, **known), explainer, run)
    if json:
        options.print_json({**run, "folder": str(out)})
        return
    measure, value = next(iter(quality.items()))
    quality_line = f"{measure.replace('_', ' ')} {'unknown' if value is None else f'{value:.3f}'}"
    lines = [f"{data!r}, split: {data.split}", f"{run['classifier']}: {quality_line}", explainer.summary()]
    named = "" if own is None or own.function is None else f" --model {model}"  # a folder runs no code by itself
    question = f"sparcets explain {out}{named} {_example(data, target)} --out run.npz"
    typer.echo("\n".join([*lines, f"saved to {out}; next: {question}"]))


def _quality(model: Any, data: Dataset) -> dict[str, float | None]:
    """Return how good the model is on test series: the share of right classes, or of the variance of the numbers."""
    side = data.side_test if model.takes_side else None
    if data.task == "classification":
        correct = model.predict(data.X_test, data.lengths_test, side=side) == data.y_test
        return {"test_accuracy": float(correct.mean())}
    from sparcets.evaluation.families import labels_of
    from sparcets.evaluation.judges import share_explained

    if len(data.X_test) < 2:
        return {"explained_test_variance": None}
    numbers = model.predict(data.X_test, data.lengths_test, side=side)
    return {"explained_test_variance": share_explained(numbers, labels_of(data.y_test))}


def _example(data: Dataset, target: str | None) -> str:
    """Return a question to ask next, as options."""
    if data.task == "classification":
        return f"--target {(target if target is not None else data.class_names[0])!r} --plots pictures"
    y = data.y_train.reshape(len(data.y_train), -1)
    of = f" --of {(data.output_names or ['0'])[0]!r}" if y.shape[1] > 1 else ""
    ranked = sorted(y[:, 0].tolist())
    return f"--at-least {ranked[3 * len(ranked) // 4]:.3g}{of}"


def _classifier_builder(asked: options.Options) -> Any:
    """Return a function that trains or returns the classifier; wrong settings raise before any data are loaded."""
    from sparcets.core.settings import ClassifierConfig
    from sparcets.models.network import TorchClassifier, load_classifier

    name = asked.classifier
    settings = asked.classifier_setting or []
    if Path(name).is_dir():
        if settings:
            raise ConfigError(f"--set-classifier needs an architecture to train, but {name} is a saved classifier.")
        saved = load_classifier(name, device=asked.device)
        return lambda data: saved
    start = ClassifierConfig.tiny() if asked.preset == "tiny" else ClassifierConfig()
    config = start.override(f"seed={asked.seed}", f"device={asked.device}", *settings)
    return TorchClassifier(name, config).fit


def export(
    model: Annotated[Path, typer.Argument(help="Folder written by `sparcets fit`.")],
    out: Annotated[Path, typer.Option(help="File to write (.onnx).")],
    own: options.NamedAgain = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Save a fitted generator as ONNX and compare it with torch; unlike explain, it does not check its answers."""
    from sparcets.io.files import file_to_write
    from sparcets.methods.adversarial import export_generator
    from sparcets.methods.folder import load_fit

    file_to_write(out)  # raises before anything is computed
    options.check_named(model, own, "export", model, "--out", out)
    _, explainer = load_fit(model, device=device, model=own)
    difference = export_generator(explainer, out)
    if json:
        options.print_json({"file": str(out), "bytes": out.stat().st_size, "largest_difference": difference})
        return
    typer.echo(f"saved to {out} ({options.in_bytes(out.stat().st_size)})")
    typer.echo(f"onnxruntime and torch differ by {difference:.1g} standard deviations at most")
