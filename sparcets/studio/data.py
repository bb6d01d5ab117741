"""Data sets of the workspace: opened by name, or loaded as they were uploaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from sparcets.io.folders import inside
from sparcets.studio.models import DatasetRecord
from sparcets.studio.reader import describe, features_of
from sparcets.studio.workspace import RECORD, Workspace, new_id, write_record
from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.data.recordings import Recordings

SUFFIXES = (".csv", ".npz")
ARRAYS = "arrays.npz"  # the series of an uploaded file, as they were read
NEW = "new"  # folder of recordings that were added to a data set


def load(workspace: Workspace, record: DatasetRecord) -> Dataset:
    """Read a data set of the workspace."""
    from sparcets.data.files import load_file
    from sparcets.data.load import DATASETS, load_dataset

    if record.uploaded:
        folder = workspace.path("datasets", record.id)
        arrays = inside(folder, ARRAYS)  # of earlier versions, there is only the uploaded file
        uploaded = inside(folder, record.source, named_by=folder / RECORD)
        return load_file(arrays if arrays.exists() else uploaded, seed=record.seed)
    DATASETS.location(record.source)  # raises for paths: no file outside the workspace is read
    return load_dataset(record.source, seed=record.seed)


def open_by_name(workspace: Workspace, name: str, seed: int) -> tuple[DatasetRecord, Dataset]:
    """Open a registered data set; opening it again returns the same record."""
    from sparcets.data.load import DATASETS, load_dataset

    DATASETS.location(name)  # raises for paths: no file outside the workspace is read
    known = [r for r in workspace.datasets() if r.source == name and not r.uploaded and r.seed == seed]
    dataset = load_dataset(name, seed=seed)
    if known:
        return known[0], dataset
    record = dataset_record(dataset, new_id(name), source=name, uploaded=False, seed=seed)
    with workspace.create("datasets", record.id) as folder:
        write_record(folder, record)
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
