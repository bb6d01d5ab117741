"""Dataset: training and test series with their metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, IntArray, missing_entries
from sparcets.datasets.labels import Task, check_numbers, check_task, check_task_labels
from sparcets.datasets.precision import LARGEST
from sparcets.datasets.splits import grouped_split, stratified_split
from sparcets.errors import DataError, LabelError, ShapeError
from sparcets.side_inputs import Side, check_side, take_rows
from sparcets.validation import (
    check_labels,
    check_mutable,
    check_names,
    check_padded,
)

if TYPE_CHECKING:
    import pandas as pd

NUMBER = (int, float, np.integer, np.floating)
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
        """Check that the shapes agree; :meth:`from_arrays` and :meth:`from_rows` check the values too."""
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
        from sparcets.datasets.card import dataset_card

        return dataset_card(self)

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        test_size: float = 0.2,
        seed: int = 0,
        subjects: Any = None,
        name: str = "arrays",
        **known: Any,
    ) -> Dataset:
        """Check arrays and split them: by subject where ``subjects`` are given, otherwise stratified by class.

        Parameters
        ----------
        X
            Series (batch, time, features), or a list of series (time, features) of unequal length, which are padded.
            float32 and float64 keep their type, whole numbers become float64.
        y
            One label per series: class indices 0..K-1, or strings; for ``task="regression"`` a number, or several.
        test_size, seed
            Share held out (of the subjects, if given) and the seed of the split.
        subjects
            One id per series; no subject is in both parts.
        name
            Name of the data set.
        **known
            Further metadata, as in :meth:`from_rows`: ``feature_names``, ``class_names``, ``mutable``, ``units``,
            ``sampling_rate``, ``ids``, ``lengths``, ``side``, ``description``, ``task``, ``output_names``,
            ``output_units``.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> Dataset.from_arrays(rng.normal(size=(50, 8, 3)), ["sick", "well"] * 25)
        Dataset('arrays': 40 training + 10 test series, 8 steps, 3 features, 2 classes)
        """
        X, known["lengths"] = check_padded(X, known.get("lengths"), gaps=True)
        if known.get("task") == "regression":
            labels = np.zeros(len(check_numbers(y, n_samples=len(X))), dtype=np.int64)  # nothing to balance
        else:
            labels, _ = check_labels(y, n_samples=len(X), class_names=known.get("class_names"))
        if subjects is None:
            train, test = stratified_split(labels, test_size=test_size, seed=seed)
        else:
            if np.shape(subjects) != (len(X),):
                raise ShapeError(f"subjects must be {len(X)} ids, one per series, got shape {np.shape(subjects)}.")
            train, test = grouped_split(subjects, test_size=test_size, seed=seed)
        split = "random" if subjects is None else "subject"
        return cls.from_rows(X, y, train=train, test=test, subjects=subjects, name=name, split=split, **known)

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
        """Build from a frame of pandas in one of the forms described in :mod:`sparcets.datasets.files`.

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
            Further metadata, as in :meth:`from_rows`: ``units``, ``sampling_rate``, ``mutable``, ``name``,
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
        from sparcets.datasets.files import dataset_of_sheet
        from sparcets.datasets.sheets import column_roles, sheet_of_frame

        columns: dict[str, Any] = {"series": series, "time": time, "subject": subject, "split": split}
        columns |= {"feature": feature, "value": value, "label": label, "side": side}
        if "task" in known:
            check_task(known["task"])
        sheet = sheet_of_frame(frame, column_roles(columns, task=known.get("task")), source="the frame")
        return dataset_of_sheet(sheet, test_size=test_size, seed=seed, **{"name": "frame", **known})

    @classmethod
    def from_rows(
        cls,
        X: Any,
        y: Any,
        *,
        train: IntArray,
        test: IntArray,
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
        split: str = "given",
        task: Task = "classification",
        output_names: str | Sequence[str] | None = None,
        output_units: str | Sequence[str] | None = None,
    ) -> Dataset:
        """Check arrays and use the given rows for training and for test.

        Parameters
        ----------
        X, y
            All series and their labels.
        train, test
            Row indices of each part.
        feature_names, class_names
            Names; with string labels, the labels are the class names.
        mutable
            Features that may change: flags, names or indices.
        units
            One unit for all features, or one per feature.
        sampling_rate
            In Hz.
        salient, ids, subjects, lengths, side
            Per series, as in the attributes.
        oracle, name, description, split
            As in the attributes.
        task, output_names, output_units
            For numbers as labels, ``task="regression"``; then names and units of the numbers, a text for a single one.
        """
        X, lengths = check_padded(X, lengths, gaps=True)
        n_features = X.shape[2]
        labels, names, outputs, output_unit = check_task_labels(
            y, X, train, task=task, class_names=class_names, names=output_names, units=output_units
        )
        features = check_names(feature_names, n=n_features, what="feature_names")
        if units is not None:
            units = (units,) * n_features if isinstance(units, str) else tuple(str(u) for u in units)
            if len(units) != n_features:
                raise ShapeError(f"units must be one for all or {n_features}, one per feature, got {len(units)}.")
        if sampling_rate is not None and not (isinstance(sampling_rate, NUMBER) and 0 < sampling_rate < np.inf):
            raise DataError(f"sampling_rate must be a positive number of Hz, got {sampling_rate!r}.")
        if salient is not None and np.shape(salient) != X.shape:
            raise ShapeError(f"salient must have a flag for every entry, {X.shape}, got shape {np.shape(salient)}.")
        for what, values in (("subjects", subjects), ("ids", ids)):
            if values is not None and np.shape(values) != (len(X),):
                raise ShapeError(f"{what} must be {len(X)}, one per series, got shape {np.shape(values)}.")

        beside = None if side is None else check_side(side, len(X))

        def part(values: Any, rows: IntArray) -> Any:
            return None if values is None else np.asarray(values)[rows]

        if not max(X.max(), -X.min()) <= LARGEST and (np.abs(X) > LARGEST).any():  # the first is NaN if one is missing
            raise DataError(
                f"X holds {X.flat[np.nanargmax(np.abs(X))]:.3g}, beyond float32's {LARGEST:.2g}. Use larger units."
            )
        return cls(
            name=name,
            X_train=X[train],
            y_train=labels[train],
            X_test=X[test],
            y_test=labels[test],
            class_names=names,
            feature_names=features,
            units=units,
            sampling_rate=None if sampling_rate is None else float(sampling_rate),
            mutable=check_mutable(mutable, feature_names=features, n_features=n_features),
            salient_train=part(salient, train),
            salient_test=part(salient, test),
            ids_train=part(ids, train),
            ids_test=part(ids, test),
            subjects_train=part(subjects, train),
            subjects_test=part(subjects, test),
            lengths_train=part(lengths, train),
            lengths_test=part(lengths, test),
            side_train=None if beside is None else take_rows(beside, train),
            side_test=None if beside is None else take_rows(beside, test),
            oracle=oracle,
            description=description,
            split=split,
            task=task,
            output_names=outputs,
            output_units=output_unit,
        )
