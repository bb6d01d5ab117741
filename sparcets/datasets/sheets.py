"""Sheets: the rows of a .csv or .parquet file as a frame of pandas, checked to be complete.

Separate from ``tables``, which knows what the columns mean. The index of a frame holds the line of each row in its file
(the row number of a .parquet file), so that error messages name the line, however the rows are sorted.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sparcets.errors import FileFormatError
from sparcets.registry import require_extra

SERIES_COLUMNS = ("series", "label", "subject", "split")
FORMS = (
    "Known forms: long (series, time, label, one column per feature), tidy (series, time, feature, value, label) and "
    "wide (label, columns <feature>_<step>), each optionally with subject and split."
)


class Sheet(NamedTuple):
    """A frame and the file it came from."""

    path: Path
    frame: pd.DataFrame

    def line(self, row: int) -> str:
        """Return the place of a row, as a message names it."""
        return f"{self.frame.index.name} {self.frame.index[row]}"

    def cell(self, row: int, column: str) -> str:
        """Return the content of a cell in quotation marks."""
        return repr(str(self.frame[column].iloc[row]))

    def error(self, row: int, column: str, problem: str) -> FileFormatError:
        """Return an error that names the file, the row and the column."""
        return FileFormatError(f"{self.path}, {self.line(row)}, column {column!r}: {problem}")


def read_csv(path: Path) -> Sheet:
    """Read a .csv file: comma-separated, UTF-8, with a header line."""
    try:
        # Opened here, so that both readers get all line endings as \n: pandas does not terminate on some mixtures.
        with path.open(encoding="utf-8-sig") as file:
            header, lines = _check_lines(path, csv.reader(_text_lines(path, file), skipinitialspace=True))
        with path.open(encoding="utf-8-sig") as file:
            frame = pd.read_csv(
                file,
                header=0,
                names=header,
                index_col=False,
                skipinitialspace=True,
                # Ids and labels are always text and may be "NA"; only an empty cell is missing.
                dtype={c: str for c in header if c in (*SERIES_COLUMNS, "feature")},
                keep_default_na=False,
                na_values=[""],
                low_memory=False,
                float_precision="round_trip",  # the default is faster and may miss the last digit
            )
    except (UnicodeDecodeError, csv.Error, pd.errors.ParserError) as error:
        raise FileFormatError(f"{path} is not comma-separated UTF-8 text: {error}.") from error
    if len(frame) != len(lines):
        raise FileFormatError(f"{path} cannot be divided into rows. Check its quotation marks and line endings.")
    frame.index = pd.Index(lines, name="line")
    return Sheet(path, frame)


def read_parquet(path: Path) -> Sheet:
    """Read a .parquet file."""
    require_extra("pyarrow", "a .parquet file", "parquet")
    try:
        frame = pd.read_parquet(path, engine="pyarrow")
        for column in frame.columns:
            if isinstance(frame[column].dtype, pd.StringDtype):
                frame[column].to_numpy(dtype=object)  # decodes the text, which pandas would do at the first use
    except Exception as error:  # damaged files raise various errors, among them OSError and pyarrow's own
        raise FileFormatError(f"{path} is not a valid .parquet file: {' '.join(str(error).split())}") from error
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()  # series and time may have been the index of the frame that was written
    frame.columns = pd.Index([str(c) for c in frame.columns])
    _check_header(path, list(frame.columns))
    frame.index = pd.RangeIndex(1, len(frame) + 1, name="row")
    return Sheet(path, frame)


def _text_lines(path: Path, file: Iterable[str]) -> Iterator[str]:
    """Yield the lines; raise at a NUL character, at which pandas and csv end a value without a word."""
    for number, line in enumerate(file, 1):
        if "\0" in line:
            raise FileFormatError(
                f"{path}, line {number} holds a NUL byte, so it is not UTF-8 text, or it is damaged. Save it again as "
                "comma-separated UTF-8 text."
            )
        yield line


def _check_lines(path: Path, reader: Any) -> tuple[list[str], list[int]]:
    """Return column names and the line of each row; check row lengths, which pandas would pad or shift."""
    lines = []
    records = (record for record in reader if record)
    header = [name.strip() for name in next(records, [])]
    _check_header(path, header)
    for record in records:
        if len(record) != len(header):
            excess = len(record) > len(header)
            problem = "more than there are columns" if excess else f"none for column {header[len(record)]!r}"
            needed = f"Each line needs {len(header)}, one per column"
            raise FileFormatError(f"{path}, line {reader.line_num}: {len(record)} values, {problem}. {needed}.")
        lines.append(reader.line_num)
    return header, lines


def _check_header(path: Path, names: list[str]) -> None:
    if not names:
        raise FileFormatError(f"{path} is empty. {FORMS}")
    if "" in names:
        raise FileFormatError(
            f"{path}: column {names.index('') + 1} has no name. Name or drop it; pandas leaves it out with index=False."
        )
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        count = names.count(duplicate)
        raise FileFormatError(f"{path}: the column {duplicate!r} appears {count} times. Rename one.")
