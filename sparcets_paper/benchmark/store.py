"""Results on disk: one line of JSON per finished cell, in a file that is only appended to."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from sparcets.core.errors import FileFormatError, SparcetsError, StorageError
from sparcets.io.files import KEY, add_digest, as_utf8, check_digest, file_to_write
from sparcets.io.folders import inside
from sparcets.io.locks import lock
from sparcets_paper.benchmark.plan import Cell

MAX_LINE = 2**24  # bytes of a row
RESULTS = "results.jsonl"  # in the folder of a benchmark


class ResultStore:
    r"""A file of results, one row per finished cell.

    If a process is killed while writing, all lines before are intact. An incomplete last line is ignored by readers and
    removed by the next append. Every line ends with a digest of its row, which is checked by readers.

    Parameters
    ----------
    path
        The file, such as ``results.jsonl``; it need not exist.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = ResultStore(Path(folder, "results.jsonl"))
    ...     store.append({"key": "a", "valid": float("nan")})
    ...     with store.path.open("a") as file:
    ...         _ = file.write('{"key": "b", "val')  # killed while writing
    ...     store.rows(), store.done()
    ([{'key': 'a', 'valid': None}], {'a'})
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = inside(Path(path).parent, Path(path).name)  # appended to in place, so that no link may lead away

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per cell; the last one if a cell was run several times."""
        return list({row["key"]: row for row in self.all_rows()}.values())

    def all_rows(self) -> list[dict[str, Any]]:
        """Return every stored row in the order of the file, including repeated runs of one cell."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileFormatError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        *lines, tail = content.split(b"\n")
        if tail and not _incomplete(tail):
            lines.append(tail)  # complete except for its line break
        return [self._row(line, f"line {number}") for number, line in enumerate(lines, 1)]

    def _row(self, line: bytes, where: str) -> dict[str, Any]:
        """Return the row of a complete line without its digest."""
        try:
            row = json.loads(line.decode())
            if not isinstance(row, dict):
                raise TypeError("it is no JSON object")
            if KEY not in row:
                raise KeyError(KEY)
            plain = check_digest(row)
            if not isinstance(plain["key"], str):
                raise TypeError("its key is no text")
            return plain
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise FileFormatError(
                f"{where} of {self.path} is not a result: {why}. Only the last line may be incomplete, after an "
                "interrupted run; delete this line to have its cell run again."
            ) from error

    def done(self) -> set[str]:
        """Return the keys of the cells that finished without an error."""
        return {row["key"] for row in self.rows() if "error" not in row}

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row, completely or not at all; several processes may append at the same time."""
        plain = add_digest(to_plain(row))
        line = as_utf8(json.dumps(plain, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # In append mode every write goes to the current end of the file.
            handle = os.open(file_to_write(self.path), os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                lock(handle)
                self._write_line(handle, line)
            finally:
                os.close(handle)
        except SparcetsError:
            raise
        except OSError as error:
            raise StorageError(
                f"cannot write to {self.path}: {error.strerror or error}. Results stored before are intact; free some "
                "space or choose another folder, and run again to continue."
            ) from error

    def _write_line(self, handle: int, line: bytes) -> None:
        size = os.fstat(handle).st_size
        first, complete, _ = os.pread(handle, MAX_LINE, 0).partition(b"\n")
        if complete:
            self._row(first, "line 1")  # raises if the file is not ours
        tail = _tail(handle, size)
        if tail and _incomplete(tail):
            size -= len(tail)
            os.ftruncate(handle, size)
            tail = b""
        elif tail:
            self._row(tail, "the last line")  # so does this
        whole = (b"\n" if tail else b"") + line + b"\n"
        try:
            written = os.write(handle, whole)
            if written < len(whole):
                raise OSError(0, f"only {written} of {len(whole)} bytes were written")
            os.fsync(handle)
        except OSError:
            os.ftruncate(handle, size)
            raise


def format_row(row: Mapping[str, Any]) -> str:
    """Return a one-line summary of a row."""
    target = "" if row["target"] is None else f" → {row['target']}"
    cell = f"{row['dataset']} {row['label']}{target}, seed {row['seed']}"
    if "error" in row:
        return f"{cell}: {row['error']}"
    named = {name: row["measures"].get(name) for name in ("valid", "transfer", "sparsity", "similarity")}
    numbers = ", ".join(f"{name} {value:.3f}" for name, value in named.items() if value is not None)
    return f"{cell}: {numbers}; {row['fit_s'] + row['explain_s']:.1f} s"


def variant(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a row's cell that differ from the defaults, without data set, classifier and target.

    Rows that agree in these three, in the label and in the variant differ in the seed alone: they are repetitions.

    >>> variant({"options": {"n": 3}, "settings": ["train.epochs=1"], "preset": "tiny", "request": {"queries": 4}})
    ('n=3', 'preset=tiny', 'train.epochs=1', 'queries=4')
    """
    found: list[str] = []
    requested = {**row, **row.get("request", {})}
    for field in fields(Cell):
        value = requested.get(field.name)
        if field.name in ("dataset", "classifier", "target", "seed", "label", "experiment", "keep", "figures"):
            continue
        if field.name == "method" and value == row.get("label"):
            continue
        if field.name == "settings":
            found += value or ()
        elif isinstance(value, Mapping):
            prefix = "" if field.name == "options" else "classifier."
            found += [f"{prefix}{name}={value[name]}" for name in sorted(value)]
        elif value is not None and value != field.default:
            found.append(f"{field.name}={value}")
    return tuple(found)


def to_plain(value: Any) -> Any:
    """Return what JSON can hold: NumPy numbers as Python numbers, and None for NaN and infinity.

    >>> import numpy as np
    >>> to_plain({"a": np.float32(0.5), "b": [float("nan"), np.int64(2)], "c": (True, "x")})
    {'a': 0.5, 'b': [None, 2], 'c': [True, 'x']}
    """
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return to_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _tail(handle: int, size: int) -> bytes:
    """Return the content after the last line break. A line is a few kilobytes, so one or two reads are enough."""
    tail = b""
    while len(tail) < size:
        start = max(0, size - len(tail) - 65536)
        os.lseek(handle, start, os.SEEK_SET)
        tail = os.read(handle, size - len(tail) - start) + tail
        if b"\n" in tail:
            break
    return tail.rpartition(b"\n")[2]


def _incomplete(tail: bytes) -> bool:
    """Return whether the content after the last line break was cut off: it is then only the beginning of a JSON object.

    What follows a complete object is damage, of the line break for example, and must not be lost without an error; nor
    must what begins in another way, and is not ours.
    """
    if not tail.startswith(b'{"') and tail != b"{":
        return False
    try:
        json.JSONDecoder().raw_decode(tail.decode(errors="replace"))
    except (ValueError, RecursionError):
        return True
    return False
