"""``sparcets fit``: train a classifier and fit an explainer to it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparcets.cli.fit_folder import new_folder, write_fit
from sparcets.cli.model_options import Classes, Layout, Model, Output, own_model
from sparcets.cli.options import Data, DataOptions, Device, Json, Seed, parse_options, print_json
from sparcets.errors import ConfigError

if TYPE_CHECKING:
    from sparcets.classifiers.own_model import OwnModel


def fit(
    dataset: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for the classifier and the explainer.")],
    method: Annotated[str, typer.Option("--method", "-m", help="Explainer; see: sparcets list.")] = "sparcets",
    classifier: Annotated[
        str, typer.Option("--classifier", "-c", help="Architecture to train, or folder of a saved classifier.")
    ] = "bilstm",
    model: Model = None,
    output: Output = None,
    layout: Layout = None,
    classes: Classes = None,
    preset: Annotated[str, typer.Option(help="Preset of the settings: default, paper or tiny.")] = "default",
    target: Annotated[
        str | None, typer.Option("--target", "-t", help="Fit for this target class only; required by the preset paper.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option("--checkpoint", help="Folder for checkpoints, from which an interrupted training is resumed."),
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="Setting of the explainer, as key=value; may be repeated.")
    ] = None,
    classifier_setting: Annotated[
        list[str] | None,
        typer.Option("--set-classifier", help="Setting of the classifier, as key=value; may be repeated."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the fit that the folder holds.")] = False,
    option: DataOptions = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Train a classifier, or take your own, fit an explainer to it, and save both."""
    from sparcets import __version__
    from sparcets.config.presets import from_preset
    from sparcets.datasets.load import load_dataset
    from sparcets.explainers import EXPLAINERS
    from sparcets.training.device import resolve_device

    kind = EXPLAINERS.load(method)
    resolve_device(device)  # raises before any data are loaded
    start = from_preset(kind.config_class, preset, target)
    config = start.override(f"seed={seed}", f"device={device}", *(setting or []))
    own = own_model(model, output, layout, classes)
    if own is not None:
        own.check_outside(out)
    if own is not None and (classifier != "bilstm" or classifier_setting):
        raise ConfigError("give --model for your own model, or --classifier for one to train, not both.")
    build = _classifier_builder(classifier, classifier_setting, preset, seed, device, own)
    options = {"seed": seed, **parse_options(option)}
    place = new_folder(out, force=force)
    data = load_dataset(dataset, **options)
    with place as folder:  # a path that cannot be written shows before any training
        explained = build(data)
        correct = explained.predict(data.X_test, data.lengths_test) == data.y_test
        explainer = kind(explained, config).fit(data, checkpoint=checkpoint)
        run = {
            "dataset": dataset,
            "dataset_options": options,
            "dataset_name": data.name,
            "split": data.split,
            "classifier": explained.architecture if own is None else own.name,
            "test_accuracy": float(correct.mean()),
            "method": method,
            "config": config.to_dict(),
            "version": __version__,
        }
        save = explained.save if own is None else partial(own.save, model=explained, X=data.X_train)
        write_fit(folder, save, explainer, run)
    if json:
        print_json({**run, "folder": str(out)})
        return
    typer.echo(f"{data!r}, split: {data.split}")
    typer.echo(f"{run['classifier']}: test accuracy {correct.mean():.3f}")
    typer.echo(explainer.summary())
    example = target if target is not None else data.class_names[0]
    typer.echo(f"saved to {out}; next: sparcets explain {out} --target {example!r} --out run.npz")


def _classifier_builder(
    name: str, settings: list[str] | None, preset: str, seed: int, device: str, own: OwnModel | None
) -> Any:
    """Return a function that trains or returns the classifier; wrong settings raise before any data are loaded."""
    from sparcets.classifiers.torch_classifier import TorchClassifier, load_classifier
    from sparcets.config.models import ClassifierConfig

    if own is not None:
        loaded = own.load()
        return lambda data: loaded
    if Path(name).is_dir():
        if settings:
            raise ConfigError(f"--set-classifier needs an architecture to train, but {name} is a saved classifier.")
        saved = load_classifier(name, device=device)
        return lambda data: saved
    start = ClassifierConfig.tiny() if preset == "tiny" else ClassifierConfig()
    model = TorchClassifier(name, start.override(f"seed={seed}", f"device={device}", *(settings or [])))
    return model.fit
