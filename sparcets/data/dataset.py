"""Dataset: training and test series with their metadata."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sparcets.core.errors import ConfigError, DataError, LabelError, ShapeError, quoted
from sparcets.core.info import default_output_names
from sparcets.core.progress import html_card
from sparcets.core.registry import did_you_mean
from sparcets.core.series import BoolArray, FloatArray, IntArray, as_array, check_padded, is_number, missing_entries
from sparcets.core.side_inputs import Side, check_side, take_rows
from sparcets.core.validation import (
    Task,
    check_ids,
    check_labels,
    check_mutable,
    check_names,
    check_numbers,
    check_task,
    check_units,
    text_problem,
)
from sparcets.data.recordings import as_stored
from sparcets.data.splits import given_split, grouped_split, stratified_split

if TYPE_CHECKING:
    import pandas as pd


Oracle: TypeAlias = Callable[[FloatArray, IntArray], IntArray]


def _read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view: np.ndarray[Any, Any] = array.view()
    view.setflags(write=False)
    return view


@dataclass(frozen=True, kw_only=True, eq=False)
class Dataset:
    """Series of shape (batch, time, features) in their original units, split into training and test.

    Attributes
    ----------
    X_train, X_test
        float32 or float64 series (batch, time, features), of the type that was given; padded where ``lengths_*`` is
        given, NaN where entries are missing.
    y_train, y_test
        Class indices 0..K-1; for ``task="regression"``, numbers (batch,) or (batch, outputs).
    class_names
        K names; none for numbers.
    task
        ``"classification"`` or ``"regression"``.
    output_names, output_units
        Names and units of the numbers; None where unknown, and for classes.
    feature_names, units, sampling_rate
        Names and units per feature, and the sampling rate in Hz; None where unknown.
    mutable
        Per feature, whether it may change; None means all.
    salient_train, salient_test
        Entries that determine the class, if the generating process is known (batch, time, features).
    ids_train, ids_test
        Name of each series, such as that of a recording; None where unknown.
    subjects_train, subjects_test
        Recorded person, one id per series.
    lengths_train, lengths_test
        True length of each series, if they are padded.
    side_train, side_test
        Side inputs of a model that takes more than the series: arrays with a row per series, by name; None if unknown.
    oracle
        ``oracle(X, rows)``: the true class of changed test series according to the generating process; ``rows`` are the
        indices of the original series in ``X_test``. None for real data.
    name, description, split
        Name, short description, and how the data were split (``"random"``, ``"subject"``, ``"given"``).

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)  # (batch, time, features), labels
    >>> ds = sp.Dataset.from_arrays(X, y, class_names=["calm", "brisk", "wild"], sampling_rate=50.0)
    >>> ds.X_train.shape, ds.X_test.shape, ds.feature_names
    ((48, 20, 4), (12, 20, 4), None)
    """

    name: str
    X_train: FloatArray
    y_train: np.ndarray[Any, Any]
    X_test: FloatArray
    y_test: np.ndarray[Any, Any]
    class_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    units: tuple[str, ...] | None = None
    sampling_rate: float | None = None
    mutable: BoolArray | None = None
    salient_train: BoolArray | None = None
    salient_test: BoolArray | None = None
    ids_train: np.ndarray[Any, Any] | None = None
    ids_test: np.ndarray[Any, Any] | None = None
    subjects_train: np.ndarray[Any, Any] | None = None
    subjects_test: np.ndarray[Any, Any] | None = None
    lengths_train: IntArray | None = None
    lengths_test: IntArray | None = None
    side_train: Side | None = None
    side_test: Side | None = None
    oracle: Oracle | None = None
    description: str = ""
    split: str = "given"
    task: Task = "classification"
    output_names: tuple[str, ...] | None = None
    output_units: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        self._check_sizes()
        # The arrays are shared by several objects, so they are made read-only.
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, field.name, _read_only(value))
            elif isinstance(value, dict):
                object.__setattr__(self, field.name, {name: _read_only(array) for name, array in value.items()})

    def _check_sizes(self) -> None:
        """Check that the shapes agree; :meth:`from_arrays` checks the values too."""
        for part in ("train", "test"):
            X, y = getattr(self, f"X_{part}"), getattr(self, f"y_{part}")
            if X.ndim != 3 or len(X) != len(y) or X.shape[1:] != self.X_train.shape[1:]:
                raise ShapeError(
                    f"X_{part} must be (batch, time, features) with one label each in y_{part}, and of equal size in "
                    f"training and test; got {X.shape} and {np.shape(y)}. Dataset.from_arrays(X, y) does the splitting."
                )
            if (
                len(y)
                and self.task == "classification"
                and not 0 <= int(np.min(y)) <= int(np.max(y)) < len(self.class_names)
            ):
                raise LabelError(
                    f"y_{part} holds labels {int(np.min(y))} to {int(np.max(y))}, but there are "
                    f"{len(self.class_names)} class names. Labels are class indices 0..K-1."
                )
            side = getattr(self, f"side_{part}")
            if side is not None:
                check_side(side, len(X))
        for what in ("feature_names", "units", "mutable"):
            given = getattr(self, what)
            if given is not None and len(given) != self.X_train.shape[2]:
                raise ShapeError(f"{what} must be {self.X_train.shape[2]}, one per feature, got {len(given)}.")

    @property
    def n_steps(self) -> int:
        """Number of time steps (of the longest series)."""
        return int(self.X_train.shape[1])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X_train.shape[2])

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def n_missing(self) -> int:
        """Number of missing entries, NaN, of all series."""
        gaps = (missing_entries(X) for X in (self.X_train, self.X_test))
        return sum(int(part.sum()) for part in gaps if part is not None)

    def __repr__(self) -> str:
        missing = self.n_missing
        what = f"{self.n_classes} classes"
        if self.task == "regression":
            what = f"numbers {', '.join(self.output_names)}" if self.output_names else "numbers"
        people = ""
        if self.subjects_train is not None and self.subjects_test is not None:
            train, test = set(self.subjects_train.tolist()), set(self.subjects_test.tolist())
            people = f" of {len(train | test)} subjects" if train & test else f" of {len(train)} + {len(test)} subjects"
        return (
            f"Dataset({self.name!r}: {len(self.X_train)} training + {len(self.X_test)} test series{people}, "
            f"{self.n_steps} steps, {self.n_features} features, {what}"
            f"{f', {missing} values missing' if missing else ''})"
        )

    def _repr_html_(self) -> str:
        return dataset_card(self)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        test_size: float = 0.2,
        seed: int = 0,
        split: Any = None,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        mutable: Any = None,
        units: str | Sequence[str] | None = None,
        sampling_rate: float | None = None,
        salient: BoolArray | None = None,
        ids: Any = None,
        subjects: Any = None,
        lengths: Any = None,
        side: Any = None,
        oracle: Oracle | None = None,
        name: str = "arrays",
        description: str = "",
        task: Task = "classification",
        output_names: str | Sequence[str] | None = None,
        output_units: str | Sequence[str] | None = None,
        **unknown: Any,
    ) -> Dataset:
        """Check arrays and split them: as ``split`` says, or by subject, or stratified by class.

        Parameters
        ----------
        X
            Series (batch, time, features), or a list of series (time, features) of unequal length, which are padded.
            float32 and float64 keep their type, whole numbers become float64.
        y
            One label per series: class indices 0..K-1, or strings, which become the class names; for
            ``task="regression"`` a number, or several.
        test_size, seed
            Share held out (of the subjects, if given) and the seed of the split, if ``split`` is not given.
        split
            ``"train"`` or ``"test"`` for each series, or the rows of the two parts, a pair of arrays.
        feature_names, class_names
            Names of the features and of the classes.
        mutable
            Features that may change: flags, names or indices.
        units
            One unit for all features, or one per feature.
        sampling_rate
            In Hz.
        subjects
            One id per series; no subject is in both parts, unless ``split`` says so.
        salient, ids, lengths, side
            Per series, as in the attributes.
        oracle, name, description
            As in the attributes.
        task, output_names, output_units
            For numbers as labels, ``task="regression"``; then names and units of the numbers, a text for a single one.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> Dataset.from_arrays(rng.normal(size=(50, 8, 3)), ["sick", "well"] * 25)
        Dataset('arrays': 40 training + 10 test series, 8 steps, 3 features, 2 classes)
        """
        for option in unknown:
            known = [name for name in inspect.signature(cls.from_arrays).parameters if name != "unknown"]
            raise ConfigError(
                f"Dataset.from_arrays takes no option {option!r}.{did_you_mean(option, known)} Known: "
                f"{', '.join(known)}."
            )
        X, lengths = check_padded(X, lengths, gaps=True)
        n_features = X.shape[2]
        if not isinstance(name, str) or not isinstance(description, str):
            raise DataError(f"name and description must be text, got {quoted(name)} and {quoted(description)}.")
        # Names of files may be any bytes.
        name = "".join("�" if text_problem(character, empty=True) else character for character in name)
        description = description.encode("utf-8", "replace").decode()
        labels, of_task = _check_task_labels(y, X, task, class_names, output_names, output_units)
        names = of_task["class_names"]
        features = check_names(feature_names, n=n_features, what="feature_names")
        units = check_units(units, what="units", n=n_features, each="feature")
        if sampling_rate is not None and not (is_number(sampling_rate) and 0 < sampling_rate < np.inf):
            raise DataError(f"sampling_rate must be a positive number of Hz, got {quoted(sampling_rate)}.")
        if salient is not None:
            salient = as_array(salient, "salient", "Pass a flag for every entry.")
            if salient.shape != X.shape:
                raise ShapeError(f"salient must have a flag for every entry, {X.shape}, got shape {salient.shape}.")
        subjects = check_ids(subjects, what="subjects", n=len(X))
        of_each = {
            "X": X,
            "y": labels,
            "salient": salient,
            "ids": check_ids(ids, what="ids", n=len(X)),
            "subjects": subjects,
            "lengths": lengths,
        }
        beside = None if side is None else check_side(side, len(X))
        if split is not None:
            (train, test), how = given_split(split, n_samples=len(X)), "given"
        elif subjects is None:
            classes = labels if names else np.zeros(len(X), dtype=np.int64)  # of numbers, there is nothing to balance
            (train, test), how = stratified_split(classes, test_size=test_size, seed=seed), "random"
        else:
            (train, test), how = grouped_split(subjects, test_size=test_size, seed=seed), "subject"
        absent = sorted(set(labels.tolist()) - set(labels[train].tolist())) if names else []
        if absent:
            raise LabelError(
                f"class {names[absent[0]]!r} has no sample in the training part. Choose another seed or split."
            )
        parts: dict[str, Any] = {}
        for part, rows in (("train", train), ("test", test)):
            parts |= {f"{key}_{part}": None if a is None else np.asarray(a)[rows] for key, a in of_each.items()}
            parts[f"side_{part}"] = take_rows(beside, rows)
        return cls(
            name=name,
            **parts,
            **of_task,
            feature_names=features,
            units=units,
            sampling_rate=None if sampling_rate is None else float(sampling_rate),
            mutable=check_mutable(mutable, feature_names=features, n_features=n_features),
            oracle=oracle,
            description=description,
            split=how,
            task=task,
        )

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        series: str = "series",
        time: str = "time",
        label: str | Sequence[str] = "label",
        subject: str = "subject",
        split: str = "split",
        feature: str = "feature",
        value: str = "value",
        side: str | Sequence[str] = (),
        test_size: float = 0.2,
        seed: int = 0,
        **known: Any,
    ) -> Dataset:
        """Build from a frame of pandas in one of the forms described in :mod:`sparcets.data.load`.

        Parameters
        ----------
        frame
            A row per series and step, with a column for each feature (long); or per series, step and feature (tidy);
            or per series, with columns ``<feature>_<step>`` (wide). Named levels of the index count as columns, and two
            levels of column names as ``<feature>_<step>``.
        series, time, label, subject, split, feature, value
            Names of the columns with that meaning; ``subject`` and ``split`` are optional, ``label`` may be several if
            they are numbers. Every other column is a feature.
        side
            Columns that are side inputs of a model, with one value per series.
        test_size, seed
            Share held out (of the subjects, if given) and the seed of the split, if there is no column ``split``.
        **known
            Further metadata, as in :meth:`from_arrays`: ``units``, ``sampling_rate``, ``mutable``, ``name``,
            ``description``; ``task="regression"`` if the labels are numbers. The sampling rate is found by itself if
            ``time`` is in seconds or a date.

        Examples
        --------
        >>> import pandas as pd
        >>> rows = [(i, t, "sick" if i % 2 else "well", 60.0 + i) for i in range(1, 11) for t in (0, 0.5)]
        >>> frame = pd.DataFrame(rows, columns=["id", "t", "y", "pulse"])
        >>> ds = Dataset.from_frame(frame, series="id", time="t", label="y")
        >>> ds, ds.sampling_rate, ds.ids_test.tolist()
        (Dataset('frame': 8 training + 2 test series, 2 steps, 1 features, 2 classes), 2.0, ['6', '1'])
        """
        from sparcets.data.load import to_dataset
        from sparcets.data.tables import read_frame

        columns: dict[str, Any] = {"series": series, "time": time, "subject": subject, "split": split}
        columns |= {"feature": feature, "value": value, "label": label, "side": side}
        if "task" in known:
            check_task(known["task"])
        found = read_frame(frame, columns, task=known.get("task"))
        return to_dataset(found, test_size=test_size, seed=seed, **{"name": "frame", **found.about, **known})


MAX_NAMES = 12  # features and classes that are named before the rest is counted


def dataset_card(ds: Dataset) -> str:
    """Return the numbers of series by class, and what is known of them, as HTML."""
    rate = "" if ds.sampling_rate is None else f" at {ds.sampling_rate:g} Hz"
    lines = [
        f"{len(ds.X_train)} training + {len(ds.X_test)} test series (split: {ds.split}), {ds.n_steps} steps{rate}, "
        f"{ds.n_features} feature{'s' * (ds.n_features != 1)}",
        *([ds.description] if ds.description else []),
    ]
    if ds.feature_names is not None:
        units = ds.units or ("",) * ds.n_features
        named = [f"{name} ({unit})" if unit else name for name, unit in zip(ds.feature_names, units, strict=True)]
        lines.append(f"features: {_first(named)}")
        if ds.mutable is not None and not ds.mutable.all():
            fixed = [name for name, free in zip(ds.feature_names, ds.mutable, strict=True) if not free]
            lines.append(f"may not change: {_first(fixed)}")
    if ds.lengths_train is not None and ds.lengths_test is not None:
        lengths = np.concatenate([ds.lengths_train, ds.lengths_test])
        lines.append(f"padded: {lengths.min()} to {lengths.max()} steps are recorded")
    if ds.n_missing:
        share = 100 * ds.n_missing / (ds.X_train.size + ds.X_test.size)
        lines.append(f"missing: {ds.n_missing} values ({share:.2g} %)")
    if ds.subjects_train is not None and ds.subjects_test is not None:
        people = [len(np.unique(part)) for part in (ds.subjects_train, ds.subjects_test)]
        lines.append(f"subjects: {people[0]} in training, {people[1]} in test")
    if ds.side_train is not None:
        lines.append(f"side inputs: {_first(list(ds.side_train))}")
    heads, rows = label_table(ds)
    if len(rows) > MAX_NAMES:
        rest = rows[MAX_NAMES:]
        more: tuple[Any, ...] = (f"… and {len(rest)} more", *("" for _ in heads[1:]))
        if ds.task == "classification":
            more = (more[0], *(sum(row[k] for row in rest) for k in (1, 2)))
        rows = [*rows[:MAX_NAMES], more]
    return html_card(f"Dataset {ds.name}", lines, heads=heads, rows=rows)


def label_table(ds: Dataset) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return names of columns and rows: the numbers of series by class, or the range of the numbers by output.

    >>> from sparcets.data.dataset import Dataset
    >>> X, y = np.zeros((6, 2, 1)), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    >>> ds = Dataset.from_arrays(X, y, split=(np.arange(4), np.arange(4, 6)), task="regression", output_units="mmHg")
    >>> label_table(ds)
    (('number', 'unit', 'training', 'test'), [('number', 'mmHg', '1 to 4, mean 2.5', '5 to 6, mean 5.5')])
    """
    parts = (ds.y_train, ds.y_test)
    if ds.task == "classification":
        counts = [np.bincount(y, minlength=ds.n_classes).tolist() for y in parts]
        return ("class", "training", "test"), list(zip(ds.class_names, *counts, strict=True))
    names = ds.output_names or default_output_names(ds.y_train.reshape(len(ds.y_train), -1).shape[1])
    units = ds.output_units or ("",) * len(names)

    def spread(y: Any, k: int) -> str:
        column = y.reshape(len(y), -1)[:, k]
        return f"{column.min():.4g} to {column.max():.4g}, mean {column.mean():.4g}" if len(y) else ""

    rows = [(name, units[k], *(spread(y, k) for y in parts)) for k, name in enumerate(names)]
    return ("number", "unit", "training", "test"), rows


def _first(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    return ", ".join(names[:MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def dataset_digest(dataset: Dataset) -> str:
    """Return a hex digest (64 characters) of the training part: series, labels, lengths, subjects and class names.

    Models trained on the data are stored under this key, so that changed data are not mistaken for the old.

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> one, two = (Dataset.from_arrays(*make_series(30), name=name) for name in ("mine", "yours"))
    >>> dataset_digest(one) == dataset_digest(two)
    True
    """
    digest = hashlib.sha256(repr((dataset.X_train.shape, dataset.class_names)).encode())
    for array in (dataset.X_train, dataset.y_train, dataset.lengths_train):
        digest.update(b"none" if array is None else np.ascontiguousarray(array).data)
    if dataset.subjects_train is not None:  # which decide what a model is validated on
        digest.update(repr(np.asarray(dataset.subjects_train).tolist()).encode())
    return digest.hexdigest()


def series_digests(X: Any) -> list[str]:
    """Return a hex digest (32 characters) per series (batch, time, features), of its values.

    Equal values have equal digests, whether they are given as float32 or as float64.

    Examples
    --------
    >>> first, second, again = series_digests([[[1.0], [2.0]], [[1.0], [3.0]], [[1.0], [2.0]]])
    >>> first == again, first == second
    (True, False)
    """
    wide = (np.ascontiguousarray(series, dtype=np.float64) for series in X)
    return [hashlib.blake2b(as_stored(series).data, digest_size=16).hexdigest() for series in wide]


def _check_task_labels(
    y: Any, X: FloatArray, task: Task, class_names: Any, names: Any, units: Any
) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """Return the labels, and by name of the attribute, the names of the classes, or names and units of the numbers."""
    check_task(task)
    if task == "regression":
        if class_names is not None:
            raise ConfigError("class_names are for classes; task='regression' takes output_names and output_units.")
        numbers = check_numbers(y, n_samples=len(X))
        n = numbers.shape[1]
        outputs = check_names([names] if isinstance(names, str) else names, what="output_names", n=n)
        given = check_units(units, what="output_units", n=n, each="output")
        about = {"class_names": (), "output_names": outputs, "output_units": given}
        return numbers.reshape(np.shape(y)), about
    if names is not None or units is not None:
        raise ConfigError("output_names and output_units are for numbers as labels: pass task='regression', too.")
    labels, found = check_labels(y, n_samples=len(X), class_names=class_names)
    return labels, {"class_names": found}
