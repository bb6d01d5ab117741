"""Mutated files: whatever was done to a file, it is read as it was written, or refused by an error that names it."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.errors import SparcetsError
from sparcets.io.locks import LOCK

from .kinds import KINDS, Kind
from .mutations import Mutation, mutate
from .registry import campaign

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

SLOW = 10.0  # seconds; files of a few kilobytes are read in milliseconds
SMALL = 1000  # trials of a small dose, which is a matter of seconds
LARGE = 500 * 2**20  # bytes of memory for such a file


@dataclass(frozen=True)
class Example:
    """A kind of file with its files in memory."""

    name: str
    kind: Kind
    folder: Path
    files: dict[Path, bytes]
    content: Any

    @classmethod
    def make(cls, name: str, folder: Path) -> Example:
        (own := folder / name.replace(" ", "-")).mkdir()
        kind = KINDS[name]
        kind.write(own)
        files = {file: file.read_bytes() for file in sorted(own.rglob("*")) if file.is_file() and LOCK not in file.name}
        return cls(name, kind, own, files, kind.read(own))


@campaign("mutated files", trials=120_000, dose=1000, parts=4)
def mutated_files(trials: int, rng: np.random.Generator, folder: Path) -> Iterator[str]:
    with quiet():
        names = [name for name in KINDS if trials > SMALL or not KINDS[name].slow]
        examples = [Example.make(name, folder) for name in names]
        shares = np.array([example.kind.share for example in examples])
        chosen = rng.choice(len(examples), size=trials, p=shares / shares.sum())
        for i, seed in zip(chosen.tolist(), rng.integers(2**40, size=trials).tolist(), strict=True):
            yield _try(examples[i], examples, seed)


def repeat(name: str, seed: int) -> None:
    """Repeat a trial: leave the changed file beside the original, to compare them, and read it."""
    folder = Path(tempfile.mkdtemp())
    names = [each for each in KINDS if each == name or not KINDS[each].slow]
    examples = [Example.make(each, folder) for each in names]
    (example,) = (each for each in examples if each.name == name)
    file, mutation = _mutation(example, examples, seed)
    (folder / file.name).write_bytes(example.files[file])
    file.write_bytes(mutation.content)
    print(f"{file}, before {folder / file.name}")  # noqa: T201
    print(example.kind.read(example.folder) == example.content)  # noqa: T201


def _mutation(example: Example, examples: list[Example], seed: int) -> tuple[Path, Mutation]:
    rng = np.random.default_rng(seed)
    file = list(example.files)[rng.integers(len(example.files))]
    fast = (other for other in examples if other is not example and not other.kind.slow)
    others = [content for other in fast for content in other.files.values()]
    return file, mutate(file.name, example.files[file], others, rng)


def _try(example: Example, examples: list[Example], seed: int) -> str:
    file, mutation = _mutation(example, examples, seed)
    _write(file, mutation.content)
    memory, began = _peak_memory(), time.perf_counter()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        problem = _read(example, mutation)
    if warned:
        problem = problem or f"warned: {warned[0].category.__name__}: {warned[0].message}"
    if time.perf_counter() - began > SLOW:
        problem = problem or f"took {time.perf_counter() - began:.0f} s"
    if _peak_memory() - memory > LARGE:
        problem = problem or f"needed {(_peak_memory() - memory) / 2**20:.0f} MiB"
    _write(file, example.files[file])
    if not problem:
        return ""
    where = f"{example.name}, {file.relative_to(example.folder)}"
    how = f'python -c "from tests.campaigns.files import repeat; repeat({example.name!r}, {seed})"'
    return f"{where}: {problem[:400]}. Repeat: {how}"


def _read(example: Example, mutation: Mutation) -> str:
    """Return what is wrong with the reading of a changed file; empty if nothing is."""
    try:
        found = example.kind.read(example.folder)
    except SparcetsError as error:
        named = str(example.folder) in str(error) or any(f.name in str(error) for f in example.files)
        return "" if named else f"the error names no file: {type(error).__name__}: {error}"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also that of a Rust library, which is no Exception
        return f"raised {type(error).__name__}: {error}"
    if not example.kind.guarded or mutation.signed or example.kind.same(example.content, found):
        return ""
    return "was read as something else"


def _write(file: Path, content: bytes) -> None:
    # In place: a file that was emptied first is written to the disk at once, by some file systems.
    with file.open("r+b") as opened:
        opened.write(content)
        opened.truncate()


def _peak_memory() -> int:
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


@contextmanager
def quiet() -> Iterator[None]:
    """Leave out the messages of the log."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
