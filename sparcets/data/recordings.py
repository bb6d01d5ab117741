"""Recordings: what every reader of files returns; files of arrays; the digits of numbers, and the grid of times."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import DataNotFoundError, FeatureMismatchError, FileFormatError, LabelError, ShapeError
from sparcets.core.registry import did_you_mean
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, StrArray, check_padded, check_series
from sparcets.core.validation import Task, check_ids, check_names
from sparcets.io.files import is_file, naming

TABLES = (".csv", ".parquet")
PER_SERIES = ("X", "y", "ids", "subjects", "lengths", "salient")
SIDE = "side_"  # begins the name of an array with side inputs
ABOUT = ("feature_names", "class_names", "units", "sampling_rate", "mutable", "name", "description", "split", "task",
         "output_names", "output_units")  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Recordings:
    """Series of a file, before they are checked or split; None where the file says nothing."""

    X: Any  # (batch, time, features) in the data's own units, or a list of series (time, features) of unequal length
    feature_names: tuple[str, ...] | None = None
    lengths: IntArray | None = None  # true lengths of padded series
    labels: Any = None  # class of each series, or the numbers (batch, outputs) to predict
    ids: StrArray | None = None
    subjects: StrArray | None = None  # recorded person of each series
    split: Any = None  # "train" or "test" for each series
    salient: BoolArray | None = None  # entries that determine the class
    side: Mapping[str, Any] | None = None  # side inputs by name
    about: Mapping[str, Any] = field(default_factory=dict)  # further arguments of Dataset.from_arrays

    def like(self, feature_names: tuple[str, ...], n_steps: int, *, padded: bool) -> Recordings:
        """Return the series with these features in this order, and as many steps; fewer if they may be ``padded``.

        Features are matched by name if these series name theirs, else taken in order.
        """
        columns: Any = slice(None)
        n_features = self.X.shape[2]
        if self.feature_names is not None:
            if sorted(self.feature_names) != sorted(feature_names):
                missing = [name for name in feature_names if name not in self.feature_names][:5]
                unknown = [name for name in self.feature_names if name not in feature_names][:5]
                parts = [f"they have no {', '.join(missing)}"] if missing else []
                parts += [f"the data set has no {', '.join(unknown)}"] if unknown else []
                found = "; ".join(parts) or "some appear twice"
                raise FeatureMismatchError(f"the recordings have other features than the data set: {found}.")
            columns = [self.feature_names.index(name) for name in feature_names]
        elif n_features != len(feature_names):
            raise ShapeError(f"the recordings have {n_features} features, those of the data set {len(feature_names)}.")
        series = Series(self.X[:, :, columns], self.lengths)
        least, most = int(series.steps.min()), int(series.steps.max())
        if not padded and not least == most == n_steps:
            steps = f"{most} steps" if least == most else f"{least} to {most} steps"
            raise ShapeError(f"the recordings have {steps}, those of the data set all have {n_steps}.")
        if most > n_steps:
            raise ShapeError(f"the recordings have up to {most} steps, those of the data set at most {n_steps}.")
        series = series.padded(n_steps) if padded else series.cut(n_steps)
        return replace(self, X=series.values, feature_names=feature_names, lengths=series.lengths)


def load_recordings(path: str | os.PathLike[str]) -> Recordings:
    r"""Read series from a ``.npz``, ``.csv`` or ``.parquet`` file; they need no labels.

    Parameters
    ----------
    path
        A file in one of the forms of :mod:`sparcets.data.load`, without ``y`` or the column ``label``.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.csv")
    ...     _ = path.write_text("series,time,pulse\na,0,61\na,1,62\nb,0,59\nb,1,60\n")
    ...     found = load_recordings(path)
    >>> found.X.shape, found.ids.tolist(), found.labels is None
    ((2, 2, 1), ['a', 'b'], True)
    """
    file = Path(path)
    if not is_file(file):
        raise DataNotFoundError(f"no file {file}. Give the path of a .npz, .csv or .parquet file.")
    with naming(file):
        if file.suffix.lower() == ".npz":
            found = read_npz(file, labelled=False)
        elif file.suffix.lower() in TABLES:
            from sparcets.data.tables import read_table  # imports pandas

            found = read_table(file, {}, labelled=False)
        else:
            raise FileFormatError(f"{file} has an unknown format. Known: .npz, {', '.join(TABLES)}.")
        X, lengths = check_padded(found.X, found.lengths, gaps=True)
        given = {"labels": found.labels, "ids": found.ids, "subjects": found.subjects}
        checked = {name: check_ids(values, what=name, n=len(X)) for name, values in given.items()}
        texts: dict[str, Any] = {n: None if values is None else values.astype(str) for n, values in checked.items()}
        features = check_names(found.feature_names, n=X.shape[2], what="feature_names")
        return Recordings(X=X, lengths=lengths, feature_names=features, **texts)


def read_npz(path: Path, *, task: Task | None = None, labelled: bool = True) -> Recordings:
    """Read a .npz file of plain arrays, with labels for a task, by itself the one that the file names.

    Where labels are not needed, the file has one part, and only what concerns single series is read.
    """
    arrays = read_arrays(path)
    parts = ("_train", "_test") if labelled and "X_train" in arrays else ("",)
    beside = sorted({k.removesuffix(part) for k in arrays for part in parts if k.startswith(SIDE) and k.endswith(part)})
    per_series = (*PER_SERIES, *beside)
    _check_keys(path, list(arrays), parts, per_series, needed=("X", "y") if labelled else ("X",))
    if labelled:
        for part in parts:
            _check_part(arrays, part)
    rows = {key: _joined(key, [arrays[key + part] for part in parts]) for key in per_series if key + parts[0] in arrays}
    known = {"X": rows["X"], "lengths": rows.get("lengths"), "labels": rows.get("y")}
    known |= {name: rows.get(name) for name in ("ids", "subjects")}
    if not labelled:
        names = arrays.get("feature_names")
        return Recordings(**known, feature_names=None if names is None else names.astype(str))
    about = {key: _about(path, key, arrays[key], rows["X"].shape[2]) for key in ABOUT if key in arrays}
    labels = rows["y"]
    if (task or about.get("task")) != "regression" and "class_names" not in about:
        labels = labels.astype(int) if labels.dtype.kind == "b" else labels
        if labels.dtype.kind in "iuU" or (labels.dtype.kind == "f" and (labels == np.round(labels)).all()):
            known["labels"], about["class_names"] = class_names_of(labels.astype(str))
    split = about.pop("split", None)
    if len(parts) > 1:
        if split is not None and np.ndim(split):
            raise FileFormatError(f"{path} holds 'X_train' and 'X_test', so that 'split' has no meaning. Leave it out.")
        about |= {} if split is None else {"split": split}  # how the data set was split
        split = np.repeat(["train", "test"], [len(arrays[f"X{part}"]) for part in parts])
    side = {key.removeprefix(SIDE): rows[key] for key in beside}
    features = about.pop("feature_names", None)
    return Recordings(
        **known, feature_names=features, split=split, salient=rows.get("salient"), side=side or None, about=about
    )


def read_arrays(path: Path) -> dict[str, Any]:
    """Return the plain arrays of a .npz file, text decoded."""
    if not zipfile.is_zipfile(path):
        raise FileFormatError(f"{path} is not a .npz file, or it is truncated. Write it with numpy.savez.")
    try:
        # Opened here, because NumPy does not close a file that it opened itself and cannot read.
        with path.open("rb") as handle, np.load(handle, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        return {k: np.char.decode(v, "utf-8") if v.dtype.kind == "S" else v for k, v in arrays.items()}
    except Exception as error:  # damaged files raise errors of zipfile, zlib, NumPy or the parser of its headers
        plain = "It must hold plain arrays, text as np.array(names, dtype=str), and no objects"
        raise FileFormatError(f"{path} cannot be read: {error}. {plain}.") from error


def _check_keys(
    path: Path, names: list[str], parts: tuple[str, ...], per_series: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    known = [*(key + part for key in per_series for part in parts), *ABOUT]
    for key in per_series:
        absent = [key + part for part in parts if key + part not in names]
        if absent and (key in needed or len(absent) < len(parts)):
            there = ", ".join(names) or "none"
            rule = "Needed are X and y, or X_train, y_train, X_test and y_test; other arrays for both parts or none."
            raise FileFormatError(
                f"{path} holds no array {absent[0]!r}; there are: {there}.{f' {rule}' if 'y' in needed else ''}"
            )
    # An unknown name is an error: if "subjects" were misspelt, the split would not separate the subjects.
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise FileFormatError(f"{path} holds an unknown array {name!r}.{hint} Known: {', '.join(known)}.")


def _check_part(arrays: dict[str, Any], part: str) -> None:
    """Check that all arrays of a part have one entry per series."""
    X, shape = arrays["X" + part], arrays["X" + part].shape
    if np.shape(arrays.get("lengths" + part, 0)) != shape[:1]:
        check_series(X, name="X" + part, gaps=True)  # padding is not looked at, where its lengths are known
    for key in PER_SERIES[1:]:
        expected = shape if key == "salient" else shape[:1]
        got = arrays[key + part].shape if key + part in arrays else expected
        if key == "y" and len(got) == 2:  # several numbers per series; whether they may be, is checked with the labels
            got = got[:1]
        if got != expected:
            raise ShapeError(f"{key}{part} must be of shape {expected}, as X{part} is {shape}, got {got}.")


def _joined(key: str, parts: list[Any]) -> Any:
    """Concatenate the rows of all parts, which must have the same shape and type."""
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise ShapeError(f"{key}_train and {key}_test differ in steps or features: {' and '.join(map(str, shapes))}.")
    if len({part.dtype.kind == "U" for part in parts}) > 1:
        raise FileFormatError(f"{key}_train and {key}_test have different types, text and numbers. Save both as text.")
    rows = np.concatenate(parts)
    return rows.astype(bool) if key == "salient" else rows


def _about(path: Path, key: str, array: Any, n_features: int) -> Any:
    """Convert an array of metadata from a .npz file to the argument of Dataset."""
    if key == "mutable":
        if array.dtype.kind == "U" or (array.dtype == bool and array.shape == (n_features,)):
            return array.ravel()
        raise FileFormatError(f"{path}: mutable must be {n_features} flags (bool) or names of features, got {array}.")
    if key == "sampling_rate":
        if array.size == 1 and array.dtype.kind in "iuf":
            return array.item()
        raise FileFormatError(f"{path}: sampling_rate must be one number of Hz, got {array}.")
    if key == "split" and array.ndim:
        return array  # of each series; a data set that was split before says how
    if key in ("name", "description", "split", "task"):
        return str(array)
    return str(array) if array.ndim == 0 else [str(value) for value in array.ravel()]


_FRACTION = re.compile(r"-?\d*\.\d*[1-9]\d*")
_WHOLE_NUMBER = re.compile(r"(-?(?:0|[1-9]\d{0,17}))(?:\.0+)?")


def class_names_of(labels: StrArray) -> tuple[StrArray, tuple[str, ...]]:
    """Return labels and the sorted names of the classes, whole numbers in plain form and in numerical order.

    >>> class_names_of(np.array(["10.0", "9.0"]))[1], class_names_of(np.array(["b", "10", "9"]))[1]
    (('9', '10'), ('10', '9', 'b'))
    """
    names, codes = np.unique(labels, return_inverse=True)
    numbers = [_WHOLE_NUMBER.fullmatch(name) for name in names.tolist()]
    fractions = [name for name in names.tolist() if _FRACTION.fullmatch(name)]
    if fractions and len(fractions) + sum(map(bool, numbers)) == len(names) > len(labels) / 2:
        raise LabelError(
            f"the labels of {len(labels)} series are {len(names)} different numbers, such as {fractions[0]}. For "
            "numbers that a model predicts, say task='regression'."
        )
    plain = [str(int(number[1])) for number in numbers if number]
    if len(plain) < len(names):
        return labels, tuple(names.tolist())
    return np.array(plain)[codes], tuple(sorted(set(plain), key=int))


_AT_ONCE = 1 << 18  # numbers that are made text at once, as text takes much memory


def as_stored(values: FloatArray) -> FloatArray:
    """Return numbers of a binary file as float32 if that changes none of them, otherwise as float64.

    >>> as_stored(np.array([0.5, 3.0])).dtype, as_stored(np.array([0.1, 3.0])).dtype
    (dtype('float32'), dtype('float64'))
    """
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    return single if np.array_equal(single, values, equal_nan=True) else values


def as_written(values: FloatArray) -> FloatArray:
    """Return numbers of a text file as float32 if that keeps every digit of the text, otherwise as float64.

    The digits are kept if the shortest decimal number that identifies the float32 is the one in the text. All numbers
    of at most six digits are kept, and of most ranges those of seven. NaN stands where one is missing.

    >>> as_written(np.array([0.1, 3.14159])).dtype
    dtype('float32')
    >>> as_written(np.array([1e9, 1e9 + 1])).dtype
    dtype('float64')
    """
    single = as_stored(values)
    if single.dtype == np.float32:
        return single
    known = values[~np.isnan(values)]
    parts = (known[start : start + _AT_ONCE] for start in range(0, len(known), _AT_ONCE))
    kept = all((part.astype(np.float32).astype(str).astype(np.float64) == part).all() for part in parts)
    return values.astype(np.float32) if kept else values


IRREGULAR = 0.02  # largest deviation of a time from a regular grid, in steps


def grid_of(times: FloatArray, series: IntArray) -> tuple[IntArray, float | None]:
    """Return the place of each row among the steps of its series, from 0, and how long a step is.

    Times lie on a grid if all between two rows of a series are whole multiples of the shortest. Where rows are missing,
    places are left out. If there is no such grid, or if most of its steps had no row, rows are counted instead, and the
    length of a step is None. Rows are sorted by series and time; no series has two of the same time.

    >>> grid_of(np.array([0.0, 0.5, 2.0, 7.0, 7.5]), np.array([0, 0, 0, 1, 1]))
    (array([0, 1, 4, 0, 1]), 0.5)
    >>> grid_of(np.array([0.0, 0.5, 1.7]), np.array([0, 0, 0]))
    (array([0, 1, 2]), None)
    """
    first = np.flatnonzero(np.r_[True, np.diff(series) != 0])
    counts = np.diff(np.r_[first, len(series)])
    order = np.arange(len(series)) - np.repeat(first, counts)
    apart = np.diff(times)[order[1:] > 0]
    if not len(apart):
        return order, None
    with np.errstate(all="ignore"):  # times that are equal as floating-point numbers, or very far apart
        multiples = np.round(apart / np.median(apart[apart < 1.5 * apart.min()]))
        step = float(apart.sum() / multiples.sum())
        if not (np.abs(apart / step - multiples) <= IRREGULAR).all():
            return order, None
    passed = np.zeros(len(series))
    passed[order > 0] = multiples
    places = np.cumsum(passed)
    places = np.minimum(places - np.repeat(places[first], counts), 2.0**53)
    last = places[first + counts - 1]
    if np.median((counts / (last + 1))[counts > 1]) < 0.5:
        return order, None
    return places.astype(np.int64), step
