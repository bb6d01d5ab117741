"""UI-PRMD, arm recordings: real limb geometry, exercises done correctly or not (Vakanski et al., 2018).

Ten healthy people repeat four upper-body exercises, correctly or imitating a patient with an impairment. The data are
not downloaded: the authors publish whole-body recordings, and this module reads the arm part of them from one NumPy
file, ``UI-PRMD_arm_T100.npz``, with

- ``X`` (799, 100, 12): x, y, z of shoulder, elbow, wrist and finger relative to the clavicle marker, in mm, each
  repetition resampled to 100 steps and left arms mirrored;
- ``y`` (799,): ``correct`` or ``incorrect``; ``subject`` (799,): whole numbers; ``feature_names`` (12,).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import DataNotFoundError, FileFormatError
from sparcets.core.validation import check_series
from sparcets.data.dataset import Dataset
from sparcets.data.load import data_folder
from sparcets.io.files import UNREADABLE, naming

FILE = "UI-PRMD_arm_T100.npz"
JOINTS = ("shoulder", "elbow", "wrist", "finger")
FEATURES = tuple(f"{joint}_{axis}" for joint in JOINTS for axis in "xyz")
CLASSES = ("correct", "incorrect")
_KEYS = ("X", "y", "subject", "feature_names")

HOW_TO_GET = (
    "Get the Vicon positions from the authors (Vakanski et al. 2018, doi.org/10.3390/data3010002, "
    f"webpages.uidaho.edu/ui-prmd), save the arm part as {FILE} as described in sparcets.data.ui_prmd, "
    "and put it into the folder ui_prmd of the folder named by SPARCETS_DATA"
)


def load_ui_prmd(*, path: str | os.PathLike[str] | None = None, test_size: float = 0.3, seed: int = 0) -> Dataset:
    """Load the arm recordings of UI-PRMD, split by subject.

    Parameters
    ----------
    path
        The ``.npz`` file or a folder that contains it; by default the folder ``ui_prmd`` in the data folder and the
        data folder itself are searched.
    test_size
        Share of the people held out.
    seed
        Seed of the split.

    Notes
    -----
    Every repetition is resampled to 100 steps, so there is no sampling rate.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/UI-PRMD_arm_T100.npz", X=np.zeros((8, 100, 12)), y=["correct", "incorrect"] * 4,
    ...              subject=[1, 1, 2, 2, 3, 3, 4, 4], feature_names=FEATURES)
    ...     load_ui_prmd(path=folder, test_size=0.25)
    Dataset('ui_prmd': 6 training + 2 test series of 3 + 1 subjects, 100 steps, 12 features, 2 classes)
    """
    file = _find(data_folder() if path is None else Path(path).expanduser())
    arrays = _read(file)
    names = tuple(str(name) for name in np.ravel(arrays["feature_names"]))
    if names != FEATURES:
        raise FileFormatError(
            f"{file} names the features {', '.join(names[:3])}, … ({len(names)} in all); expected "
            f"{', '.join(FEATURES)}, in this order."
        )
    with naming(file):
        return Dataset.from_arrays(
            check_series(arrays["X"], name=f"X in {file}"),
            arrays["y"],
            subjects=arrays["subject"],
            test_size=test_size,
            seed=seed,
            class_names=CLASSES,
            feature_names=FEATURES,
            units="mm",
            name="ui_prmd",
            description="Arm positions relative to the clavicle in four exercises, done correctly or not (UI-PRMD)",
        )


def _find(root: Path) -> Path:
    for candidate in (root, root / "ui_prmd" / FILE, root / FILE):
        if candidate.is_file():
            return candidate
    raise DataNotFoundError(f"UI-PRMD is not in {root}: no {FILE} there or in its folder 'ui_prmd'. {HOW_TO_GET}.")


def _read(file: Path) -> dict[str, np.ndarray[Any, Any]]:
    try:
        # Opened here, because NumPy does not close a file that turns out not to be a zip.
        with file.open("rb") as stream:
            content = np.load(stream, allow_pickle=False)
            if not isinstance(content, np.lib.npyio.NpzFile):
                raise FileFormatError(f"{file} holds a single array, not the arrays {', '.join(_KEYS)} of a .npz file.")
            missing = [key for key in _KEYS if key not in content.files]
            if missing:
                raise FileFormatError(
                    f"{file} has no array {missing[0]!r}, only {', '.join(content.files) or 'none at all'}; "
                    f"expected {', '.join(_KEYS)}."
                )
            return {key: content[key] for key in _KEYS}
    except FileFormatError:
        raise
    except UNREADABLE as error:
        raise FileFormatError(f"{file} is damaged or not a .npz file ({error}). {HOW_TO_GET}.") from error
