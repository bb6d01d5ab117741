"""``sparcets fit``: train a classifier and fit an explainer to it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparcets.cli.options import (
    Address,
    Classes,
    Data,
    DataOptions,
    Device,
    Engine,
    Json,
    Layout,
    Model,
    Output,
    Seed,
    Workers,
    own_model,
    parse_options,
    print_json,
)
from sparcets.core.errors import ConfigError, FileFormatError, SparcetsError, StorageError
from sparcets.methods import fit_folder
from sparcets.methods.fit_folder import CLASSIFIER, EXPLAINER, RUN, data_of_fit, digests_of, read_run

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.methods.base import BaseExplainer
    from sparcets.models.base import Classifier, Regressor


__all__ = ["CLASSIFIER", "EXPLAINER", "check_named", "data_of", "load_fit", "load_model", "new_folder", "write_fit"]


def load_fit(
    folder: Path, *, device: str, model: str | None = None, command: Sequence[str] = ()
) -> tuple[dict[str, Any], BaseExplainer[Any]]:
    """Return ``run.json`` and the explainer of a fit.

    Parameters
    ----------
    folder
        Written by ``sparcets fit``.
    device
        Of the networks.
    model
        What the user named by --model, which may be run, or None.
    command
        What the user typed, without --model, for the message that says what to type: ``("explain", "model")``.
    """
    check_named(folder, model, command)
    return fit_folder.load_fit(folder, device=device, model=model)


def load_model(
    folder: Path, *, device: str, model: str | None, command: Sequence[str]
) -> tuple[dict[str, Any], Classifier | Regressor]:
    """Return ``run.json`` and the explained model of a fit; the parameters are those of :func:`load_fit`."""
    check_named(folder, model, command)
    return fit_folder.load_fitted_model(folder, device=device, model=model)


def check_named(folder: Path, model: str | None, command: Sequence[str]) -> None:
    """Raise, with what to type, if a fit needs a Python file that the user has not named."""
    from sparcets.io.folders import inside
    from sparcets.models import own_model

    own_model.check_named(inside(folder, CLASSIFIER), model, shlex.join(["sparcets", *command]))


def new_folder(folder: Path, *, force: bool, shared: bool = False) -> AbstractContextManager[Path]:
    """Return a context that yields a temporary folder, which replaces ``folder`` when the block ends.

    A fit holds recordings, so that only its owner can read it, unless it is to be shared, or replaces one that others
    could read. Raises StorageError, before anything is written, if the folder holds a fit that may not be replaced.
    """
    from sparcets.io.folders import atomic_folder, is_open

    _check_is_fit(folder)
    found = [name for name in (RUN, CLASSIFIER, EXPLAINER) if (folder / name).exists()]
    if found and not force:
        raise StorageError(
            f"{folder} holds a fit already ({', '.join(found)}). Choose another folder, or replace it with --force."
        )
    return atomic_folder(folder, private=not (shared or is_open(folder / RUN)), check=_check_is_fit)


def _check_is_fit(folder: Path) -> None:
    """Raise if something in a folder has the name of a part of a fit and is none, or holds somebody's files."""
    from sparcets.io.files import is_plain_file
    from sparcets.methods.folder import FILES as EXPLAINER_FILES
    from sparcets.models.network import FILES as CLASSIFIER_FILES
    from sparcets.models.own_model import is_own_model, others_than_model

    model, explainer = folder / CLASSIFIER, folder / EXPLAINER
    others: list[Path] = []
    if model.is_symlink() or model.exists():
        others += others_than_model(model) if is_own_model(model) else CLASSIFIER_FILES.others(model)
    if explainer.is_symlink() or explainer.exists():
        others += EXPLAINER_FILES.others(explainer)
    if os.path.lexists(run := folder / RUN) and not others:
        try:
            if not is_plain_file(run):
                raise FileFormatError("a link, or no file")
            if not explainer.exists():  # beside one, it may be damaged
                read_run(folder)
        except FileFormatError:
            others = [run]
    if others:
        more = "" if len(others) == 1 else f" and {len(others) - 1} more"
        raise StorageError(f"{others[0]}{more} is in the way: it is not of a fit. Choose another folder, or move it.")


def write_fit(folder: Path, save: Callable[[Path], object], explainer: BaseExplainer[Any], run: dict[str, Any]) -> None:
    """Write classifier, by ``save``, explainer and ``run.json`` into an empty folder."""
    from sparcets.data.files import digest_of_data
    from sparcets.io.files import write_json

    save(folder / CLASSIFIER)
    explainer.save(folder / EXPLAINER, shared=True)  # as open as the folder, which its owner makes private
    digest = digest_of_data(str(run["dataset"]))
    data = {} if digest is None else {"dataset_digest": digest}
    write_json(folder / RUN, {**data, **run, "parts": digests_of(folder)})


def data_of(run: dict[str, Any] | None, dataset: str | None, seed: int) -> tuple[str | None, dict[str, Any]]:
    """Return name and options of the data set: those of the fit, unless another one is given.

    Parameters
    ----------
    run
        ``run.json`` of the fit, or None.
    dataset, seed
        Data set that was asked for, or None, and the seed of its split.
    """
    if run is None:
        return dataset, {"seed": seed}
    if dataset is None:
        return data_of_fit(run)
    own, options = str(run["dataset"]), run["dataset_options"]
    if dataset == own or Path(dataset).resolve() == Path(own).resolve():
        return dataset, {name: value for name, value in options.items() if name not in ("path", "name")}
    return dataset, {"seed": seed, **{name: options[name] for name in ("task",) if name in options}}


MODEL_OF_NUMBERS = (
    "A model that predicts numbers is your own: give --model model.onnx, or --model FILE.py:FUNCTION for a function "
    "that returns it."
)


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
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            help="regression, if your own model and the labels are numbers; the same as --option task=regression.",
        ),
    ] = None,
    preset: Annotated[str, typer.Option(help="Preset of the settings: default, quick, paper or tiny.")] = "default",
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
    missing: Annotated[
        str | None,
        typer.Option("--missing", help="What the classifier gets for missing values: refuse, forward or mean."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the fit that the folder holds.")] = False,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Let other users of this machine read the new folder; else only you can, as it holds recordings.",
        ),
    ] = False,
    option: DataOptions = None,
    seed_count: Annotated[
        int, typer.Option(help="Number of fits with consecutive seeds, into subfolders seed-0, seed-1, …", min=1)
    ] = 1,
    workers: Workers = None,
    engine: Engine = "local",
    address: Address = None,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Train a classifier, or take your own model, fit an explainer to it, and save both.

    Several fits, by --seed-count, run in several processes or on a cluster.
    """
    asked: dict[str, Any] = {
        "dataset": dataset,
        "method": method,
        "classifier": classifier,
        "model": model,
        "output": output,
        "layout": layout,
        "classes": classes,
        "task": task,
        "preset": preset,
        "target": target,
        "setting": setting,
        "classifier_setting": classifier_setting,
        "missing": missing,
        "force": force,
        "shared": shared,
        "option": option,
        "device": device,
    }
    if seed_count == 1:
        if workers is not None or engine != "local" or address is not None:
            raise ConfigError("--workers, --engine and --address are for several fits: give --seed-count too.")
        run, lines = fit_one(out=out, checkpoint=checkpoint, seed=seed, **asked)
        if json:
            print_json({**run, "folder": str(out)})
            return
        typer.echo("\n".join(lines))
        return
    _fit_seeds(range(seed, seed + seed_count), out, checkpoint, asked, engine, address, workers, json)


def _fit_seeds(
    seeds: range,
    out: Path,
    checkpoint: Path | None,
    asked: dict[str, Any],
    engine: str,
    address: str | None,
    workers: int | None,
    json: bool,
) -> None:
    """Fit once per seed, side by side, and print what became of each."""
    from sparcets.io.engines import make_engine

    runs: dict[int, dict[str, Any]] = {}
    errors: dict[int, Exception] = {}
    with make_engine(engine, address=address, device=asked["device"]) as place:
        for seed, result in place.map_unordered(partial(_fit_seed, out, checkpoint, asked), seeds, workers=workers):
            if isinstance(result, Exception):
                errors[seed] = result
                continue
            run, lines = result
            runs[seed] = {**run, "folder": str(_folder(out, seed))}
            typer.echo(f"{_folder(out, seed)}: {lines[1]}", err=json)
    if not runs and isinstance(first := next(iter(errors.values())), SparcetsError):
        raise first
    for seed, error in errors.items():
        typer.echo(f"{_folder(out, seed)}: failed: {error}", err=True)
    if json:
        print_json([runs[seed] for seed in sorted(runs)])
    if errors:
        raise typer.Exit(1)


def _folder(out: Path, seed: int) -> Path:
    return out / f"seed-{seed}"


def _fit_seed(out: Path, checkpoint: Path | None, asked: dict[str, Any], seed: int) -> Any:
    """Fit with one of several seeds; called in a worker."""
    place = None if checkpoint is None else _folder(checkpoint, seed)
    return fit_one(out=_folder(out, seed), checkpoint=place, seed=seed, **asked)


def fit_one(
    *,
    dataset: str,
    out: Path,
    method: str,
    classifier: str,
    model: str | None,
    output: str | None,
    layout: str | None,
    classes: str | None,
    task: str | None,
    preset: str,
    target: str | None,
    checkpoint: Path | None,
    setting: list[str] | None,
    classifier_setting: list[str] | None,
    missing: str | None,
    force: bool,
    shared: bool,
    option: list[str] | None,
    seed: int,
    device: str,
) -> tuple[dict[str, Any], list[str]]:
    """Fit as the options of the command say; return what ``run.json`` holds, and lines to print."""
    from sparcets import __version__
    from sparcets.core.settings import from_preset
    from sparcets.data.load import load_dataset
    from sparcets.methods import EXPLAINERS
    from sparcets.training.device import resolve_device

    kind = EXPLAINERS.load(method)
    resolve_device(device)  # raises before any data are loaded
    start = from_preset(kind.config_class, preset, target)
    config = start.override(f"seed={seed}", f"device={device}", *(setting or []))
    own = own_model(model, output, layout, classes)
    if own is not None:
        own.check_outside(out)
    if own is not None and (classifier != "bilstm" or classifier_setting or missing):
        raise ConfigError(
            "give --model for your own model, or --classifier for one to train, not both (--missing is of the latter)."
        )
    settings = [*(classifier_setting or []), *([] if missing is None else [f"missing={missing}"])]
    options = {"seed": seed, **parse_options(option), **({} if task is None else {"task": task})}
    if own is None and options.get("task") == "regression":
        raise ConfigError(MODEL_OF_NUMBERS)
    if own is None:
        build = _classifier_builder(classifier, settings, preset, seed, device)
    place = new_folder(out, force=force, shared=shared)
    data = load_dataset(dataset, **options)
    order = None if own is None or data.task == "regression" else own.class_names
    if order is not None and order != data.class_names and Path(dataset).is_file():
        data = load_dataset(dataset, **(options | {"class_names": list(order)}))  # labels follow the model's outputs
        options["class_names"] = list(order)
    if own is not None:
        own = replace(own, task=data.task)
    elif data.task == "regression":
        raise ConfigError(f"the labels of {data.name!r} are numbers. {MODEL_OF_NUMBERS}")
    with place as folder:  # a path that cannot be written shows before any training
        explained: Any = build(data) if own is None else own.load()
        explainer = kind(explained, config).fit(data, checkpoint=checkpoint)
        quality = _quality(explained, data)
        run = {
            "dataset": dataset,
            "dataset_options": options,
            "dataset_name": data.name,
            "split": data.split,
            "classifier": explained.architecture if own is None else own.name,
            **quality,
            "method": method,
            "config": config.to_dict(),
            "version": __version__,
        }
        save = (
            explained.save if own is None else partial(own.save, model=explained, X=data.X_train, side=data.side_train)
        )
        write_fit(folder, save, explainer, run)
    measure, value = next(iter(quality.items()))
    quality_line = f"{measure.replace('_', ' ')} {'unknown' if value is None else f'{value:.3f}'}"
    lines = [f"{data!r}, split: {data.split}", f"{run['classifier']}: {quality_line}", explainer.summary()]
    named = "" if own is None or own.function is None else f" --model {model}"  # a folder runs no code by itself
    return run, [*lines, f"saved to {out}; next: sparcets explain {out}{named} {_example(data, target)} --out run.npz"]


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


def _classifier_builder(name: str, settings: list[str], preset: str, seed: int, device: str) -> Any:
    """Return a function that trains or returns the classifier; wrong settings raise before any data are loaded."""
    from sparcets.core.settings import ClassifierConfig
    from sparcets.models.network import TorchClassifier, load_classifier

    if Path(name).is_dir():
        if settings:
            raise ConfigError(
                f"--set-classifier and --missing need an architecture to train, but {name} is a saved classifier."
            )
        saved = load_classifier(name, device=device)
        return lambda data: saved
    start = ClassifierConfig.tiny() if preset == "tiny" else ClassifierConfig()
    model = TorchClassifier(name, start.override(f"seed={seed}", f"device={device}", *settings))
    return model.fit
