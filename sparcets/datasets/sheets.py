"""Sheets: the rows of a .csv or .parquet file, or of a frame of pandas, checked to be complete.

Separate from ``tables``, which knows what the columns mean. The index of a sheet's frame holds the line of each row in
its file (the row number of other sources), so that error messages name the line, however the rows are sorted.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sparcets.errors import ConfigError, FileFormatError
from sparcets.registry import did_you_mean, require_extra

SERIES_COLUMNS = ("series", "label", "subject", "split")
FORMS = (
    "Known forms: long (series, time, label, one column per feature), tidy (series, time, feature, value, label) and "
    "wide (label, columns <feature>_<step>), each optionally with subject and split."
)
OTHER_NAMES = "Columns of other names are named by options, as series='id'; on the command line -o series=id."
LABEL, SIDE = "label", "side"
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*")


class Sheet(NamedTuple):
    """A frame whose columns are named by their roles, and where it came from.

    Attributes
    ----------
    source
        The file, or what else the rows came from, for messages.
    frame
        The rows.
    columns
        Role to the name that the column has in the source, where that is another one.
    is_text
        Whether the numbers were read from text.
    """

    source: str
    frame: pd.DataFrame
    columns: Mapping[str, str]
    is_text: bool

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
        raise ConfigError(f"label must be one column, got {names!r}. Several hold numbers: task='regression'.")
    return {**roles, **{f"{LABEL} {k}" if k else LABEL: str(name) for k, name in enumerate(names)}}


def read_sheet(path: Path, columns: Mapping[str, str], *, number_labels: bool = False) -> Sheet:
    """Read a .csv or .parquet file.

    Parameters
    ----------
    path
        The file.
    columns
        Names of columns that are not called by their role.
    number_labels
        Whether labels are numbers instead of names.
    """
    if path.suffix.lower() == ".parquet":
        return read_parquet(path, columns)
    return read_csv(path, columns, number_labels=number_labels)


def read_csv(path: Path, columns: Mapping[str, str], *, number_labels: bool = False) -> Sheet:
    """Read a .csv file, UTF-8 with a header line; separated by commas, or by semicolons or tabs if the header is."""
    try:
        # Opened here, so that both readers get all line endings as \n: pandas does not terminate on some mixtures.
        with path.open(encoding="utf-8-sig") as file:
            separator = _separator(file.readline())
        with path.open(encoding="utf-8-sig") as file:
            reader = csv.reader(_text_lines(path, file), skipinitialspace=True, delimiter=separator)
            header, lines, commas = _check_lines(path, reader)
        own = dict(columns)
        as_text = {own.get(r, r) for r in (*SERIES_COLUMNS, "feature") if r != LABEL or not number_labels}
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
    return _by_role(str(path), frame, columns, is_text=True)


def read_parquet(path: Path, columns: Mapping[str, str]) -> Sheet:
    """Read a .parquet file."""
    require_extra("pyarrow", "a .parquet file", "parquet")
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
        for column in frame.columns:
            if isinstance(frame[column].dtype, pd.StringDtype):
                frame[column].to_numpy(dtype=object)  # decodes the text, which pandas would do at the first use
    except Exception as error:  # damaged files raise various errors, among them OSError and pyarrow's own
        raise FileFormatError(f"{path} is not a valid .parquet file: {' '.join(str(error).split())}") from error
    return sheet_of_frame(frame, columns, source=str(path))


def sheet_of_frame(frame: pd.DataFrame, columns: Mapping[str, str], *, source: str) -> Sheet:
    """Return a frame as a sheet; named levels of its index are columns, levels of column names are joined by "_"."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()  # series and time may be the index
    if frame.columns.nlevels > 1:  # (feature, step), or (name, "")
        names = ["_".join(str(level) for level in levels if str(level)) for levels in frame.columns]
    else:
        names = [str(c) for c in frame.columns]
    frame = frame.set_axis(names, axis=1)
    _check_header(source, names)
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    return _by_role(source, frame, columns, is_text=False)


def _by_role(source: str, frame: pd.DataFrame, columns: Mapping[str, str], *, is_text: bool) -> Sheet:
    """Name the columns by their roles."""
    renamed = {role: str(name) for role, name in columns.items() if str(name) != role}
    for role, name in renamed.items():
        if name not in frame:
            hint = did_you_mean(name, list(frame.columns))
            shown = ", ".join(map(str, frame.columns[:8])) + (", …" if len(frame.columns) > 8 else "")
            raise FileFormatError(f"{source}: no column {name!r}, given as {role}; there are: {shown}.{hint}")
        if role in frame and role not in renamed.values():
            raise FileFormatError(
                f"{source}: {name!r} is given as {role}, but there is a column {role!r} too. Rename or drop one."
            )
    if len(set(renamed.values())) < len(renamed):
        raise FileFormatError(f"{source}: one column is given as two of {', '.join(renamed)}.")
    frame = frame.rename(columns={name: role for role, name in renamed.items()})
    return Sheet(source, frame, renamed, is_text)


def _separator(header: str) -> str:
    """Return the separator of the columns, by the first line."""
    return max(",;\t", key=header.count)


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
    if len(set(names)) < len(names):
        duplicate, count = next((name, count) for name, count in Counter(names).items() if count > 1)
        raise FileFormatError(f"{source}: the column {duplicate!r} appears {count} times. Rename one.")
