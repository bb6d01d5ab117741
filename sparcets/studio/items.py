"""Items of the workspace as objects: data sets, the user's own model, and fits of ``sparcets fit`` that are added."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import CapabilityError
from sparcets.io.files import digest_of_json
from sparcets.io.folders import inside
from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord
from sparcets.studio.workspace import RECORD, Workspace, new_id
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.data.recordings import Recordings
    from sparcets.methods.base import BaseExplainer
    from sparcets.models.base import Classifier, Regressor
    from sparcets.models.own_model import OwnModel

SUFFIXES = (".csv", ".npz")
ARRAYS = "arrays.npz"  # the series of an uploaded file, as they were read
NEW = "new"  # folder of recordings that were added to a data set
CLASSIFIERS_ONLY = (
    "the studio explains classifiers only. Use sparcets fit -o task=regression and sparcets explain, or Python."
)
STUDIO = "sparcets studio"  # what to type with --model, if a workspace needs it


def load(workspace: Workspace, record: DatasetRecord) -> Dataset:
    """Read a data set of the workspace."""
    from sparcets.data.load import DATASETS, load_dataset, load_file

    if record.uploaded:
        folder = workspace.path("datasets", record.id)
        arrays = inside(folder, ARRAYS)  # beside an upload; the data of a fit are arrays themselves
        uploaded = inside(folder, record.source, named_by=folder / RECORD)
        return load_file(arrays if arrays.exists() else uploaded, seed=record.seed)
    DATASETS.location(record.source)  # raises for paths: no file outside the workspace is read
    return load_dataset(record.source, seed=record.seed)


def open_by_name(workspace: Workspace, name: str, seed: int) -> tuple[DatasetRecord, Dataset]:
    """Open a registered data set; opening it again returns the same record."""
    from sparcets.data.load import DATASETS, load_dataset

    DATASETS.location(name)  # raises for paths: no file outside the workspace is read
    known = [r for r in workspace.records(DatasetRecord) if r.source == name and not r.uploaded and r.seed == seed]
    dataset = load_dataset(name, seed=seed)
    if known:
        return known[0], dataset
    record = dataset_record(dataset, new_id(name), source=name, uploaded=False, seed=seed)
    workspace.add(record)
    return record, dataset


def new_files(workspace: Workspace, name: str) -> list[Path]:
    """Return the files of recordings that were added to a data set, in the order in which they were."""
    folder = inside(workspace.path("datasets", name), NEW)
    return sorted(inside(folder, file.name) for file in folder.glob("[0-9]*.npz"))


def load_new(file: Path, dataset: Dataset) -> Recordings:
    """Read recordings that were added to a data set."""
    from sparcets.data.recordings import load_recordings

    return load_recordings(file).like(features_of(dataset), dataset.n_steps, padded=dataset.lengths_train is not None)


def safe_name(filename: str) -> str:
    """Return a file name with safe characters only; reject paths and unknown suffixes.

    >>> safe_name("gait study (2).csv")
    'gait_study_2_.csv'
    """
    if "/" in filename or "\\" in filename or ".." in filename or filename.startswith("."):
        raise ApiError(422, "bad_filename", f"{filename!r} is a path; give only the name of a .csv or .npz file.")
    stem, dot, suffix = filename.rpartition(".")
    if f".{suffix.lower()}" not in SUFFIXES or not dot:
        raise ApiError(422, "bad_filename", f"{filename!r} cannot be uploaded; supported: {', '.join(SUFFIXES)}.")
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', stem)[:60] or 'data'}.{suffix.lower()}"


def dataset_record(dataset: Dataset, name: str, *, source: str, uploaded: bool, seed: int) -> DatasetRecord:
    """Return the record of a data set."""
    return DatasetRecord(id=name, source=source, uploaded=uploaded, seed=seed, **describe(dataset))


def describe(dataset: Dataset) -> dict[str, Any]:
    """Return the metadata of a data set."""
    from sparcets.core.series import Series

    X = dataset.X_train
    inside = Series(X, dataset.lengths_train).flat  # (steps, features)
    return {
        **{name: getattr(dataset, name) for name in ("name", "description", "split", "n_steps", "sampling_rate")},
        "n_train": len(dataset.X_train),
        "n_test": len(dataset.X_test),
        "class_names": list(dataset.class_names),
        "feature_names": list(features_of(dataset)),
        "units": None if dataset.units is None else list(dataset.units),
        "mutable": [True] * dataset.n_features if dataset.mutable is None else dataset.mutable.tolist(),
        "low": np.nan_to_num(np.fmin.reduce(inside)).tolist(),  # which ignores missing values
        "high": np.nan_to_num(np.fmax.reduce(inside)).tolist(),
        "n_missing": dataset.n_missing,
        "padded": dataset.lengths_test is not None,
    }


def features_of(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the features; f0, f1, … where they have none."""
    return dataset.feature_names or tuple(f"f{i}" for i in range(dataset.n_features))


def load_model(folder: Path, device: str, named: OwnModel | None) -> Classifier | Regressor:
    """Return a model of the workspace; of a Python file, only the one that the studio was started with is run."""
    from sparcets.models.own_model import check_named, load_any_model, needs_code

    code = named.source if named is not None and needs_code(folder) else None
    check_named(folder, code, STUDIO)
    return load_any_model(folder, device=device, model=code)


def add_fit(
    workspace: Workspace, run: dict[str, Any], explainer: BaseExplainer[Any], classifier: Path, fitted: Path
) -> ExplainerRecord:
    """Copy a fit into the workspace; one that is there already is left as it is.

    ``run`` is what its ``run.json`` says; the folders are those of the classifier and of the explainer.
    """
    from sparcets.models.own_model import is_own_model

    info = explainer.info_
    assert info is not None  # it is fitted
    if info.task == "regression":
        raise CapabilityError(f"{fitted.parent} predicts numbers; {CLASSIFIERS_ONLY}")
    digest = digest_of_json(run)[:8]
    known = [record for record in workspace.records(ExplainerRecord) if record.id == f"{explainer.method}-{digest}"]
    if known:
        return known[0]
    dataset = _add_dataset(workspace, run)
    same: dict[str, Any] = {"dataset": dataset.id, "preset": "default", "seed": explainer.config.seed, "seconds": 0.0}
    model = ClassifierRecord(
        id=f"fit-{digest}",
        architecture=str(run.get("classifier", "classifier")),
        test_accuracy=float(run.get("test_accuracy", float("nan"))),
        own=is_own_model(classifier),
        **same,
    )
    record = ExplainerRecord(
        id=f"{explainer.method}-{digest}", classifier=model.id, **described(explainer), method=explainer.method, **same
    )
    if model.id not in [other.id for other in workspace.records(ClassifierRecord)]:
        workspace.add(model, partial(_copy, classifier))
    workspace.add(record, partial(_copy, fitted))
    return record


def described(explainer: BaseExplainer[Any]) -> dict[str, Any]:
    """Return what the record of an explainer says of its fit."""
    info = explainer.info_
    return {"summary": explainer.summary(), "doubts": [] if info is None or info.model is None else info.model.findings}


def _copy(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder, dirs_exist_ok=True, symlinks=True)  # nothing from elsewhere is copied


def _add_dataset(workspace: Workspace, run: dict[str, Any]) -> DatasetRecord:
    """Return the data set of a fit: opened by its name, or the file as it was split for the fit."""
    from sparcets.data.load import DATASETS, load_dataset, save_dataset
    from sparcets.methods.folder import data_of_fit

    source, options = data_of_fit(run, "Fit again, on")
    seed = int(options.get("seed", 0))
    if source in DATASETS and set(options) <= {"seed"}:
        return open_by_name(workspace, source, seed)[0]
    dataset = load_dataset(source, **options)
    name = new_id(dataset.name)
    record = dataset_record(dataset, name, source=f"{name}.npz", uploaded=True, seed=seed)
    workspace.add(record, lambda folder: save_dataset(dataset, folder / record.source))
    return record
