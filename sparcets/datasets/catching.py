"""Catching: two-handed ball catching of patients with ataxia, of people with autism, and of controls.

The recordings of Lang et al. (2022) are private. Whoever has them reads them with ``path=``; everyone else gets
a **simulated** set of the same shape and class counts from :mod:`sparcets.datasets.catching_simulator`, and its name
says so.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.datasets.base import Dataset
from sparcets.datasets.catching_simulator import (
    CLASS_NAMES,
    N_STEPS,
    PERSONS_PER_CLASS,
    POINTS,
    SAMPLING_RATE,
    simulate_trials,
)
from sparcets.datasets.splits import stratified_split
from sparcets.errors import DataNotFoundError, FileFormatError, LabelError, ShapeError
from sparcets.seeding import generator
from sparcets.validation import check_series

COUNTS = (522, 789, 664)  # trials per class in the paper
FEATURES = tuple(f"{point}_{axis}" for point in POINTS for axis in "xy")
MUTABLE = np.array([not name.startswith("Center") for name in FEATURES])  # all but the ball
# The order of the body's coordinates in the recordings was never published; only the ball's names were.
RECORDED_FEATURES = (*(f"body_{i}" for i in range(len(FEATURES) - 2)), *FEATURES[-2:])


def load_catching(*, path: str | os.PathLike[str] | None = None, test_size: float = 0.2, seed: int = 0) -> Dataset:
    """Load the simulated catching trials, or the recorded ones from a folder.

    1,975 trials (522 Ataxia, 789 Autism, 664 Control) of 60 steps and 20 features: x and y of nine points of the body,
    which may change, and of the ball (``Center_x``, ``Center_y``), which may not.

    Parameters
    ----------
    path
        Folder of the recordings: ``X_train.npy``, ``X_test.npy`` (n, 60, 20) with the ball in the last two features,
        ``y_train.npy``, ``y_test.npy`` one-hot (n, 3) in the order Ataxia, Autism, Control, and, if there,
        ``X_val.npy`` and ``y_val.npy``, which join the training part. Their split is kept. None simulates.
    test_size, seed
        Share of the simulated trials held out, at random and stratified by class as in the paper (so trials of one
        person stand in both parts), and the seed of simulation and split.

    Examples
    --------
    >>> ds = load_catching(seed=0)
    >>> ds
    Dataset('catching (simulated)': 1580 training + 395 test series, 60 steps, 20 features, 3 classes)
    >>> ds.feature_names[:2], int(ds.mutable.sum()), ds.subjects_test.shape
    (('Head_x', 'Head_y'), 18, (395,))
    """
    return _simulated(test_size, seed) if path is None else _recorded(Path(path).expanduser())


def _simulated(test_size: float, seed: int) -> Dataset:
    trials = simulate_trials(COUNTS, generator(seed, "catching"))
    train, test = stratified_split(trials.label, test_size=test_size, seed=seed)
    names = [f"{group}-{i + 1:02d}" for group in CLASS_NAMES for i in range(PERSONS_PER_CLASS)]
    return Dataset.from_rows(
        trials.points.reshape(len(trials.points), N_STEPS, len(FEATURES)),
        trials.label,
        train=train,
        test=test,
        feature_names=FEATURES,
        class_names=CLASS_NAMES,
        mutable=MUTABLE,
        units="m",
        sampling_rate=SAMPLING_RATE,
        subjects=np.array(names)[trials.person],
        name="catching (simulated)",
        description="Simulated two-handed ball catching, seen from the side: a model, no patient was measured.",
        split="random",
    )


def _recorded(folder: Path) -> Dataset:
    if not folder.is_dir():
        raise DataNotFoundError(
            f"no folder {folder}. path= names the folder that holds X_train.npy, y_train.npy, X_test.npy and "
            "y_test.npy; without path= the trials are simulated."
        )
    has_validation = any((folder / f"{kind}_val.npy").exists() for kind in "Xy")
    parts = [_part(folder, part) for part in ("train", *(["val"] if has_validation else []), "test")]
    n_test = len(parts[-1][0])
    X = np.concatenate([x for x, _ in parts])
    rows = np.arange(len(X))
    return Dataset.from_rows(
        X,
        np.concatenate([y for _, y in parts]),
        train=rows[:-n_test],
        test=rows[-n_test:],
        feature_names=RECORDED_FEATURES,
        class_names=CLASS_NAMES,
        mutable=MUTABLE,
        name="catching",
        description="Two-handed ball catching: recordings in the layout of Lang et al. (2022).",
    )


def _part(folder: Path, part: str) -> tuple[FloatArray, IntArray]:
    """Return series (n, 60, 20) and class indices (n,) of ``train``, ``val`` or ``test``."""
    x_file, y_file = folder / f"X_{part}.npy", folder / f"y_{part}.npy"
    X = _without_singletons(_array(x_file), 3)
    if X.ndim != 3 or X.shape[1:] != (N_STEPS, len(FEATURES)) or not len(X):
        raise ShapeError(
            f"{x_file} must be (n, {N_STEPS}, {len(FEATURES)}): trials, steps, features; got shape {X.shape}. "
            "Transpose or cut it to that."
        )
    X = check_series(X, name=str(x_file))
    y = _without_singletons(_array(y_file), 2)
    if y.shape != (len(X), len(CLASS_NAMES)):
        raise LabelError(
            f"{y_file} must be ({len(X)}, {len(CLASS_NAMES)}), one-hot rows in the order {', '.join(CLASS_NAMES)}, one "
            f"for each trial of {x_file.name}; got shape {y.shape}."
        )
    ones, zeros = y == 1, y == 0
    bad = np.flatnonzero((ones.sum(1) != 1) | (zeros.sum(1) != len(CLASS_NAMES) - 1))
    if len(bad):
        raise LabelError(
            f"{y_file} is not one-hot: row {bad[0]} is {y[bad[0]].tolist()}. Each row needs a single 1 and 0 "
            f"elsewhere, in the order {', '.join(CLASS_NAMES)}."
        )
    return X, np.asarray(ones.argmax(1), dtype=np.int64)


def _without_singletons(array: np.ndarray[Any, Any], ndim: int) -> np.ndarray[Any, Any]:
    """Drop axes of size 1, but the first, from an array with too many axes."""
    return array if array.ndim <= ndim else array.reshape([len(array), *(n for n in array.shape[1:] if n != 1)])


def _array(file: Path) -> np.ndarray[Any, Any]:
    if not file.is_file():
        raise DataNotFoundError(
            f"{file.parent} holds no {file.name}. Expected X_train.npy, y_train.npy, X_test.npy, y_test.npy and, "
            "both or neither, X_val.npy and y_val.npy."
        )
    try:
        with file.open("rb") as handle:
            array = np.load(handle, allow_pickle=False)
    except Exception as error:  # a broken file raises anything from ValueError to TokenError and MemoryError
        raise FileFormatError(
            f"{file} cannot be read as a NumPy array of numbers ({type(error).__name__}). "
            "Write it anew with numpy.save."
        ) from error
    if not isinstance(array, np.ndarray):
        raise FileFormatError(f"{file} is an archive of arrays, expected a single one. Write it anew with numpy.save.")
    return array
