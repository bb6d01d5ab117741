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

from sparcets.core.errors import DataNotFoundError, FileFormatError
from sparcets.core.series import check_series
from sparcets.data.dataset import Dataset
from sparcets.data.load import data_folder
from sparcets.data.recordings import read_arrays
from sparcets.io.files import naming

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
    >>> import numpy as np
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/UI-PRMD_arm_T100.npz", X=np.zeros((8, 100, 12)), y=["correct", "incorrect"] * 4,
    ...              subject=[1, 1, 2, 2, 3, 3, 4, 4], feature_names=FEATURES)
    ...     load_ui_prmd(path=folder, test_size=0.25)
    Dataset('ui_prmd': 6 training + 2 test series of 3 + 1 subjects, 100 steps, 12 features, 2 classes)
    """
    file = _find(data_folder() if path is None else Path(path).expanduser())
    try:
        arrays = read_arrays(file)
    except FileFormatError as error:
        raise FileFormatError(f"{error} {HOW_TO_GET}.") from error
    absent = next((key for key in _KEYS if key not in arrays), None)
    if absent is not None:
        raise FileFormatError(f"{file} has no array {absent!r}, only {', '.join(arrays)}; expected {', '.join(_KEYS)}.")
    names = tuple(str(name) for name in arrays["feature_names"].ravel())
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
