"""Tables of series in three forms (shown in :mod:`sparcets.data.load`), read with pandas."""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sparcets.core.errors import ConfigError, FileFormatError, quoted
from sparcets.core.registry import did_you_mean, require_extra
from sparcets.core.series import LARGEST, BoolArray, FloatArray, IntArray, Series, StrArray
from sparcets.core.validation import text_problem
from sparcets.data.recordings import Recordings, as_stored, as_written, class_names_of, grid_of

SERIES_COLUMNS = ("series", "label", "subject", "split")
FORMS = (
    "Known forms: long (series, time, label, one column per feature), tidy (series, time, feature, value, label) and "
    "wide (label, columns <feature>_<step>), each optionally with subject and split."
)
OTHER_NAMES = "Columns of other names are named by options, as series='id'; on the command line -o series=id."
LABEL, SIDE = "label", "side"
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


class Sheet(NamedTuple):
    """A frame whose columns are named by their roles, and where it came from."""

    source: str  # the file, or what else the rows came from, for messages
    frame: pd.DataFrame
    columns: Mapping[str, str]  # role to the name that the column has in the source, where that is another one
    is_text: bool  # whether the numbers were read from text
    number_labels: bool  # whether labels are numbers instead of names

    @property
    def labels(self) -> list[str]:
        """The columns of labels; several, if they are numbers."""
        return [LABEL, *(role for role in self.columns if role.startswith(f"{LABEL} "))]

    @property
    def side(self) -> list[str]:
        """The columns of side inputs."""
        return [role for role in self.columns if role.startswith(f"{SIDE} ")]

    @property
    def series_columns(self) -> tuple[str, ...]:
        """The columns that a series has one value of."""
        return (*SERIES_COLUMNS, *self.labels[1:], *self.side)

    def name(self, column: str) -> str:
        """Return a column's name in the source."""
        return self.columns.get(column, column)

    def line(self, row: int) -> str:
        """Return the place of a row, as a message names it."""
        return f"{self.frame.index.name} {self.frame.index[row]}"

    def cell(self, row: int, column: str) -> str:
        """Return the content of a cell in quotation marks."""
        return repr(str(self.frame[column].iloc[row]))

    def error(self, row: int, column: str, problem: str) -> FileFormatError:
        """Return an error that names the source, the row and the column."""
        return FileFormatError(f"{self.source}, {self.line(row)}, column {self.name(column)!r}: {problem}")


def column_roles(columns: Mapping[str, Any], *, task: str | None) -> dict[str, str]:
    """Return the names of columns by role, where several columns may hold labels of a regressor, or side inputs.

    >>> column_roles({"series": "id", "label": ["low", "high"]}, task="regression")
    {'series': 'id', 'label': 'low', 'label 1': 'high'}
    >>> column_roles({"time": "t", "side": ["age"]}, task=None)
    {'time': 't', 'side age': 'age'}
    """
    roles = {role: str(name) for role, name in columns.items() if role not in (LABEL, SIDE)}
    beside = columns.get(SIDE, ())
    roles |= {f"{SIDE} {name}": str(name) for name in ([beside] if isinstance(beside, str) else beside)}
    names = columns.get(LABEL, LABEL)
    if isinstance(names, str):
        return {**roles, LABEL: names} if LABEL in columns else roles
    if task != "regression" or not names:
        raise ConfigError(f"label must be one column, got {quoted(names)}. Several hold numbers: task='regression'.")
    return {**roles, **{f"{LABEL} {k}" if k else LABEL: str(name) for k, name in enumerate(names)}}


def read_table(path: Path, columns: Mapping[str, Any], *, task: str | None = None, labelled: bool = True) -> Recordings:
    """Read a .csv or .parquet file; ``columns`` are the names, by role, of those that are not called by their role.

    Where labels are not needed, the split is left out, and so are labels with empty cells.
    """
    roles, is_text = column_roles(columns, task=task), path.suffix.lower() != ".parquet"
    frame = _read_csv(path, roles, number_labels=task == "regression") if is_text else _read_parquet(path)
    sheet = _sheet(str(path), frame, roles, is_text=is_text, number_labels=task == "regression")
    if labelled:
        return _recordings(sheet)
    frame = sheet.frame
    unused = [c for c in ("split", LABEL) if c in frame and (c == "split" or frame[c].isna().any())]
    return _recordings(sheet._replace(frame=frame.drop(columns=unused)), labelled=False)


def read_frame(frame: pd.DataFrame, columns: Mapping[str, Any], *, task: str | None = None) -> Recordings:
    """Read a frame of pandas; see :func:`read_table`."""
    roles = column_roles(columns, task=task)
    return _recordings(_sheet("the frame", frame, roles, is_text=False, number_labels=task == "regression"))


def _read_csv(path: Path, columns: Mapping[str, str], *, number_labels: bool) -> pd.DataFrame:
    """Read a .csv file, UTF-8 with a header line; separated by commas, or by semicolons or tabs if the header is.

    The index of the frame are the lines of the file.
    """
    try:
        # Opened here, so that both readers get all line endings as \n: pandas does not terminate on some mixtures.
        with path.open(encoding="utf-8-sig") as file:
            separator = max(",;\t", key=file.readline().count)
            file.seek(0)
            reader = csv.reader(_text_lines(path, file), skipinitialspace=True, delimiter=separator)
            header, lines, commas = _check_lines(path, reader)
        as_text = {columns.get(r, r) for r in (*SERIES_COLUMNS, "feature") if r != LABEL or not number_labels}
        with path.open(encoding="utf-8-sig") as file:
            frame = pd.read_csv(
                file,
                sep=separator,
                decimal="," if commas and separator != "," else ".",
                header=0,
                names=header,
                index_col=False,
                skipinitialspace=True,
                # Ids and labels are always text and may be "NA"; only an empty cell is missing.
                dtype={c: str for c in header if c in as_text},
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                float_precision=None if commas else "round_trip",  # the default is faster and may miss the last digit
            )
    except (UnicodeDecodeError, csv.Error, pd.errors.ParserError) as error:
        raise FileFormatError(f"{path} is not comma-separated UTF-8 text: {error}.") from error
    if len(frame) != len(lines):
        raise FileFormatError(f"{path} cannot be divided into rows. Check its quotation marks and line endings.")
    frame.index = pd.Index(lines, name="line")
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    require_extra("pyarrow", "a .parquet file", "parquet")
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
        for column in frame.columns:
            if isinstance(frame[column].dtype, pd.StringDtype):
                frame[column].to_numpy(dtype=object)  # decodes the text, which pandas would do at the first use
    except Exception as error:  # damaged files raise various errors, among them OSError and pyarrow's own
        raise FileFormatError(f"{path} is not a valid .parquet file: {' '.join(str(error).split())}") from error
    return frame


def _sheet(
    source: str, frame: pd.DataFrame, columns: Mapping[str, str], *, is_text: bool, number_labels: bool
) -> Sheet:
    """Return a frame as a sheet, its columns named by their roles.

    Named levels of the index of a frame that was no text are columns, and levels of column names are joined by "_".
    """
    if not is_text:
        if any(name is not None for name in frame.index.names):
            frame = frame.reset_index()  # series and time may be the index
        if frame.columns.nlevels > 1:  # (feature, step), or (name, "")
            names = ["_".join(str(level) for level in levels if str(level)) for levels in frame.columns]
        else:
            names = [str(c) for c in frame.columns]
        _check_header(source, names)
        frame = frame.set_axis(names, axis=1).set_axis(pd.RangeIndex(1, len(frame) + 1, name="row"), axis=0)
    renamed = {role: str(name) for role, name in columns.items() if str(name) != role}
    for role, name in renamed.items():
        if name not in frame:
            hint = did_you_mean(name, list(frame.columns))
            shown = _shown(frame.columns)
            raise FileFormatError(f"{source}: no column {name!r}, given as {role}; there are: {shown}.{hint}")
        if role in frame and role not in renamed.values():
            raise FileFormatError(
                f"{source}: {name!r} is given as {role}, but there is a column {role!r} too. Rename or drop one."
            )
    if len(set(renamed.values())) < len(renamed):
        raise FileFormatError(f"{source}: one column is given as two of {', '.join(renamed)}.")
    frame = frame.rename(columns={name: role for role, name in renamed.items()})
    return Sheet(source, frame, renamed, is_text, number_labels)


def _shown(names: Iterable[Any]) -> str:
    """Return the first names of columns, for messages."""
    first = [str(name) for name in names]
    return ", ".join(first[:8]) + (", …" if len(first) > 8 else "")


def _text_lines(path: Path, file: Iterable[str]) -> Iterator[str]:
    """Yield the lines; raise at a NUL character, at which pandas and csv end a value without a word."""
    for number, line in enumerate(file, 1):
        if "\0" in line:
            raise FileFormatError(
                f"{path}, line {number} holds a NUL byte, so it is not UTF-8 text, or it is damaged. Save it again as "
                "comma-separated UTF-8 text."
            )
        yield line


def _check_lines(path: Path, reader: Any) -> tuple[list[str], list[int], bool]:
    """Return column names, the line of each row, and whether a cell is a number with a decimal comma.

    Row lengths are checked here: pandas would pad or shift shorter rows.
    """
    lines = []
    commas = False
    records = (record for record in reader if record)
    header = [name.strip() for name in next(records, [])]
    _check_header(str(path), header)
    for record in records:
        if len(record) != len(header):
            excess = len(record) > len(header)
            problem = "more than there are columns" if excess else f"none for column {header[len(record)]!r}"
            needed = f"Each line needs {len(header)}, one per column"
            raise FileFormatError(f"{path}, line {reader.line_num}: {len(record)} values, {problem}. {needed}.")
        lines.append(reader.line_num)
        commas = commas or any(map(DECIMAL_COMMA.fullmatch, record))
    return header, lines, commas


def _check_header(source: str, names: list[str]) -> None:
    if not names:
        raise FileFormatError(f"{source} is empty. {FORMS}")
    if "" in names:
        raise FileFormatError(
            f"{source}: column {names.index('') + 1} has no name. Name or drop it; pandas leaves out its index with "
            "index=False."
        )
    for number, name in enumerate(names, 1):
        if (problem := text_problem(name)) is not None:
            raise FileFormatError(f"{source}: column {number} is called {quoted(name)}, which {problem}. Rename it.")
    if len(set(names)) < len(names):
        duplicate, count = next((name, count) for name, count in Counter(names).items() if count > 1)
        raise FileFormatError(f"{source}: the column {duplicate!r} appears {count} times. Rename one.")


log = logging.getLogger(__name__)
ZONE = re.compile(r".*\d\d?(:\d\d)+(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)")  # a time of day with a time zone
STEP_COLUMN = re.compile(r"(?P<feature>.+)[_.](?P<step>\d{1,9})")


def _recordings(sheet: Sheet, *, labelled: bool = True) -> Recordings:
    """Convert a sheet, whose columns determine the form; labels may not be needed."""
    label = (LABEL,) if labelled else ()
    if not len(sheet.frame):
        raise FileFormatError(f"{sheet.source} holds column names but no rows. {FORMS}")
    if "feature" in sheet.frame:
        _check_columns(sheet, "tidy", ("series", "time", "feature", "value", *label))
        found = _long(sheet, tidy=True)
    elif "time" in sheet.frame or _is_like_long(sheet):
        _check_columns(sheet, "long", ("series", "time", *label))
        found = _long(sheet, tidy=False)
    else:
        _check_columns(sheet, "wide", label)
        found = _wide(sheet)
    if not labelled:
        return found
    labels: Any = found.labels
    about = dict(found.about)
    if not sheet.number_labels:
        labels, about["class_names"] = class_names_of(labels)
        return replace(found, labels=labels, about=about)
    if sheet.labels != [LABEL] or LABEL in sheet.columns:  # a column that is called otherwise names its numbers
        about["output_names"] = [sheet.name(column) for column in sheet.labels]
    return replace(found, labels=labels[:, 0] if labels.shape[1] == 1 else labels, about=about)


def _is_like_long(sheet: Sheet) -> bool:
    """Return whether a table without a column ``time`` looks like a long one whose columns have other names."""
    names = [str(name) for name in sheet.frame.columns]
    return LABEL not in names and len(names) > 2 and not any(STEP_COLUMN.fullmatch(name) for name in names)


def _check_columns(sheet: Sheet, form: str, needed: tuple[str, ...]) -> None:
    names = list(sheet.frame.columns)
    missing = [sheet.name(name) for name in needed if name not in names]
    others = [name for name in names if name not in (*needed, *sheet.series_columns)]
    shown = _shown(names)
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


def _long(sheet: Sheet, *, tidy: bool) -> Recordings:
    """Read one row per series and step, or in the tidy form per series, step and feature."""
    ranks, times, in_seconds = _times(sheet)
    keys = {"series": _factorize(sheet, "series")[0], "time": ranks}
    metadata = _series_metadata(sheet, keys["series"])
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
    places, step = _places(sheet, times[order][::repeats], series, order[::repeats])
    lengths = 1 + places[np.r_[np.flatnonzero(np.diff(series)), -1]]
    X = np.zeros((len(lengths), lengths.max(), len(features)), dtype=values.dtype)
    if lengths.sum() > len(series):
        X[Series(X, lengths).inside] = np.nan
    X[series, places] = values
    about = {}
    if step is not None and in_seconds:
        about["sampling_rate"] = float(f"{1 / step:.6g}") if step < 1 else 1 / float(f"{step:.6g}")
    return Recordings(X=X, feature_names=features, lengths=_unequal(lengths), **metadata, about=about)


def _unequal(lengths: IntArray) -> IntArray | None:
    return lengths if (lengths != lengths[0]).any() else None


def _wide(sheet: Sheet) -> Recordings:
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
    X = Series(X, _unequal(lengths)).blank(int(lengths.max())).values
    metadata = _series_metadata(sheet, np.arange(n_series))
    return Recordings(X=X, feature_names=tuple(columns), lengths=_unequal(lengths), **metadata)


def _series_metadata(sheet: Sheet, series: IntArray) -> dict[str, Any]:
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
    labels: Any = one_each(LABEL) if not sheet.number_labels else None
    if sheet.number_labels:
        labels = np.stack([numbers_of_each(c) for c in sheet.labels], axis=1)
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
    for code, text in enumerate(texts):
        if (problem := text_problem(text)) is not None:
            row = int(np.argmax(codes == code))
            raise sheet.error(row, column, f"{sheet.cell(row, column)} {problem}.")
    known = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    return np.array([known[text] for text in texts], dtype=np.int64)[codes], np.array(list(known))


def times_of(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Return times as numbers, dates or durations, as the first cell is one; missing where a cell is none."""
    times = cells.astype(object)
    if cells.dtype.kind not in "mM":
        times = pd.to_numeric(cells, errors="coerce").replace([np.inf, -np.inf], np.nan)
    if pd.isna(times.iloc[0]) or cells.dtype.kind == "M":
        times = pd.to_datetime(cells.astype(str), format="ISO8601", errors="coerce", utc=True)
    return times


def has_zone(cells: pd.Series[Any]) -> BoolArray:
    """Return which times of text have a time zone."""
    if cells.dtype.kind in "mMiuf":
        return np.zeros(len(cells), dtype=bool)
    return cells.astype(str).str.fullmatch(ZONE).to_numpy(dtype=bool)


def _times(sheet: Sheet) -> tuple[IntArray, FloatArray, bool]:
    """Return the rank of each time, the time since the first, and whether that is in seconds.

    Numbers that are all whole count steps, or have another unit; other numbers and dates are in seconds.
    """
    column = sheet.frame["time"]
    times = times_of(column)
    if (row := _first((times.isna() | column.isna()).to_numpy())) is not None:
        problem = "the cell is empty" if pd.isna(column.iloc[row]) else f"{sheet.cell(row, 'time')} is not a time"
        raise sheet.error(row, "time", f"{problem}. Times are all numbers or all ISO dates.")
    # Ranks are of the exact times: as floating-point seconds two of them could be equal.
    ranks = np.asarray(pd.factorize(times, sort=True)[0], dtype=np.int64)
    if pd.api.types.is_numeric_dtype(times):
        exact = times.to_numpy().astype(np.longdouble)  # nanoseconds as whole numbers are beyond 2**53
        return ranks, np.asarray(exact - exact.min(), dtype=np.float64), bool((exact != np.round(exact)).any())
    zoned = has_zone(column)
    if (row := _first(zoned != zoned[0])) is not None:
        cells = [f"{sheet.cell(r, 'time')} in {sheet.line(r)}" for r in (row, 0)]
        has, lacks = cells if zoned[row] else cells[::-1]
        raise sheet.error(row, "time", f"{has} has a time zone, {lacks} has none. Give it for all times or for none.")
    return ranks, np.asarray(pd.to_timedelta(times - times.min()).dt.total_seconds(), dtype=np.float64), True


def _places(sheet: Sheet, times: FloatArray, series: IntArray, rows: IntArray) -> tuple[IntArray, float | None]:
    """Return the place of each step among those of its series, and how long a step is, or None.

    Steps are sorted by series and time; ``rows`` are their rows in the table, for messages.
    """
    places, step = grid_of(times, series)
    within = np.diff(series) == 0

    def between(sizes: FloatArray) -> tuple[int, str]:
        """Return the largest of the sizes (steps - 1,) within a series, and between which rows it is."""
        most = int(np.argmax(np.where(within, sizes, -np.inf)))
        before, after = rows[most : most + 2].tolist()
        cells = [f"{sheet.cell(row, 'time')} in {sheet.line(row)}" for row in (before, after)]
        return most, f"series {sheet.cell(after, 'series')} between {cells[0]} and {cells[1]}"

    if step is None and within.any():
        _, where = between(np.diff(times))
        log.warning(
            "%s: the times are irregular, so that missing rows cannot be told; rows count as steps, in the order of "
            "time. The largest gap is in %s.",
            sheet.source,
            where,
        )
    if places.max() >= 2 * np.bincount(series).max():  # most of that series would be missing, and all be padded
        most, where = between(np.diff(places))
        steps = int(np.diff(places)[most]) - 1
        raise FileFormatError(
            f"{sheet.source}: {steps} steps are missing in {where}, more than any series has. Correct the times, or "
            "divide the series there."
        )
    return places, step


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
    if cells.dtype.kind == "O" and not sheet.is_text:  # only a text file has its numbers as text
        unreadable |= np.array([isinstance(cell, (str, bytes)) for cell in cells], dtype=bool)
    if (row := _first(unreadable)) is not None:
        hint = (
            " but text. Convert the column first"
            if isinstance(sheet.frame[column].iloc[row], str) and not sheet.is_text
            else ""
        )
        raise sheet.error(row, column, f"{sheet.cell(row, column)} is not a number within ±{LARGEST:.2g}{hint}.")
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
