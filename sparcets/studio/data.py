"""Data sets of the workspace: opened by name, or uploaded and parsed without ever leaving it."""

from __future__ import annotations

import re
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from sparcets.errors import DataError, SparcetsError
from sparcets.studio.errors import ApiError
from sparcets.studio.limits import MIB, Limits
from sparcets.studio.models import DatasetRecord
from sparcets.studio.workspace import Workspace, new_id, write_record

if TYPE_CHECKING:
    from sparcets.datasets.base import Dataset

T = TypeVar("T")
Run = Callable[[Callable[[], T]], Awaitable[T]]  # runs a function where it does not hold up other requests
SUFFIXES = (".csv", ".npz")


def load(workspace: Workspace, record: DatasetRecord) -> Dataset:
    """Read a data set of the workspace."""
    from sparcets.datasets.files import load_file
    from sparcets.datasets.load import load_dataset

    if record.uploaded:
        return load_file(workspace.path("datasets", record.id) / record.source, seed=record.seed)
    return load_dataset(record.source, seed=record.seed)


def open_by_name(workspace: Workspace, name: str, seed: int) -> tuple[DatasetRecord, Dataset]:
    """Open a data set of the registry; a second time it is the same."""
    from sparcets.datasets.load import DATASETS, load_dataset

    DATASETS.location(name)  # a path is no name: nothing outside the workspace is read
    known = [r for r in workspace.datasets() if r.source == name and not r.uploaded and r.seed == seed]
    dataset = load_dataset(name, seed=seed)
    if known:
        return known[0], dataset
    record = describe(dataset, new_id(name), source=name, uploaded=False, seed=seed)
    with workspace.making("datasets", record.id) as folder:
        write_record(folder, record)
    return record, dataset


async def receive(
    workspace: Workspace, filename: str, chunks: AsyncIterator[bytes], run: Run[Dataset], limits: Limits, seed: int
) -> tuple[DatasetRecord, Dataset]:
    """Write an upload into the workspace, and read it there.

    Parameters
    ----------
    workspace
        Where it goes.
    filename
        As the user calls it; a name, no path.
    chunks
        Its bytes.
    run
        Runs the parsing.
    limits
        How large it may be.
    seed
        Of the split into training and test, where the file brings none.
    """
    name = safe_name(filename)
    with workspace.making("datasets", new_id(Path(name).stem)) as folder:
        file, size = folder / name, 0
        with file.open("wb") as opened:
            async for chunk in chunks:
                size += len(chunk)
                if size > limits.upload_bytes:
                    raise too_large(limits.upload_bytes)
                opened.write(chunk)
        dataset = await run(lambda: parse(file, limits, seed))
        record = describe(dataset, folder.name[1:], source=name, uploaded=True, seed=seed)
        write_record(folder, record)
    return record, dataset


def safe_name(filename: str) -> str:
    """Return a file name that is one, and nothing else.

    >>> safe_name("gait study (2).csv")
    'gait_study_2_.csv'
    """
    if "/" in filename or "\\" in filename or ".." in filename or filename.startswith("."):
        raise ApiError(422, "bad_filename", f"{filename!r} is a path; give the name of a .csv or .npz file alone.")
    stem, dot, suffix = filename.rpartition(".")
    if f".{suffix.lower()}" not in SUFFIXES or not dot:
        raise ApiError(422, "bad_filename", f"{filename!r} is of no kind that can be uploaded: {', '.join(SUFFIXES)}.")
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '_', stem)[:60] or 'data'}.{suffix.lower()}"


def too_large(limit: int) -> ApiError:
    """Say that something is larger than it may be."""
    return ApiError(413, "too_large", f"that is more than the {limit / MIB:.4g} MiB that are accepted here.")


def parse(file: Path, limits: Limits, seed: int) -> Dataset:
    """Read an uploaded file; complaints name it as the user does."""
    from sparcets.datasets.files import load_file

    if zipfile.is_zipfile(file):  # what is packed small may be huge
        with zipfile.ZipFile(file) as packed:
            if sum(member.file_size for member in packed.infolist()) > limits.unpacked_bytes:
                raise too_large(limits.unpacked_bytes)
    try:
        return load_file(file, seed=seed)
    except SparcetsError as error:
        raise type(error)(str(error).replace(f"{file.parent}/", "").replace(str(file.parent), "")) from error
    except MemoryError:
        raise DataError(f"{file.name} does not fit into the memory of this machine.") from None


def describe(dataset: Dataset, name: str, *, source: str, uploaded: bool, seed: int) -> DatasetRecord:
    """Return what the page needs to know of a data set."""
    from sparcets.arrays import steps_within

    X = dataset.X_train
    inside = X[steps_within(dataset.lengths_train, len(X), X.shape[1])]  # (steps, features)
    labels = np.concatenate([dataset.y_train, dataset.y_test])
    names = dataset.feature_names or tuple(f"f{i}" for i in range(dataset.n_features))
    return DatasetRecord(
        id=name,
        name=dataset.name,
        source=source,
        uploaded=uploaded,
        seed=seed,
        description=dataset.description,
        split=dataset.split,
        n_train=len(dataset.X_train),
        n_test=len(dataset.X_test),
        n_steps=dataset.n_steps,
        class_names=list(dataset.class_names),
        class_counts=np.bincount(labels, minlength=dataset.n_classes).tolist(),
        feature_names=list(names),
        units=None if dataset.units is None else list(dataset.units),
        sampling_rate=dataset.sampling_rate,
        mutable=[True] * dataset.n_features if dataset.mutable is None else dataset.mutable.tolist(),
        low=inside.min(0).tolist(),
        high=inside.max(0).tolist(),
        padded=dataset.lengths_test is not None,
    )
