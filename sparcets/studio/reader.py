"""The process that reads one uploaded file: ``python -m sparcets.studio.reader``, started by :mod:`.uploads`.

A small file may hold a huge table, or one that takes minutes to read. In a process of its own it has limits on memory
and time, and requests do not wait for it. The series are written as arrays, which are read in a moment. Imports as
little as possible.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sparcets.core.errors import DataError, SparcetsError, TooLargeError
from sparcets.studio import processes
from sparcets.studio.limits import Limits
from sparcets.web.requests import MIB

if TYPE_CHECKING:
    from sparcets.data.dataset import Dataset
    from sparcets.data.recordings import Recordings


def read_dataset(file: Path, limits: Limits, seed: int) -> Dataset:
    """Read labelled series; error messages give the name of the file without the folder."""
    from sparcets.data.files import load_file

    with reading(file, limits):
        dataset = load_file(file, seed=seed)
        if dataset.task == "regression":
            raise DataError(
                f"{file.name} holds numbers to predict; the studio explains classifiers only. Use sparcets fit --task "
                "regression and sparcets explain, or Python."
            )
        check_size(dataset.X_train, dataset.X_test, limits=limits)
        names = len(json.dumps(describe(dataset), ensure_ascii=False).encode())
        if names > limits.record_bytes:
            raise TooLargeError(
                f"{file.name}: names and ranges of {dataset.n_features} features and {dataset.n_classes} classes take "
                f"{names / MIB:.3g} MiB; at most {limits.record_bytes / MIB:.4g} MiB. Use fewer or shorter ones."
            )
        return dataset


def read_recordings(file: Path, limits: Limits, like: Mapping[str, Any]) -> Recordings:
    """Read series that need no labels; ``like`` are the arguments of :meth:`Recordings.like`."""
    from sparcets.data.recordings import load_recordings

    with reading(file, limits):
        found = load_recordings(file).like(tuple(like["feature_names"]), like["n_steps"], padded=like["padded"])
        check_size(found.X, limits=limits)
        return found


def check_size(*parts: np.ndarray[Any, Any], limits: Limits) -> None:
    """Raise an error for series that take too much memory together, or of too many values each."""
    size = sum(X.nbytes for X in parts)
    if size > limits.unpacked_bytes:
        raise TooLargeError(
            f"the series take {size / MIB:.4g} MiB, padded to the same length; at most "
            f"{limits.unpacked_bytes / MIB:.4g} MiB. Use fewer or shorter ones."
        )
    _, n_steps, n_features = parts[0].shape
    if n_steps * n_features > limits.series_values:
        raise TooLargeError(
            f"each series has {n_steps} steps of {n_features} features, that is, {n_steps * n_features:,} values; "
            f"at most {limits.series_values:,}. Use fewer of them."
        )


@contextmanager
def reading(file: Path, limits: Limits) -> Iterator[None]:
    """Check the size of a file before it is read; let errors name it without the folder it lies in."""
    # A small archive may unpack to a huge one; about a damaged one, its reader raises.
    with suppress(zipfile.BadZipFile, NotImplementedError, OSError), zipfile.ZipFile(file) as packed:
        if sum(member.file_size for member in packed.infolist()) > limits.unpacked_bytes:
            raise TooLargeError(f"{file.name} unpacks to more than {limits.unpacked_bytes / MIB:.4g} MiB.")
    if file.suffix.lower() == ".csv":
        with file.open("rb") as opened:
            columns = max(map(opened.readline().count, (b",", b";", b"\t"))) + 1
        if columns > limits.columns:
            raise TooLargeError(f"{file.name} has {columns:,} columns; at most {limits.columns:,}. Use fewer.")
    try:
        yield
    except SparcetsError as error:
        raise type(error)(str(error).replace(f"{file.parent}/", "").replace(str(file.parent), "")) from error
    except MemoryError:
        raise TooLargeError(
            f"{file.name} takes more than {limits.reader_bytes / MIB:.4g} MiB of memory to read; series are padded to "
            "the same length. Use fewer or shorter ones."
        ) from None


def describe(dataset: Dataset) -> dict[str, Any]:
    """Return the metadata of a data set."""
    from sparcets.core.arrays import length_mask

    X = dataset.X_train
    inside = X[length_mask(dataset.lengths_train, len(X), X.shape[1])]  # (steps, features)
    labels = np.concatenate([dataset.y_train, dataset.y_test])
    return {
        "name": dataset.name,
        "description": dataset.description,
        "split": dataset.split,
        "n_train": len(dataset.X_train),
        "n_test": len(dataset.X_test),
        "n_steps": dataset.n_steps,
        "class_names": list(dataset.class_names),
        "class_counts": np.bincount(labels, minlength=dataset.n_classes).tolist(),
        "feature_names": list(features_of(dataset)),
        "units": None if dataset.units is None else list(dataset.units),
        "sampling_rate": dataset.sampling_rate,
        "mutable": [True] * dataset.n_features if dataset.mutable is None else dataset.mutable.tolist(),
        "low": np.nan_to_num(np.fmin.reduce(inside)).tolist(),  # which ignores missing values
        "high": np.nan_to_num(np.fmax.reduce(inside)).tolist(),
        "n_missing": dataset.n_missing,
        "padded": dataset.lengths_test is not None,
        "has_ids": dataset.ids_test is not None,
    }


def features_of(dataset: Dataset) -> tuple[str, ...]:
    """Return the names of the features; f0, f1, … where they have none."""
    return dataset.feature_names or tuple(f"f{i}" for i in range(dataset.n_features))


def carry_out(task: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file, write its series as arrays, and return what is known about them."""
    from sparcets.data.files import save_dataset

    file, out, limits = Path(task["file"]), Path(task["out"]), Limits(**task["limits"])
    if file.suffix.lower() == ".csv":
        import pandas  # noqa: F401 - before the memory is limited
    limit_memory(limits.reader_bytes)
    if task["like"] is None:
        dataset = read_dataset(file, limits, task["seed"])
        save_dataset(dataset, out)
        return describe(dataset)
    found = read_recordings(file, limits, task["like"])
    write_recordings(found, out)
    return {"n": len(found.X)}


def write_recordings(found: Recordings, out: Path) -> None:
    """Write recordings as a .npz file."""
    from sparcets.io.files import atomic_path, write_npz

    arrays = {"X": found.X, "y": found.labels, "ids": found.ids, "subjects": found.subjects, "lengths": found.lengths}
    arrays["feature_names"] = np.array(found.feature_names)
    with atomic_path(out) as temporary, temporary.open("wb") as opened:
        write_npz(opened, {key: array for key, array in arrays.items() if array is not None})


def limit_memory(size: int) -> None:
    """Let this process take so many bytes more than it has now, where the system can limit it."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except (ImportError, OSError):
        return
    limit = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> NoReturn:
    """Carry out the task given on stdin, and write the outcome to stdout."""
    task, stdout = processes.begin(), sys.stdout
    sys.stdout = sys.stderr  # keeps other output out of the outcome
    warnings.simplefilter("ignore")
    outcome: dict[str, Any]
    try:
        outcome = {"found": carry_out(task)}
    except SparcetsError as error:
        outcome = {"error": type(error).__name__, "message": str(error)}
    stdout.write(json.dumps(outcome))
    stdout.flush()
    os._exit(0)  # a thread is still reading stdin, which Python's own end would complain about


if __name__ == "__main__":
    main()
