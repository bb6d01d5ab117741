"""MotionSense: a phone in the trouser pocket of 24 people, six activities (Malekzadeh et al., 2019).

The data are read as published by their authors, ``A_DeviceMotion_data.zip`` or the same folder unzipped: one CSV file
per recording, ``<activity>_<trial>/sub_<subject>.csv``, 50 Hz. The recordings are divided into windows of two seconds
such that the class sizes equal those in the table of the SPARCE paper. Parsing the four active classes takes about two
seconds, so nothing is cached.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
import pandas as pd

from sparcets.core.errors import ConfigError, DataNotFoundError, FileFormatError, quoted
from sparcets.core.registry import unknown_name
from sparcets.core.series import FloatArray
from sparcets.data.dataset import Dataset
from sparcets.data.load import data_folder
from sparcets.data.splits import stratified_split
from sparcets.io.files import naming

ARCHIVE = "A_DeviceMotion_data.zip"
FOLDER = "A_DeviceMotion_data"

# Number of trials of each activity; each of the 24 people did every trial.
TRIALS = {"dws": 3, "jog": 2, "sit": 2, "std": 2, "ups": 3, "wlk": 3}
ACTIVE = ("dws", "jog", "ups", "wlk")
SPLITS = ("random", "subject")
N_SUBJECTS = 24
WINDOW = 100

_AXES = {
    "attitude": (("roll", "pitch", "yaw"), "rad"),
    "gravity": (("x", "y", "z"), "g"),
    "rotationRate": (("x", "y", "z"), "rad/s"),
    "userAcceleration": (("x", "y", "z"), "g"),
}
FEATURES = tuple(f"{sensor}.{axis}" for sensor, (axes, _) in _AXES.items() for axis in axes)
UNITS = tuple(unit for axes, unit in _AXES.values() for _ in axes)

_FETCH = "run `sparcets data fetch motionsense`"
# Any prefix before the folder of the trial, because archives differ in it. Hidden files ("._sub_1.csv") do not match.
_RECORDING = re.compile(rf"(?:.*/)?((?P<activity>{'|'.join(TRIALS)})_(?P<trial>\d+)/sub_(?P<subject>\d+)\.csv)")
_log = logging.getLogger(__name__)


class Recording(NamedTuple):
    """One CSV file."""

    activity: str
    trial: int
    subject: int
    name: str
    raw: bytes


def load_motionsense(
    *,
    path: str | os.PathLike[str] | None = None,
    activities: str | Sequence[str] = "active",
    split: str = "random",
    test_size: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Load MotionSense as windows of 100 steps (two seconds) and 12 features.

    Parameters
    ----------
    path
        The published zip, the unzipped folder, or a folder that contains one of them; by default the folder
        ``motionsense`` in the data folder and the data folder itself are searched.
    activities
        ``"active"`` (dws, jog, ups, wlk: the paper's experiments), ``"all"`` (sit and std too), or two or more codes.
        Classes are always in alphabetical order of their codes.
    split
        ``"random"``, as in the paper, stratified by class: windows of one person, even adjacent ones of one recording,
        are in both parts. ``"subject"`` splits by person.
    test_size
        Share held out, of the windows of each class or of the people.
    seed
        Seed of the split.

    Examples
    --------
    >>> load_motionsense(activities="all", split="subject")  # doctest: +SKIP
    Dataset('motionsense': 11058 training + 2892 test series of 19 + 5 subjects, 100 steps, 12 features, 6 classes)
    """
    codes = _activity_codes(activities)
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    source = find_source(data_folder() if path is None else Path(path).expanduser())

    found = [
        (cut_windows(_parse(one.raw, f"{source}: {one.name}")), codes.index(one.activity), one.subject)
        for one in recordings(source, codes)
    ]
    sizes, n_recordings = [len(windows) for windows, _, _ in found], len(found)
    y, people = (np.repeat(np.array([row[k] for row in found], dtype=np.int64), sizes) for k in (1, 2))
    for label, code in enumerate(codes):
        if label not in y:
            raise FileFormatError(
                f"{source} holds no recording of {code!r} with more than {WINDOW} rows (looked for {code}_*/sub_*.csv)."
                f" For the whole set, {_FETCH}."
            )
    expected = N_SUBJECTS * sum(TRIALS[code] for code in codes)
    if n_recordings != expected:
        _log.warning("%s holds %d of the %d recordings of %s.", source, n_recordings, expected, ", ".join(codes))

    with naming(source):
        data = Dataset.from_arrays(
            np.concatenate([windows for windows, _, _ in found]),
            y,
            split=stratified_split(y, test_size=test_size, seed=seed) if split == "random" else None,  # else by subject
            test_size=test_size,
            seed=seed,
            feature_names=FEATURES,
            class_names=codes,
            units=UNITS,
            sampling_rate=50.0,
            subjects=people,
            name="motionsense",
            description=f"Phone in the trouser pocket, windows of 2 s from {n_recordings} recordings of "
            f"{len(np.unique(people))} people (MotionSense)",
        )
        return replace(data, split=split)


def cut_windows(rows: FloatArray) -> FloatArray:
    """Divide a recording (time, features) into windows (batch, 100, features) from its start, without overlap.

    A recording of n rows gives (n − 1)//100 windows, which reproduces the numbers of the paper: with an exact multiple
    of 100 rows, the last window is dropped.

    >>> cut_windows(np.zeros((250, 12))).shape, cut_windows(np.zeros((300, 12))).shape
    ((2, 100, 12), (2, 100, 12))
    """
    n_windows = max(len(rows) - 1, 0) // WINDOW
    return rows[: n_windows * WINDOW].reshape(n_windows, WINDOW, rows.shape[1])


def find_source(root: Path) -> Path:
    """Return the zip or the folder of recordings at ``root``, in it, or in ``root/motionsense``."""
    if root.is_file() or any(root.glob("*_*/sub_*.csv")):
        return root
    for base in (root / "motionsense", root):
        for candidate in (base / ARCHIVE, base / FOLDER):
            if candidate.exists():
                return candidate
    raise DataNotFoundError(
        f"MotionSense is not in {root}: neither {ARCHIVE} nor a folder {FOLDER} there or in its folder 'motionsense'. "
        f"Set SPARCETS_DATA to the folder that holds it, or {_FETCH}."
    )


def recordings(source: Path, activities: Collection[str] = tuple(TRIALS)) -> Iterator[Recording]:
    """Yield the recordings of some activities from a zip or a folder, by activity, trial and subject."""
    try:
        opened: Any = nullcontext() if source.is_dir() else ZipFile(source)
        with opened as archive:
            members: Any = source.glob("*_*/sub_*.csv") if archive is None else archive.namelist()
            found = [(match, name) for name in members if (match := _RECORDING.fullmatch(Path(name).as_posix()))]
            named = [(m["activity"], int(m["trial"]), int(m["subject"]), m[1], name) for m, name in found]
            for activity, trial, subject, path, name in sorted(one for one in named if one[0] in activities):
                raw = name.read_bytes() if archive is None else archive.read(name)
                yield Recording(activity, trial, subject, path, raw)
    # zipfile raises RuntimeError for encryption and for unknown compression methods.
    except (BadZipFile, zlib.error, EOFError, RuntimeError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"{source} is not a complete zip archive ({error}). Delete it and {_FETCH} to fetch it again."
        ) from error
    except OSError as error:
        raise FileFormatError(
            f"{source} cannot be read: {error.strerror or error}. Check its permissions and the disk."
        ) from error


def content_digest(source: Path) -> str:
    """Return the SHA-256 of the names and contents of all recordings, independent of the bytes of the zip."""
    total = hashlib.sha256()
    for recording in recordings(source):
        total.update(f"{recording.name} {len(recording.raw)}\n".encode())
        total.update(recording.raw)
    return total.hexdigest()


def _activity_codes(activities: str | Sequence[str]) -> tuple[str, ...]:
    known = ("active", "all", *TRIALS)
    if isinstance(activities, str):
        chosen = {"active": list(ACTIVE), "all": list(TRIALS)}.get(activities, [activities])
    else:
        try:
            chosen = list(activities)
        except TypeError:
            raise ConfigError(
                f"activities must be 'active', 'all' or a list of codes, got {quoted(activities)}."
            ) from None
    for code in chosen:
        if not isinstance(code, str) or code not in TRIALS:
            raise unknown_name("activity", code, known)
    codes = tuple(sorted(set(chosen)))
    if len(codes) < 2:
        raise ConfigError(f"activities must name at least two of {', '.join(TRIALS)}, got {quoted(activities)}.")
    return codes


def _parse(raw: bytes, where: str) -> FloatArray:
    """Return the 12 features of a CSV file as float32 (time, features); an error names the damaged line."""
    try:
        table = pd.read_csv(BytesIO(raw), usecols=list(FEATURES), dtype=np.float32)
    except ValueError as error:  # all of pandas' parser errors are ValueErrors
        _check_lines(raw, where)
        raise FileFormatError(
            f"{where} is not a MotionSense recording: {error}. Delete it and {_FETCH} to fetch it again."
        ) from error
    values = table[list(FEATURES)].to_numpy()
    # pandas fills a short row with NaN and, given usecols, silently truncates a long one, so the commas are counted.
    even = raw.count(b",") == raw.partition(b"\n")[0].count(b",") * (len(values) + 1)
    if not even or not np.isfinite(values).all():
        _check_lines(raw, where)
    return np.asarray(values)


def _check_lines(raw: bytes, where: str) -> None:
    """Raise for the first line that does not match the header."""
    header, *lines = raw.decode("utf-8-sig", errors="replace").splitlines() or [""]
    columns = [name.strip().strip('"') for name in header.split(",")]
    missing = [name for name in FEATURES if name not in columns]
    if missing:
        raise FileFormatError(
            f"{where}, line 1: no column {missing[0]!r}; the header is {header[:80]!r}. Expected the DeviceMotion part "
            f"of MotionSense; to fetch it, {_FETCH}."
        )
    for number, line in enumerate(lines, start=2):
        fields = [field.strip().strip('"') for field in line.split(",")]
        problem = ""
        if len(fields) != len(columns):
            problem = f"{len(fields)} fields where the header has {len(columns)}"
        else:
            found = {name: fields[columns.index(name)] for name in FEATURES}
            finite = np.isfinite(pd.to_numeric(pd.Series(found), errors="coerce"))
            if not finite.all():
                name = FEATURES[int(finite.argmin())]
                problem = f"{name} is {found[name]!r}, not a finite number"
        if problem and line.strip():
            raise FileFormatError(
                f"{where}, line {number}: {problem}. The file is damaged; delete it and {_FETCH} to fetch it again."
            )
