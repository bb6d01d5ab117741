"""Results on disk: one line of JSON per finished cell, appended so that nothing finished is ever lost."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from sparcets.benchmark.plan import Cell
from sparcets.errors import FileFormatError, StorageError

try:
    import fcntl
except ImportError:  # Windows: a single append is whole there too, only two runs into one folder are not kept apart
    fcntl = None  # type: ignore[assignment]

RESULTS = "results.jsonl"  # in the folder of a benchmark


class ResultStore:
    r"""A file of results.

    Whatever moment a process is killed at, the lines written before are whole; what is left of a line that was not
    finished is ignored by readers and cut off by the next append.

    Parameters
    ----------
    path
        The file, ``results.jsonl``; it need not be there yet.

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
        self.path = Path(path)

    def rows(self) -> list[dict[str, Any]]:
        """Return the finished rows; where a cell was run again, the last one."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return []
        *lines, tail = content.split(b"\n")
        by_key: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(lines, 1):
            row = _parse(line)
            if row is None:
                raise FileFormatError(
                    f"line {number} of {self.path} is no result. Only the last line of a run that was cut off may be "
                    "broken; take this one out to have its cell run again."
                )
            by_key[row["key"]] = row
        last = _parse(tail)
        if last is not None:  # only its line break is missing
            by_key[last["key"]] = last
        return list(by_key.values())

    def done(self) -> set[str]:
        """Return the keys of the cells that ended well."""
        return {row["key"] for row in self.rows() if "error" not in row}

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row, whole or not at all; several processes may do so at once."""
        line = json.dumps(to_plain(row), ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # In append mode every write goes to the end of the file, wherever that is by then.
            handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                with _exclusive(handle):
                    _write_line(handle, line)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(
                f"cannot write to {self.path}: {error.strerror or error}. The results before are safe; free some space "
                "or choose another place, and run again to go on."
            ) from error


def brief(row: Mapping[str, Any]) -> str:
    """Say a row in a line."""
    what = (
        f"{row['dataset']} {row['label']}{'' if row['target'] is None else ' → ' + row['target']}, seed {row['seed']}"
    )
    if "error" in row:
        return f"{what}: {row['error']}"
    named = {name: row["measures"].get(name) for name in ("valid", "transfer", "sparsity", "similarity")}
    numbers = ", ".join(f"{name} {value:.3f}" for name, value in named.items() if value is not None)
    return f"{what}: {numbers}; {row['fit_s'] + row['explain_s']:.1f} s"


def variant(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Say what a row's cell asked for, beside the data set, the classifier and the target: all but the defaults.

    Rows that agree in those, in the label and in this differ in nothing but the seed: they repeat one measurement.

    >>> variant({"options": {"n": 3}, "settings": ["train.epochs=1"], "preset": "tiny", "asked": {"queries": 4}})
    ('n=3', 'preset=tiny', 'train.epochs=1', 'queries=4')
    """
    told: list[str] = []
    asked = {**row, **row.get("asked", {})}
    for field in fields(Cell):
        value = asked.get(field.name)
        if field.name in ("dataset", "classifier", "target", "seed", "label", "experiment", "keep"):
            continue
        if field.name == "method" and value == row.get("label"):
            continue
        if field.name == "settings":
            told += value or ()
        elif isinstance(value, Mapping):
            prefix = "" if field.name == "options" else "classifier."
            told += [f"{prefix}{name}={value[name]}" for name in sorted(value)]
        elif value is not None and value != field.default:
            told.append(f"{field.name}={value}")
    return tuple(told)


def to_plain(value: Any) -> Any:
    """Return what JSON can hold: NumPy's numbers as Python's, and None for NaN and infinity.

    >>> import numpy as np
    >>> to_plain({"a": np.float32(0.5), "b": [float("nan"), np.int64(2)], "c": (True, "x")})
    {'a': 0.5, 'b': [None, 2], 'c': [True, 'x']}
    """
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return to_plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock: of several processes, one at a time is inside; the lock of a dead one is free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file, _exclusive(file.fileno()):
        yield


@contextmanager
def _exclusive(handle: int) -> Iterator[None]:
    if fcntl is not None:
        fcntl.flock(handle, fcntl.LOCK_EX)  # the system frees it when the file is closed, or its owner killed
    yield


def _write_line(handle: int, line: bytes) -> None:
    size = os.fstat(handle).st_size
    tail = _tail(handle, size)
    if tail and _parse(tail) is None:
        size -= len(tail)
        os.ftruncate(handle, size)
        tail = b""
    whole = (b"\n" if tail else b"") + line + b"\n"
    try:
        written = os.write(handle, whole)
        if written < len(whole):
            raise OSError(0, f"only {written} of {len(whole)} bytes were written")
        os.fsync(handle)
    except OSError:
        os.ftruncate(handle, size)
        raise


def _tail(handle: int, size: int) -> bytes:
    """Return what stands behind the last line break; a line is a few kilobytes, so one or two reads are enough."""
    tail = b""
    while len(tail) < size:
        start = max(0, size - len(tail) - 65536)
        os.lseek(handle, start, os.SEEK_SET)
        tail = os.read(handle, size - len(tail) - start) + tail
        if b"\n" in tail:
            break
    return tail.rpartition(b"\n")[2]


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return the row of a line, or None: no beginning of a JSON object is one itself, so what parses is whole."""
    try:
        row = json.loads(line.decode())
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("key"), str) else None
