"""Results on disk: one line of JSON per finished cell."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from sparcets.core.errors import FileFormatError
from sparcets.io.files import KEY, add_digest, as_utf8, atomic_path, check_digest, file_to_write, to_plain
from sparcets.io.folders import inside
from sparcets.io.locks import LOCK, locked
from sparcets_paper.benchmark.plan import Cell

RESULTS = "results.jsonl"  # in the folder of a benchmark


class ResultStore:
    """A file of results, such as ``results.jsonl``, one row per finished cell; it need not exist.

    It is replaced as a whole for every new row, under a lock: a process that is killed leaves all rows before intact.
    Every line ends with a digest of its row, which is checked by readers.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = ResultStore(Path(folder, "results.jsonl"))
    ...     _ = store.append({"key": "a", "valid": float("nan")})
    ...     store.rows(), store.done()
    ([{'key': 'a', 'valid': None}], {'a'})
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = inside(Path(path).parent, Path(path).name)  # no link may lead away

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per cell; the last one if a cell was run several times."""
        return list({row["key"]: row for row in self.all_rows()}.values())

    def all_rows(self) -> list[dict[str, Any]]:
        """Return every stored row in the order of the file, including repeated runs of one cell."""
        return [self._row(line, number) for number, line in enumerate(self._lines(), 1)]

    def _lines(self) -> list[bytes]:
        try:
            *lines, rest = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise FileFormatError(f"{self.path} cannot be read: {error.strerror or error}.") from error
        return [*lines, rest] if rest else lines

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        """Return the row of a line without its digest."""
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
                f"line {number} of {self.path} is not a result: {why}. Delete this line to have its cell run again."
            ) from error

    def done(self) -> set[str]:
        """Return the keys of the cells that finished without an error."""
        return {row["key"] for row in self.rows() if "error" not in row}

    def append(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Write a row, completely or not at all, and return it; several processes may append at the same time."""
        plain: dict[str, Any] = to_plain(row)
        line = as_utf8(json.dumps(add_digest(plain), ensure_ascii=False, allow_nan=False, separators=(",", ":")))
        file_to_write(self.path)  # raises if it is no file
        with locked(self.path.with_name(f".{self.path.name}{LOCK}")):
            self.all_rows()  # raises if the file is not ours
            with atomic_path(self.path) as temporary:
                temporary.write_bytes(b"".join(old + b"\n" for old in (*self._lines(), line)))
        return plain


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
