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

import inspect
import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import (
    ConfigError,
    DataError,
    DataNotFoundError,
    FileFormatError,
    NonFiniteError,
    UnknownNameError,
    quoted,
    storage_errors,
)
from sparcets.core.registry import Registry, did_you_mean, require_extra
from sparcets.core.series import LARGEST
from sparcets.core.validation import Task, check_task
from sparcets.data.dataset import Dataset
from sparcets.data.recordings import ABOUT, PER_SERIES, SIDE, TABLES, Recordings, as_written, class_names_of, read_npz
from sparcets.io.files import atomic_path, digest_of_files, is_file, naming, write_npz

SUFFIXES = {".npz", ".ts", *TABLES}
DATASETS = Registry(
    "data set",
    {
        "moving_box": "sparcets.data.moving_box:load_moving_box",
        "motionsense": "sparcets.data.motionsense:load_motionsense",
        "catching": "sparcets.motion.catching:load_catching",
        "ui_prmd": "sparcets.data.ui_prmd:load_ui_prmd",
        "basic_motions": "sparcets.data.uea:load_basic_motions",
    },
    about={
        "moving_box": "synthetic benchmark whose salient box is known (embedded)",
        "motionsense": "phone in the pocket, 24 people, four or six activities (fetch it once)",
        "catching": "catching a ball: Ataxia, Autism, Control (simulated, embedded)",
        "ui_prmd": "arm exercises done right or wrong, 10 people (bring the file)",
        "basic_motions": "smart watch, four activities, 40 training series (comes with aeon)",
    },
    entry_point_group="sparcets.datasets",
)


def load_dataset(name: str | os.PathLike[str], **options: Any) -> Dataset:
    """Load a data set by name, or the user's own file by path.

    Parameters
    ----------
    name
        ``moving_box``, ``catching`` (simulated), ``motionsense``, ``ui_prmd``, ``basic_motions``, the name of any set
        of the UEA/UCR archive, or a path to a ``.npz``, ``.csv``, ``.parquet`` or ``.ts`` file.
    **options
        Options of the loader, among them ``seed``; ``sparcets data info NAME`` lists them.

    Examples
    --------
    >>> load_dataset("catching", seed=0)
    Dataset('catching (simulated)': 1580 training + 395 test series of 60 subjects, 60 steps, 20 features, 3 classes)
    """
    from sparcets.data.uea import UEA_NAMES, load_uea

    if not isinstance(name, (str, os.PathLike)):
        raise ConfigError(
            f"a data set is loaded by name or path, got {quoted(name)}. Arrays go to Dataset.from_arrays(X, y)."
        )
    text = os.fspath(name)
    if text in DATASETS:
        return _call(text, DATASETS.load(text), options)
    if Path(text).suffix.lower() in SUFFIXES or isinstance(name, os.PathLike) or os.sep in text:
        if not os.path.exists(text):  # noqa: PTH110 - Path.exists raises for a name that is too long
            raise DataNotFoundError(f"no file {text}. Give the path of a {', '.join(sorted(SUFFIXES))} file.")
        return _call(text, load_file, {"path": Path(text), **options})
    if text in UEA_NAMES:
        return _call(text, load_uea, {"name": text, **options})
    raise UnknownNameError(
        f"no data set {quoted(text)}.{did_you_mean(text, [*DATASETS, *UEA_NAMES])} Known: {', '.join(DATASETS)}, "
        f"the {len(UEA_NAMES)} names of the UEA/UCR archive, or a path to a {', '.join(sorted(SUFFIXES))} file."
    )


def loader_options(name: str) -> dict[str, Any]:
    """Return the options of a registered data set, or of a file, with their defaults."""
    parameters = inspect.signature(DATASETS.load(name) if name in DATASETS else load_file).parameters.values()
    options = [p for p in parameters if p.kind is not p.VAR_KEYWORD and (name in DATASETS or p.name != "path")]
    return {p.name: None if p.default is p.empty else p.default for p in options}


def _call(name: str, loader: Any, options: dict[str, Any]) -> Dataset:
    parameters = inspect.signature(loader).parameters
    known = list(parameters)
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for option in options:
        if option not in known and not takes_any:
            raise ConfigError(
                f"{name} takes no option {quoted(option)}.{did_you_mean(option, known)} Known: {', '.join(known)}."
            )
    dataset: Dataset = loader(**options)
    return dataset


def data_folder() -> Path:
    """Return the folder in which data sets are searched and to which they are downloaded."""
    named = os.environ.get("SPARCETS_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "sparcets"


def writing(path: Path) -> AbstractContextManager[None]:
    """Say what to do where a block cannot write a file or folder of data."""
    return storage_errors(path, "Free some space, or choose another folder (SPARCETS_DATA).")


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
    r"""Read a file of series; the forms are described in :mod:`sparcets.data.load`.

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
    outputs = {"task": task, "output_names": output_names, "output_units": output_units, "units": units}
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
            if suffix in TABLES:
                from sparcets.data.tables import read_table  # imports pandas

                found = read_table(file, columns, task=task)
            else:
                found = read_npz(file, task=task) if suffix == ".npz" else read_ts(file, task=task)
            data = to_dataset(found, test_size=test_size, seed=seed, **{"name": file.stem, **found.about, **known})
            return data if class_names is None else _in_order(data, class_names)
    except PermissionError as error:
        raise FileFormatError(f"{file} cannot be read: {error.strerror}.") from error


def to_dataset(found: Recordings, *, test_size: float, seed: int, **about: Any) -> Dataset:
    """Check and split recordings, as they say themselves or at random; ``about`` are arguments of ``from_arrays``."""
    how = about.pop("split", None)
    names = ("feature_names", "ids", "subjects", "lengths", "salient", "side", "split")
    about |= {name: getattr(found, name) for name in names}
    data = Dataset.from_arrays(found.X, found.labels, test_size=test_size, seed=seed, **about)
    return data if how is None else replace(data, split=how)


def read_ts(path: Path, *, task: Task | None) -> Recordings:
    """Read a .ts file, and its test part if there is one; ``task`` is what they have to be for, or None."""
    files = parts_of(path)
    parts = [_read_ts(file) for file in files]
    cases = [case.T for part, _ in parts for case in part]  # aeon's (channels, time) to (time, features)
    labels = np.concatenate([part for _, part in parts])
    found: Task = "regression" if labels.dtype.kind == "f" else "classification"
    if task not in (None, found):
        declared = "@targetLabel" if found == "regression" else "@classLabel"
        raise FileFormatError(f"{path} is for {found}, by its line {declared}, not for {task}.")
    about: dict[str, Any] = {"task": found}
    if found == "classification":
        labels, about["class_names"] = class_names_of(labels)
    n_features = cases[0].shape[1]
    other = next((case.shape[1] for case in cases if case.shape[1] != n_features), None)
    if other is not None:
        raise FileFormatError(f"{files[-1]} has {other} features, {path} has {n_features}.")
    values = as_written(np.concatenate(cases))
    X = np.split(values, np.cumsum([len(case) for case in cases])[:-1])
    if len(parts) == 1:
        return Recordings(X=X, labels=labels, about=about)
    split = np.repeat(["train", "test"], [len(part) for part, _ in parts])
    name = path.stem.removesuffix("_TRAIN")
    return Recordings(X=X, labels=labels, split=split, about={**about, "name": name})


def parts_of(path: Path) -> list[Path]:
    """Return a file, and the file of its test part if there is one."""
    base = path.stem.removesuffix("_TRAIN")
    test_path = path.with_name(f"{base}_TEST{path.suffix}")
    return [path, test_path] if base != path.stem and test_path.is_file() else [path]


def _read_ts(path: Path) -> tuple[list[Any], Any]:
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


def digest_of_data(source: str) -> str | None:
    """Return a digest of the file, or files, that a path means; None if it is no file, but the name of a data set.

    Examples
    --------
    >>> digest_of_data("catching")
    """
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
