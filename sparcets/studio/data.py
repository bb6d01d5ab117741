"""Data sets of the workspace: opened by name, or uploaded into it and parsed there."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
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
    from sparcets.datasets.recordings import Recordings
    from sparcets.studio.service import StudioService

T = TypeVar("T")
Run = Callable[[Callable[[], T]], Awaitable[T]]  # runs a function without blocking other requests
SUFFIXES = (".csv", ".npz")
NEW = "new"  # folder of recordings that were added to a data set


def load(workspace: Workspace, record: DatasetRecord) -> Dataset:
    """Read a data set of the workspace."""
    from sparcets.datasets.files import load_file
    from sparcets.datasets.load import load_dataset

    if record.uploaded:
        return load_file(workspace.path("datasets", record.id) / record.source, seed=record.seed)
    return load_dataset(record.source, seed=record.seed)


def open_by_name(workspace: Workspace, name: str, seed: int) -> tuple[DatasetRecord, Dataset]:
    """Open a registered data set; opening it again returns the same record."""
    from sparcets.datasets.load import DATASETS, load_dataset

    DATASETS.location(name)  # raises for paths: no file outside the workspace is read
    known = [r for r in workspace.datasets() if r.source == name and not r.uploaded and r.seed == seed]
    dataset = load_dataset(name, seed=seed)
    if known:
        return known[0], dataset
    record = dataset_record(dataset, new_id(name), source=name, uploaded=False, seed=seed)
    with workspace.create("datasets", record.id) as folder:
        write_record(folder, record)
    return record, dataset


async def receive(
    workspace: Workspace, filename: str, chunks: AsyncIterator[bytes], run: Run[Dataset], limits: Limits, seed: int
) -> tuple[DatasetRecord, Dataset]:
    """Write an uploaded file into the workspace and load it.

    Parameters
    ----------
    workspace
        Where the file is stored.
    filename
        Name of the file, without a path.
    chunks
        Content of the file.
    run
        Runs the parser without blocking other requests.
    limits
        Maximum sizes.
    seed
        Seed of the train/test split if the file defines none.
    """
    name = safe_name(filename)
    with workspace.create("datasets", new_id(Path(name).stem)) as folder:
        file, size = folder / name, 0
        with file.open("wb") as opened:
            async for chunk in chunks:
                size += len(chunk)
                if size > limits.upload_bytes:
                    raise too_large(limits.upload_bytes)
                opened.write(chunk)
        dataset = await run(lambda: parse(file, limits, seed))
        record = dataset_record(dataset, folder.name, source=name, uploaded=True, seed=seed)
        write_record(folder, record)
    return record, dataset


def new_files(workspace: Workspace, name: str) -> list[Path]:
    """Return the files of recordings that were added to a data set, in the order in which they were."""
    return sorted((workspace.path("datasets", name) / NEW).glob("[0-9]*.npz"))


async def receive_new(
    workspace: Workspace, name: str, filename: str, chunks: AsyncIterator[bytes], service: StudioService
) -> int:
    """Write recordings without labels to a data set, and return their number.

    Parameters
    ----------
    workspace, name
        Where the data set is.
    filename, chunks
        Name and content of the file.
    service
        Has the data set, which the recordings must be like, and runs the parser.
    """
    file_name = safe_name(filename)
    folder = workspace.path("datasets", name) / NEW
    with tempfile.TemporaryDirectory(dir=workspace.folder, prefix=".upload-") as temporary:
        file, size = Path(temporary, file_name), 0
        with file.open("wb") as opened:
            async for chunk in chunks:
                size += len(chunk)
                if size > service.limits.upload_bytes:
                    raise too_large(service.limits.upload_bytes)
                opened.write(chunk)
        return await service.run(lambda: _add_new(file, folder, service.dataset(name), service.limits))


def _add_new(file: Path, folder: Path, dataset: Dataset, limits: Limits) -> int:
    """Check recordings, and write them as the next file of the folder."""
    from sparcets.npz import write_npz
    from sparcets.storage import atomic_path

    check_unpacked(file, limits)
    with without_folder(file):
        found = load_new(file, dataset)
    arrays = {"X": found.X, "y": found.labels, "ids": found.ids, "subjects": found.subjects, "lengths": found.lengths}
    arrays["feature_names"] = np.array(found.feature_names)
    folder.mkdir(exist_ok=True)
    number = len(list(folder.glob("[0-9]*.npz")))
    with atomic_path(folder / f"{number:05d}-{file.stem}.npz") as temporary, temporary.open("wb") as opened:
        write_npz(opened, {key: array for key, array in arrays.items() if array is not None})
    return len(found.X)


def load_new(file: Path, dataset: Dataset) -> Recordings:
    """Read recordings that were added to a data set."""
    from sparcets.datasets.recordings import load_recordings

    return load_recordings(file).like(features_of(dataset), dataset.n_steps, padded=dataset.lengths_train is not None)


def features_of(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the features; f0, f1, … where they have none."""
    return dataset.feature_names or tuple(f"f{i}" for i in range(dataset.n_features))


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


def too_large(limit: int) -> ApiError:
    """Return the error for a request body or file above a size limit."""
    return ApiError(413, "too_large", f"the request is larger than the limit of {limit / MIB:.4g} MiB.")


def parse(file: Path, limits: Limits, seed: int) -> Dataset:
    """Load an uploaded file; error messages give its name without the folder."""
    from sparcets.datasets.files import load_file

    check_unpacked(file, limits)
    with without_folder(file):
        dataset = load_file(file, seed=seed)
        if dataset.task == "regression":
            raise DataError(
                f"{file.name} holds numbers to predict; the studio explains classifiers only. Use sparcets fit --task "
                "regression and sparcets explain, or Python."
            )
        return dataset


def check_unpacked(file: Path, limits: Limits) -> None:
    """Raise an error for an archive that unpacks to more than the limit; about a damaged one, its reader raises."""
    with suppress(zipfile.BadZipFile, NotImplementedError), zipfile.ZipFile(file) as packed:
        if sum(member.file_size for member in packed.infolist()) > limits.unpacked_bytes:
            raise too_large(limits.unpacked_bytes)


@contextmanager
def without_folder(file: Path) -> Iterator[None]:
    """Let errors name an uploaded file without the folder it lies in."""
    try:
        yield
    except SparcetsError as error:
        raise type(error)(str(error).replace(f"{file.parent}/", "").replace(str(file.parent), "")) from error
    except MemoryError:
        raise DataError(f"{file.name} does not fit into the memory of this machine.") from None


def dataset_record(dataset: Dataset, name: str, *, source: str, uploaded: bool, seed: int) -> DatasetRecord:
    """Return the metadata of a data set."""
    from sparcets.arrays import length_mask

    X = dataset.X_train
    inside = X[length_mask(dataset.lengths_train, len(X), X.shape[1])]  # (steps, features)
    labels = np.concatenate([dataset.y_train, dataset.y_test])
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
        feature_names=list(features_of(dataset)),
        units=None if dataset.units is None else list(dataset.units),
        sampling_rate=dataset.sampling_rate,
        mutable=[True] * dataset.n_features if dataset.mutable is None else dataset.mutable.tolist(),
        low=np.nan_to_num(np.fmin.reduce(inside)).tolist(),  # which ignores missing values
        high=np.nan_to_num(np.fmax.reduce(inside)).tolist(),
        n_missing=dataset.n_missing,
        padded=dataset.lengths_test is not None,
        has_ids=dataset.ids_test is not None,
    )
