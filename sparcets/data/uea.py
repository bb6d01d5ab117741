"""The UEA (multivariate) and UCR (univariate) archive of time series classification, through aeon.

A few data sets are included in aeon; the others are downloaded once into ``data_folder() / "uea"``. Every data set has
its own split into training and test.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from sparcets.core.errors import DownloadError
from sparcets.core.registry import require_extra, unknown_name
from sparcets.data.dataset import Dataset
from sparcets.data.load import data_folder, load_file, writing
from sparcets.io.folders import temporary_folder
from sparcets.io.locks import LOCK, locked

_NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
MULTIVARIATE, UNIVARIATE = tuple(_NAMES["multivariate"]), tuple(_NAMES["univariate"])
UEA_NAMES = MULTIVARIATE + UNIVARIATE


def load_uea(*, name: str, seed: int = 0) -> Dataset:
    """Load a data set of the archive by name, with the split of the archive; the seed is not used.

    Examples
    --------
    >>> load_uea(name="ItalyPowerDemand")
    Dataset('ItalyPowerDemand': 67 training + 1029 test series, 24 steps, 1 features, 2 classes)
    """
    aeon = require_extra("aeon.datasets", "the UEA/UCR archive", "uea")
    for folder in (Path(aeon.__file__).parent / "data", data_folder() / "uea"):
        if all((folder / name / f"{name}_{part}.ts").is_file() for part in ("TRAIN", "TEST")):
            return load_file(folder / name / f"{name}_TRAIN.ts")
    if name not in UEA_NAMES:
        raise unknown_name("data set of the UEA/UCR archive", name, UEA_NAMES)
    return load_file(_fetch(name) / f"{name}_TRAIN.ts")


def load_basic_motions(*, seed: int = 0) -> Dataset:
    """Load BasicMotions: ten seconds of smart watch data while standing, walking, running and playing badminton.

    The seed is not used, because the split is given.

    Examples
    --------
    >>> load_basic_motions()
    Dataset('basic_motions': 40 training + 40 test series, 100 steps, 6 features, 4 classes)
    """
    return dataclasses.replace(
        load_uea(name="BasicMotions", seed=seed),
        name="basic_motions",
        feature_names=("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z"),
        sampling_rate=10.0,
        description="accelerometer and gyroscope of a smart watch, four activities (UEA archive)",
    )


def _fetch(name: str) -> Path:
    """Download a data set and return its folder; files are moved there only when complete."""
    aeon = require_extra("aeon.datasets", "the UEA/UCR archive", "uea")
    folder = data_folder() / "uea" / name
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / LOCK, what=str(folder)):
        # Another process may have fetched it while this one waited.
        if all((folder / f"{name}_{part}.ts").is_file() for part in ("TRAIN", "TEST")):
            return folder
        with writing(folder), temporary_folder(folder, "fetching") as temporary:
            try:
                # The original version: unequal lengths not truncated, missing values not filled in.
                as_published = {"load_equal_length": False, "load_no_missing": False}
                aeon.load_classification(name, split="train", extract_path=str(temporary), **as_published)
            except Exception as error:  # aeon wraps some of urllib's errors and lets others through
                raise DownloadError(
                    f"cannot fetch {name} of the UEA/UCR archive: {_root(error)}. Try again with a network, or put "
                    f"{name}_TRAIN.ts and {name}_TEST.ts into {folder}."
                ) from error
            for file in sorted((temporary / name).iterdir()):
                if not os.path.lexists(folder / file.name):  # what somebody has put there is kept
                    file.rename(folder / file.name)
    return folder


def _root(error: BaseException) -> str:
    """Return the message of the first error of a chain, on one line."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return " ".join(str(error).split()) or type(error).__name__
