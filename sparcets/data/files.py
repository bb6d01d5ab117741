"""User files: ``.npz``, ``.csv``, ``.parquet`` and ``.ts``, each read into a :class:`Dataset`.

**.npz**, plain arrays: ``X`` (batch, time, features) and ``y`` (batch,), which are split on loading: by ``split`` if it
says ``"train"`` or ``"test"`` for each series, else by subject if ``subjects`` is given, else at random; or
``X_train``, ``y_train``, ``X_test``, ``y_test``. Optional: ``feature_names``, ``class_names``, ``units``,
``sampling_rate`` (Hz), ``mutable`` (flags or names of features), ``name``, ``description``; for numbers as labels
``task``, ``output_names``, ``output_units``; and per series ``ids``, ``subjects``, ``lengths``, ``salient`` (with
``_train`` and ``_test`` where ``X`` has them), as :func:`save_dataset` writes them; side inputs of a model, each as
``side_<name>``.

**.csv** and **.parquet**, tables in one of three forms, recognised by their columns; long, a row per series and step::

    series,time,label,acc,gyro
    a,0,walk,0.1,2.0
    a,1,walk,0.2,2.1
    b,0,sit,0.0,0.3

tidy, a row per series, step and feature::

    series,time,feature,value,label
    a,0,acc,0.1,walk
    a,0,gyro,2.0,walk

wide, a row per series and columns ``<feature>_<step>`` or ``<feature>.<step>``, the steps without gaps::

    label,acc_0,acc_1,gyro_0,gyro_1
    walk,0.1,0.2,2.0,2.1
    sit,0.0,,0.3,

Each may have the columns ``subject`` and ``split`` (``train`` or ``test``), the wide form also ``series``, and columns
of side inputs of a model, such as an age, which are named by ``side=["age"]``. Columns of other names are named by
``load_dataset("mine.csv", series="id", time="t", label="y", subject="patient")``, on the command line by ``-o series=id
-o time=t -o label=y -o subject=patient``; ``units=["°", "mm"]``, or one for all, are their units, and
``class_names=["ok", "fault"]`` is another order of the classes than the sorted one. Series are in order of first
appearance. Series of unequal length are padded with zeros at the end, and ``lengths`` is set; in the wide form a series
ends where the cells of all features are empty from there on, as ``sit`` above after one step. Columns of a .csv file
are separated by commas, or by semicolons or tabs; then numbers may have decimal commas.

Rows of a series are sorted by ``time``: numbers, in seconds if they are not all whole, or ISO dates, all with a time
zone or all without. If all times between two rows of a series are whole multiples of the shortest, as they are for
0.00, 0.02, 0.08, that is one step of all series and gives the sampling rate; steps without a row are missing, NaN.
Where steps are left out on purpose, such as weekends, number them instead. A series may begin later or end earlier than
others: its first row is its first step. Times that have no common step, or leave most steps out, only sort the rows,
which a warning says. A series cannot have two rows of one time.

**.ts**, the format of the UEA/UCR archive. If ``NAME_TEST.ts`` is in the same folder as ``NAME_TRAIN.ts``, it is the
test part, and the data set is called ``NAME``. Labels are in lower case.

Labels are names of classes, sorted. Whole numbers are sorted numerically: 0..K-1 are thus the class indices themselves,
while 1..K become the classes named "1", "2", …, with the indices 0..K-1. Names of classes and features, ids, subjects
and units are one line of text each; only units may be empty.

Numbers that a model predicts are labels by ``load_dataset("mine.csv", task="regression", label="pressure")``, several
by ``label=["systolic", "diastolic"]``, with ``output_units="mmHg"`` if wanted; on the command line ``-o
task=regression -o label=systolic,diastolic``. In a .npz file ``y`` is (batch,) or (batch, outputs); a .ts file says
``@targetLabel true`` itself.

An entry that nothing was measured for is missing, NaN: in a .csv or .parquet file an empty cell of a feature before the
end of its series, in a .ts file ``?``, in arrays NaN. ``sp.wrap(model, missing=…)`` and
``sp.ClassifierConfig(missing=…)`` say what a model gets there: ``"refuse"`` (the default: missing values are an error),
``"keep"`` (NaN; wrapped models only), ``"forward"`` (the last value before; for the first ones, the next), ``"mean"``
(of the same feature of the same series), or, for wrapped models, a function from series with NaN (batch, time,
features) to filled ones. Explainers of such a classifier take series with gaps, and leave them as they are. A series
has at least one value, and of every feature there is one in some training series; where a series has none of a feature,
a network of ours gets its mean over the training series, and a wrapped model needs a function.

Numbers keep all their digits. Those of a text file (.csv, .ts) become float32 if its shortest decimal form is the text
of every number, as it is for six digits and mostly for seven; otherwise float64. Arrays of a .npz file keep their type,
and columns of a .parquet file become float32 if that changes no number.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import LARGEST, FloatArray, StrArray
from sparcets.core.errors import (
    ConfigError,
    DataError,
    DataNotFoundError,
    FileFormatError,
    LabelError,
    NonFiniteError,
    ShapeError,
)
from sparcets.core.registry import did_you_mean, require_extra
from sparcets.core.validation import Task, check_series, check_task
from sparcets.data.dataset import Dataset
from sparcets.data.precision import as_written
from sparcets.io.files import atomic_path, digest_of_files, is_file, naming, write_npz

if TYPE_CHECKING:
    from sparcets.data.tables import Sheet


def load_ts(path: Path, *, test_size: float, seed: int, task: Task | None, **known: Any) -> Dataset:
    """Read a file, and its test part if there is one; see :mod:`sparcets.data.files`.

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
    base, test_path = path.stem.removesuffix("_TRAIN"), parts_of(path)[-1]
    parts = [_read_ts(part) for part in parts_of(path)]
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


def parts_of(path: Path) -> list[Path]:
    """Return a file, and the file of its test part if there is one."""
    base = path.stem.removesuffix("_TRAIN")
    test_path = path.with_name(f"{base}_TEST{path.suffix}")
    return [path, test_path] if base != path.stem and test_path.is_file() else [path]


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


TABLES = (".csv", ".parquet")
SUFFIXES = {".npz", ".ts", *TABLES}

PER_SERIES = ("X", "y", "ids", "subjects", "lengths", "salient")
SIDE = "side_"  # begins the name of an array with side inputs
OUTPUTS = ("task", "output_names", "output_units")
ABOUT = ("feature_names", "class_names", "units", "sampling_rate", "mutable", "name", "description", "split", *OUTPUTS)


def load_file(
    path: str | os.PathLike[str],
    *,
    test_size: float = 0.2,
    seed: int = 0,
    series: str | None = None,
    time: str | None = None,
    label: str | Sequence[str] | None = None,
    subject: str | None = None,
    split: str | None = None,
    side: str | Sequence[str] | None = None,
    units: str | Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    task: Task | None = None,
    output_names: str | Sequence[str] | None = None,
    output_units: str | Sequence[str] | None = None,
) -> Dataset:
    r"""Read a file of series; the forms are described in :mod:`sparcets.data.files`.

    Parameters
    ----------
    path
        A ``.npz``, ``.csv``, ``.parquet`` or ``.ts`` file; its stem is the name of the data set.
    test_size, seed
        Share held out (of the subjects, if known) and the seed of the split, if the file does not define a split.
    series, time, label, subject, split
        Names of those columns of a .csv or .parquet file, where they are called otherwise; ``label`` may be several if
        they are numbers.
    side
        Columns of a .csv or .parquet file that are side inputs of the model, one value per series; else they are
        features.
    units
        Units of the features of a .csv or .parquet file: one for all, or one per feature.
    class_names
        The classes in another order than sorted, such as that of a model's outputs.
    task
        ``"regression"`` if the labels are numbers to predict, ``"classification"`` if they are classes; None is what a
        .npz or .ts file says itself, otherwise classification.
    output_names, output_units
        Names and units of the numbers; by themselves, the names are those of the columns.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> rows = [f"{s},{t},{'sick' if s % 2 else 'well'},{s + t}" for s in range(10) for t in range(3)]
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "patients.csv")
    ...     _ = path.write_text("series,time,label,pulse\n" + "\n".join(rows))
    ...     load_file(path)
    Dataset('patients': 8 training + 2 test series, 3 steps, 1 features, 2 classes)
    """
    file = Path(path)
    suffix = file.suffix.lower()
    roles = {"series": series, "time": time, "subject": subject, "split": split, "label": label, "side": side}
    columns = {role: name for role, name in roles.items() if name is not None}
    outputs = {"output_names": output_names, "output_units": output_units, "units": units}
    known = {name: value for name, value in outputs.items() if value is not None}
    if task is not None:
        check_task(task)
    if suffix not in SUFFIXES:
        raise FileFormatError(f"{file} has an unknown format. Known: {', '.join(sorted(SUFFIXES))}.")
    if not is_file(file):
        raise DataNotFoundError(f"no file {file}. Give the path of a {', '.join(sorted(SUFFIXES))} file.")
    if columns and suffix not in TABLES:
        raise ConfigError(f"{', '.join(columns)}: names of columns are for {' and '.join(TABLES)} files, got {file}.")
    if units is not None and suffix not in TABLES:
        raise ConfigError(
            f"units are an option of {' and '.join(TABLES)} files; a .npz file holds its own. Got {file}."
        )
    try:
        with naming(file):
            load = _load_npz if suffix == ".npz" else load_ts
            if suffix in TABLES:
                load = partial(_load_table, columns=columns)
            data = load(file, test_size=test_size, seed=seed, task=task, **known)
            return data if class_names is None else _in_order(data, class_names)
    except PermissionError as error:
        raise FileFormatError(f"{file} cannot be read: {error.strerror}.") from error


def digest_of_data(source: str) -> str | None:
    """Return a digest of the file, or files, that a path means; None if it is no file, but the name of a data set.

    Examples
    --------
    >>> digest_of_data("catching")
    """
    from sparcets.data.load import DATASETS

    file = Path(source)
    if source in DATASETS or file.suffix.lower() not in SUFFIXES or not is_file(file):
        return None  # no file is read by such a name
    return digest_of_files(parts_of(file) if file.suffix.lower() == ".ts" else [file])


def _in_order(data: Dataset, class_names: Sequence[str]) -> Dataset:
    """Return a data set whose classes have another order."""
    names = [class_names] if isinstance(class_names, str) else [str(name) for name in class_names]
    if data.task != "classification" or sorted(names) != sorted(data.class_names):
        there = "numbers" if data.task != "classification" else f"the classes {', '.join(data.class_names)}"
        raise ConfigError(f"class_names names the classes of the file in another order; it has {there}, got {names}.")
    new = np.array([names.index(name) for name in data.class_names])
    return replace(data, y_train=new[data.y_train], y_test=new[data.y_test], class_names=tuple(names))


def save_dataset(dataset: Dataset, path: str | os.PathLike[str]) -> Path:
    """Write a data set atomically as ``.npz`` and return the path; :func:`load_file` reads it back.

    The oracle is a function and is not saved.

    Parameters
    ----------
    dataset
        Data set to write.
    path
        Output path; it must end in ``.npz``.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = save_dataset(sp.Dataset.from_arrays(*make_series(30)), f"{folder}/own.npz")
    ...     sp.load_dataset(path).n_classes
    3
    """
    file = Path(path)
    if file.suffix.lower() != ".npz":
        raise FileFormatError(f"a data set is saved as .npz, got {file}. Choose {file.with_suffix('.npz')}.")
    names = [*ABOUT, *(f"{key}_{part}" for key in PER_SERIES for part in ("train", "test"))]
    known = {name: getattr(dataset, name) for name in names}
    if dataset.task == "regression":
        del known["class_names"]
    arrays = {name: np.asarray(value) for name, value in known.items() if value is not None}
    for part, side in (("train", dataset.side_train), ("test", dataset.side_test)):
        arrays |= {f"{SIDE}{name}_{part}": array for name, array in (side or {}).items()}
    for name, array in arrays.items():
        if array.dtype == object:
            raise DataError(
                f"{name} holds Python objects, which are not saved. Make it an array of strings or numbers."
            )
    with atomic_path(file) as temporary, temporary.open("wb") as handle:
        write_npz(handle, arrays)
    return file


def _load_table(path: Path, *, columns: dict[str, Any], test_size: float, seed: int, **known: Any) -> Dataset:
    from sparcets.data.tables import column_roles, read_sheet  # imports pandas

    roles = column_roles(columns, task=known["task"])
    sheet = read_sheet(path, roles, number_labels=known["task"] == "regression")
    return dataset_of_sheet(sheet, test_size=test_size, seed=seed, name=path.stem, **known)


def dataset_of_sheet(sheet: Sheet, *, test_size: float, seed: int, task: Task | None = None, **known: Any) -> Dataset:
    """Convert a sheet, split by its column ``split`` if there is one; ``known`` is further metadata."""
    from sparcets.data.tables import to_table

    table = to_table(sheet, number_labels=task == "regression")
    labels: Any = table.labels
    about: dict[str, Any] = {"task": task or "classification"}
    if task == "regression":
        labels = labels[:, 0] if labels.shape[1] == 1 else labels
        if sheet.labels != ["label"] or "label" in sheet.columns:  # a column that is called otherwise names its numbers
            about["output_names"] = [sheet.name(column) for column in sheet.labels]
    else:
        labels, about["class_names"] = class_names_of(labels)
    found: dict[str, Any] = {
        **about,
        "feature_names": table.feature_names,
        "ids": table.ids,
        "subjects": table.subjects,
        "lengths": table.lengths,
        "sampling_rate": table.sampling_rate,
        "side": table.side,
        **known,
    }
    return Dataset.from_arrays(table.X, labels, test_size=test_size, seed=seed, split=table.split, **found)


def _load_npz(path: Path, *, test_size: float, seed: int, task: Task | None, **known: Any) -> Dataset:
    arrays = read_npz(path)
    parts = ("_train", "_test") if "X_train" in arrays else ("",)
    beside = sorted({k.removesuffix(part) for k in arrays for part in parts if k.startswith(SIDE) and k.endswith(part)})
    _check_keys(path, list(arrays), parts, beside)
    for part in parts:
        _check_part(arrays, part)
    present = [key for key in (*PER_SERIES, *beside) if key + parts[0] in arrays]
    rows = {key: _joined(key, [arrays[key + part] for part in parts]) for key in present}
    X, y = rows.pop("X"), rows.pop("y")
    side = {key.removeprefix(SIDE): rows.pop(key) for key in beside}
    known |= {"side": side} if side else {}
    about = {"name": path.stem, **{key: _about(path, key, arrays[key], X.shape[2]) for key in ABOUT if key in arrays}}
    about |= known | ({} if task is None else {"task": task})
    if (
        about.get("task") != "regression"
        and "class_names" not in about
        and y.dtype.kind in "iubfU"
        and (y.dtype.kind != "f" or (y == np.round(y)).all())
    ):
        y, about["class_names"] = class_names_of((y.astype(int) if y.dtype.kind == "b" else y).astype(str))
    if parts == ("",):
        return Dataset.from_arrays(X, y, test_size=test_size, seed=seed, **rows, **about)
    if np.ndim(about.get("split", "")):
        raise FileFormatError(f"{path} holds 'X_train' and 'X_test', so that 'split' has no meaning. Leave it out.")
    train, test = np.split(np.arange(len(X)), [len(arrays["X_train"])])
    return Dataset.from_rows(X, y, train=train, test=test, **rows, **about)


def read_npz(path: Path) -> dict[str, Any]:
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


def _check_keys(path: Path, names: list[str], parts: tuple[str, ...], beside: list[str]) -> None:
    there = f"there are: {', '.join(names) or 'none'}"
    known = [*(key + part for key in (*PER_SERIES, *beside) for part in parts), *ABOUT]
    for key in (*PER_SERIES, *beside):
        absent = [key + part for part in parts if key + part not in names]
        if absent and (key in ("X", "y") or len(absent) < len(parts)):
            needed = "Needed are X and y, or X_train, y_train, X_test and y_test; other arrays for both parts or none."
            raise FileFormatError(f"{path} holds no array {absent[0]!r}; {there}. {needed}")
    # An unknown name is an error: if "subjects" were misspelt, the split would not separate the subjects.
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise FileFormatError(f"{path} holds an unknown array {name!r}.{hint} Known: {', '.join(known)}.")


def _check_part(arrays: dict[str, Any], part: str) -> None:
    """Check that all arrays of a part have one entry per series."""
    X, lengths = arrays["X" + part], arrays.get("lengths" + part)
    shape = X.shape
    if lengths is None or lengths.shape != shape[:1]:
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
