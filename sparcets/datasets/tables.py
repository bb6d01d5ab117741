"""Tables of series in three forms (shown in :mod:`sparcets.datasets.files`), converted to arrays with pandas.

Separate from ``files`` so that pandas is imported only for tables.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sparcets.arrays import BoolArray, FloatArray, IntArray, StrArray
from sparcets.datasets.precision import LARGEST, as_stored, as_written
from sparcets.datasets.sheets import FORMS, LABEL, OTHER_NAMES, Sheet
from sparcets.errors import FileFormatError
from sparcets.padding import blank
from sparcets.registry import did_you_mean

IRREGULAR = 0.02  # largest deviation of steps of a regular recording, relative to the usual step
STEP_COLUMN = re.compile(r"(?P<feature>.+)[_.](?P<step>\d{1,9})")


class Table(NamedTuple):
    """Series (batch, time, features), padded with zeros if ``lengths`` is given, and their metadata.

    Labels are names (batch,), or numbers (batch, outputs).
    """

    X: FloatArray
    feature_names: tuple[str, ...]
    lengths: IntArray | None
    labels: StrArray | FloatArray | None  # None only where they are not needed
    ids: StrArray | None
    subjects: StrArray | None
    split: StrArray | None
    side: dict[str, FloatArray] | None = None
    sampling_rate: float | None = None


def to_table(sheet: Sheet, *, number_labels: bool = False, labelled: bool = True) -> Table:
    """Convert a sheet; its columns determine the form. Labels are names, or ``number_labels``; or not needed."""
    label = (LABEL,) if labelled else ()
    if not len(sheet.frame):
        raise FileFormatError(f"{sheet.source} holds column names but no rows. {FORMS}")
    if "feature" in sheet.frame:
        _check_columns(sheet, "tidy", ("series", "time", "feature", "value", *label))
        return _long(sheet, tidy=True, number_labels=number_labels)
    if "time" in sheet.frame or _is_like_long(sheet):
        _check_columns(sheet, "long", ("series", "time", *label))
        return _long(sheet, tidy=False, number_labels=number_labels)
    _check_columns(sheet, "wide", label)
    return _wide(sheet, number_labels=number_labels)


def _is_like_long(sheet: Sheet) -> bool:
    """Return whether a table without a column ``time`` looks like a long one whose columns have other names."""
    names = [str(name) for name in sheet.frame.columns]
    return LABEL not in names and len(names) > 2 and not any(STEP_COLUMN.fullmatch(name) for name in names)


def _check_columns(sheet: Sheet, form: str, needed: tuple[str, ...]) -> None:
    names = list(sheet.frame.columns)
    missing = [sheet.name(name) for name in needed if name not in names]
    others = [name for name in names if name not in (*needed, *sheet.series_columns)]
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    if missing:
        one = len(names) == 1 and sheet.is_text
        hint = " Separate the columns by commas." if one else did_you_mean(missing[0], others)
        column = "column" if len(missing) == 1 else "columns"
        raise FileFormatError(
            f"{sheet.source}: no {column} {', '.join(map(repr, missing))}, which the {form} form needs; there are: "
            f"{shown}.{hint} {OTHER_NAMES} {FORMS}"
        )
    if others and form == "tidy":
        raise FileFormatError(f"{sheet.source}: the tidy form has no column {others[0]!r}. Drop it. {FORMS}")
    if not others and form != "tidy":
        raise FileFormatError(f"{sheet.source}: no column holds a feature; there are: {shown}. {FORMS}")


def _long(sheet: Sheet, *, tidy: bool, number_labels: bool) -> Table:
    """Read one row per series and step, or in the tidy form per series, step and feature."""
    ranks, seconds = _times(sheet)
    keys = {"series": _factorize(sheet, "series")[0], "time": ranks}
    metadata = _series_metadata(sheet, keys["series"], number_labels=number_labels)
    columns = ["value"] if tidy else [c for c in sheet.frame.columns if c not in (*sheet.series_columns, "time")]
    features = tuple(columns)
    if tidy:
        keys["feature"], names = _factorize(sheet, "feature")
        features = tuple(names.tolist())
    order = _sorted_distinct(sheet, keys)
    if tidy:
        _check_complete(sheet, {key: codes[order] for key, codes in keys.items()}, order, features)
    values = _numbers(sheet, columns)[order].reshape(-1, len(features))
    repeats = len(features) // len(columns)  # the tidy form repeats each step for every feature
    series = keys["series"][order][::repeats]
    lengths = np.bincount(series)
    steps = np.arange(len(series)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    X = np.zeros((len(lengths), lengths.max(), len(features)), dtype=values.dtype)
    X[series, steps] = values
    rate = _sampling_rate(seconds[order][::repeats], series)
    return Table(X, features, lengths if (lengths != lengths[0]).any() else None, **metadata, sampling_rate=rate)


def _wide(sheet: Sheet, *, number_labels: bool) -> Table:
    """Read one row per series, with a column for each feature and step; a row that ends in empty cells ends there."""
    columns: dict[str, dict[int, str]] = {}
    for column in sheet.frame.columns:
        if column in sheet.series_columns:
            continue
        match = STEP_COLUMN.fullmatch(column)
        if match is None:
            raise FileFormatError(f"{sheet.source}: the column {column!r} is not of the kind <feature>_<step>. {FORMS}")
        steps, step = columns.setdefault(match["feature"], {}), int(match["step"])
        if step in steps:
            raise FileFormatError(f"{sheet.source}: the columns {steps[step]!r} and {column!r} hold the same step.")
        steps[step] = column
    all_steps = {step for steps in columns.values() for step in steps}
    span = range(min(all_steps), max(all_steps) + 1)
    for feature, steps in columns.items():
        absent = next((step for step in span if step not in steps), None)
        if absent is not None:
            needed = f"Every feature needs the steps {span[0]}..{span[-1]}"
            raise FileFormatError(f"{sheet.source}: no column {f'{feature}_{absent}'!r}. {needed}.")
    if "series" in sheet.frame:
        _sorted_distinct(sheet, {"series": _factorize(sheet, "series")[0]})
    n_series = len(sheet.frame)
    values = _numbers(sheet, [steps[step] for step in span for steps in columns.values()])
    X = values.reshape(n_series, len(span), len(columns))
    measured = np.asarray(~np.isnan(X).all(2))  # (series, steps)
    if (row := _first(np.asarray(~measured.any(1)))) is not None:
        raise FileFormatError(f"{sheet.source}, {sheet.line(row)} holds no value. Drop it: a series has at least one.")
    lengths = len(span) - measured[:, ::-1].argmax(1)
    unequal = lengths if (lengths != lengths[0]).any() else None
    X = blank(X, unequal, int(lengths.max()))
    metadata = _series_metadata(sheet, np.arange(n_series), number_labels=number_labels)
    return Table(X, tuple(columns), unequal, **metadata)


def _series_metadata(sheet: Sheet, series: IntArray, *, number_labels: bool) -> dict[str, Any]:
    """Return labels, ids, subjects, split and side inputs, one entry per series."""
    first = np.unique(series, return_index=True)[1]

    def check_one(same: BoolArray, column: str) -> None:
        if (row := _first(~same)) is not None:
            earlier = int(first[series[row]])
            here, there = sheet.cell(row, column), f"{sheet.cell(earlier, column)} in {sheet.line(earlier)}"
            name = f"series {sheet.cell(row, 'series')}"
            raise sheet.error(row, column, f"{name} has {here}, but {there}. A series has one {sheet.name(column)}.")

    def one_each(column: str) -> StrArray | None:
        if column not in sheet.frame:
            return None
        codes, names = _factorize(sheet, column)
        check_one(codes == codes[first][series], column)
        return np.asarray(names[codes[first]])

    def numbers_of_each(column: str) -> FloatArray:
        values = _floats(sheet, column)
        if (row := _first(np.isnan(values))) is not None:
            raise sheet.error(row, column, "the cell is empty. A series without its number cannot be used.")
        check_one(values == values[first][series], column)
        return np.asarray(values[first])

    split = one_each("split")
    if split is not None:
        if (index := _first(~np.isin(split, ["train", "test"]))) is not None:
            row = int(first[index])
            raise sheet.error(row, "split", f"{sheet.cell(row, 'split')} is neither 'train' nor 'test'.")
        if len(set(split.tolist())) < 2:
            needed = "Mark training and test rows, or drop the column for an automatic split"
            raise FileFormatError(f"{sheet.source}: every row has the split {str(split[0])!r}. {needed}.")
    ids = one_each("series")
    labels = np.stack([numbers_of_each(c) for c in sheet.labels], axis=1) if number_labels else one_each(LABEL)
    found = {"labels": labels, "ids": ids, "subjects": one_each("subject"), "split": split}
    # Whole numbers stay such: a model may look them up.
    kinds = {c: {"i": "int64", "u": "int64", "b": "bool"}.get(sheet.frame[c].dtype.kind, "float64") for c in sheet.side}
    side = {sheet.name(c): numbers_of_each(c).astype(kind) for c, kind in kinds.items()}
    return {**found, "side": side or None}


def _factorize(sheet: Sheet, column: str) -> tuple[IntArray, StrArray]:
    """Return a column of names as codes, in order of first appearance, and the name of each code."""
    codes, cells = pd.factorize(sheet.frame[column])
    # pandas reads a column of whole numbers with gaps as floats; its ids are still 1 and 2, not 1.0 and 2.0.
    texts = [str(int(c) if isinstance(c, (float, np.floating)) and c == np.round(c) else c).strip() for c in cells]
    blank = np.array([*(not text for text in texts), True])  # the last entry is for code -1, an empty cell
    if (row := _first(blank[codes])) is not None:
        raise sheet.error(row, column, "the cell is empty.")
    known = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return np.array([known[text] for text in texts], dtype=np.int64)[codes], np.array(list(known))


def _times(sheet: Sheet) -> tuple[IntArray, FloatArray]:
    """Return the rank of each time, and the time in seconds; times are numbers or ISO dates."""
    column = sheet.frame["time"]
    times = pd.to_numeric(column, errors="coerce") if column.dtype.kind not in "mM" else column.astype(object)
    if pd.isna(times.iloc[0]) or column.dtype.kind == "M":  # the first row determines the type of the column
        times = pd.to_datetime(column.astype(str), format="ISO8601", errors="coerce", utc=True)
    if (row := _first((times.isna() | column.isna()).to_numpy())) is not None:
        problem = "the cell is empty" if pd.isna(column.iloc[row]) else f"{sheet.cell(row, 'time')} is not a time"
        raise sheet.error(row, "time", f"{problem}. Times are all numbers or all ISO dates.")
    # Ranks are of the exact times: as floating-point seconds two of them could be equal.
    ranks = np.asarray(pd.factorize(times, sort=True)[0], dtype=np.int64)
    if not pd.api.types.is_numeric_dtype(times):
        times = pd.to_timedelta(times - times.min() if column.dtype.kind != "m" else column).dt.total_seconds()
    return ranks, np.asarray(times, dtype=np.float64)


def _sampling_rate(times: FloatArray, series: IntArray) -> float | None:
    """Return the number of steps per second if all are equally long; None if times only count the steps.

    Parameters
    ----------
    times, series
        Time in seconds, and number of the series, of every step (steps,), sorted by series and time.
    """
    steps = np.diff(times)[np.diff(series) == 0]
    if not len(steps) or (times == np.round(times)).all():  # whole numbers count steps, or have another unit
        return None
    usual = float(np.median(steps))
    regular = (np.abs(steps - usual) <= IRREGULAR * usual).all()
    return float(f"{1 / usual:.6g}") if regular else None


def _numbers(sheet: Sheet, columns: list[str]) -> FloatArray:
    """Return columns of numbers (rows, columns), as float32 if that loses nothing; NaN where a cell is empty."""
    frame = sheet.frame[columns]
    result = np.empty((0, 0))
    if {dtype.kind for dtype in frame.dtypes} <= set("iuf"):  # at once: there may be a column for each step
        result = frame.to_numpy(dtype=np.float64)
    if not result.size or (np.abs(result) > LARGEST).any():
        result = np.empty(frame.shape)
        for index, column in enumerate(columns):
            result[:, index] = _floats(sheet, column)
    return as_written(result) if sheet.is_text else as_stored(result)


def _floats(sheet: Sheet, column: str) -> FloatArray:
    """Return a column of numbers (rows,) as float64; NaN where a cell is empty."""
    cells = sheet.frame[column]
    if cells.dtype.kind in "mM":
        cells = cells.astype(str)  # dates are not numbers, although pandas would convert them to nanoseconds
    numbers: FloatArray = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    unreadable = ~(np.abs(numbers) <= LARGEST) & ~cells.isna().to_numpy()  # an empty cell is missing
    if (row := _first(unreadable)) is not None:
        raise sheet.error(row, column, f"{sheet.cell(row, column)} is not a number within ±{LARGEST:.2g}.")
    return numbers


def _sorted_distinct(sheet: Sheet, keys: dict[str, IntArray]) -> IntArray:
    """Return the order of the rows sorted by the keys; raise if two rows have the same keys."""
    order = np.lexsort(list(keys.values())[::-1])
    same = np.all([codes[order][1:] == codes[order][:-1] for codes in keys.values()], axis=0)
    if (index := _first(same)) is not None:
        earlier, later = int(order[index]), int(order[index + 1])
        cells = ", ".join(f"{key} {sheet.cell(later, key)}" for key in keys)
        raise sheet.error(later, [*keys][-1], f"{cells} is already in {sheet.line(earlier)}. Keep one of the two.")
    return np.asarray(order)


def _check_complete(sheet: Sheet, keys: dict[str, IntArray], order: IntArray, features: tuple[str, ...]) -> None:
    """Check that every step of a tidy table has a value of every feature; the keys must be sorted."""
    new_step = (np.diff(keys["series"]) != 0) | (np.diff(keys["time"]) != 0)
    step = np.cumsum(np.r_[0, new_step])
    if (short := _first(np.bincount(step) < len(features))) is not None:
        rows = np.flatnonzero(step == short)
        absent = next(name for code, name in enumerate(features) if code not in keys["feature"][rows])
        row = int(order[rows[0]])
        where = f"series {sheet.cell(row, 'series')} at time {sheet.cell(row, 'time')}"
        raise sheet.error(row, "feature", f"{where} has no value of {absent!r}. Every step needs every feature.")


def _first(mask: BoolArray) -> int | None:
    """Return the first index at which the mask is true, or None."""
    return int(mask.argmax()) if mask.any() else None
