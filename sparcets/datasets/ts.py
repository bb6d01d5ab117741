"""Files of the UEA/UCR archive, ``.ts``, read into a :class:`Dataset`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, StrArray
from sparcets.datasets.base import Dataset
from sparcets.datasets.labels import Task, class_names_of
from sparcets.datasets.precision import LARGEST, as_written
from sparcets.errors import FileFormatError, NonFiniteError
from sparcets.registry import require_extra


def load_ts(path: Path, *, test_size: float, seed: int, task: Task | None, **known: Any) -> Dataset:
    """Read a file, and its test part if there is one; see :mod:`sparcets.datasets.files`.

    Parameters
    ----------
    path
        The file.
    test_size, seed
        Share held out and the seed of the split, if there is no test part.
    task
        What the file has to be for, or None.
    **known
        Names and units of the numbers, where the file holds numbers.
    """
    base = path.stem.removesuffix("_TRAIN")
    test_path = path.with_name(f"{base}_TEST{path.suffix}")
    paths = [path, test_path] if base != path.stem and test_path.is_file() else [path]
    parts = [_read_ts(p) for p in paths]
    cases = [case for part, _ in parts for case in part]
    labels = np.concatenate([part for _, part in parts])
    found: Task = "regression" if labels.dtype.kind == "f" else "classification"
    if task not in (None, found):
        declared = "@targetLabel" if found == "regression" else "@classLabel"
        raise FileFormatError(f"{path} is for {found}, by its line {declared}, not for {task}.")
    known["task"] = found
    if found == "classification":
        labels, known["class_names"] = class_names_of(labels)
    lengths = np.array([case.shape[1] for case in cases])
    X = np.zeros((len(cases), lengths.max(), cases[0].shape[0]))
    for row, case in zip(X, cases, strict=True):
        if len(case) != X.shape[2]:
            raise FileFormatError(f"{test_path} has {len(case)} features, {path} has {X.shape[2]}.")
        row[: case.shape[1]] = case.T  # aeon's (channels, time) to (time, features)
    known["lengths"] = lengths if (lengths != lengths[0]).any() else None
    if len(parts) == 1:
        return Dataset.from_arrays(as_written(X), labels, test_size=test_size, seed=seed, name=path.stem, **known)
    train, test = np.split(np.arange(len(X)), [len(parts[0][0])])
    return Dataset.from_rows(as_written(X), labels, train=train, test=test, name=base, **known)


def _read_ts(path: Path) -> tuple[list[FloatArray], StrArray | FloatArray]:
    """Return the series of a .ts file, each (channels, time), and their labels: names, or numbers."""
    aeon = require_extra("aeon.datasets", "a .ts file", "uea")
    try:
        cases, labels, header = aeon.load_from_ts_file(str(path), return_meta_data=True)
    except Exception as error:  # aeon's parser raises various errors on malformed lines
        raise FileFormatError(f"{path} is not a valid .ts file: {' '.join(str(error).split())}") from error
    if not len(cases):
        raise FileFormatError(f"{path} holds no series; they follow the line @data, one per line.")
    if header["timestamps"]:  # aeon's parser for them drops the sign of the values
        raise FileFormatError(
            f"{path} has time stamps (@timeStamps true), which are not supported. Write the values only."
        )
    for index, case in enumerate(cases):
        if (np.abs(case) > LARGEST).any():
            raise NonFiniteError(f"{path.name} has a number beyond ±{LARGEST:.2g} in series {index}. Use larger units.")
    if header["targetlabel"]:
        return list(cases), np.asarray(labels, dtype=np.float64)
    if not header["classlabel"]:
        raise FileFormatError(
            f"{path} has no labels: neither classes (@classLabel true and their names) nor numbers (@targetLabel true)."
        )
    # Lower case, because aeon replaces every "nan" of a line by "NaN", also within a label.
    names = np.array([str(label).strip().lower() for label in labels])
    declared = header["class_values"]
    unknown = sorted(set(names.tolist()) - set(declared)) if declared else []
    if unknown:
        raise FileFormatError(f"{path} has the label {unknown[0]!r}, but @classLabel names {', '.join(declared)}.")
    return list(cases), names
