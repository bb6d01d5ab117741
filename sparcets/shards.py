"""Explanations too large for the memory: a folder of shards, each an ordinary explanation file.

A shard is written whole or not at all; whoever asks the same question of the same queries again goes on after the last
finished one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.errors import FileFormatError, StorageError
from sparcets.explanation import PER_ANSWER, Explanation, chosen_rows, join, load_explanation
from sparcets.storage import read_json, write_json

if TYPE_CHECKING:
    import pandas as pd

HEADER = "explanation.json"
FORMAT = 1
BYTES = 2**24  # of the queries of a shard, at most; of larger ones the memory is not always given back in time


def queries_per_shard(n_steps: int, n_features: int, n: int) -> int:
    """Return how many queries with ``n`` answers each go into a shard.

    >>> queries_per_shard(50, 50, 1)
    838
    """
    return max(1, BYTES // (n_steps * n_features * 8 * n))


class ExplanationFolder(Explanation):
    """An explanation that lies in shards on disk, and is read where it is looked at.

    Rows (``e[3]``, ``e[2:5]``, ``e[e.valid]``) are ordinary explanations; :meth:`shards` goes through all of them with
    the memory of one. What has one number or word per answer (``status``, ``valid``, ``target``, …) is read as a whole;
    so are ``query``, ``counterfactual``, ``delta`` and ``changed`` if they are asked for: mind their size.

    Parameters
    ----------
    folder
        What ``explain(..., out=folder)`` wrote.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        place = Path(folder)
        header = _read_header(place)
        if header["shards"] is None:
            raise FileFormatError(
                f"{place} is not finished: call explain with the same queries and out={str(place)!r} to go on."
            )
        first = load_explanation(_file(place, 0))
        shared = ("info", "mutable", "method", "config", "constraints", "seed")
        vars(self).update({name: getattr(first, name) for name in shared})  # frozen: nothing may be set later
        vars(self).update(folder=place, n_shards=int(header["shards"]), seconds=float(header["seconds"]))
        vars(self)["lengths"] = None if first.lengths is None else self._all("lengths")

    folder: Path
    n_shards: int

    def shards(self) -> Iterator[Explanation]:
        """Yield the shards one after the other, as ordinary explanations."""
        for number in range(self.n_shards):
            yield load_explanation(_file(self.folder, number))

    def __getattr__(self, name: str) -> Any:
        if name not in PER_ANSWER:
            raise AttributeError(f"an explanation has no {name!r}")
        values = self._all(name)
        if name not in ("query", "counterfactual"):  # those are large: nobody may want them kept
            vars(self)[name] = values
        return values

    @property
    def share_changed(self) -> FloatArray:
        """Share of the mutable entries that changed, per answer; padding does not count."""
        return np.concatenate([shard.share_changed for shard in self.shards()])

    def __len__(self) -> int:
        return len(self.target)

    def __iter__(self) -> Iterator[Explanation]:
        return (answer for shard in self.shards() for answer in shard)

    def __getitem__(self, rows: Any) -> Explanation:
        """Return the answers of one number, a slice, a mask or a list of numbers, as an ordinary explanation."""
        wanted = np.arange(len(self))[chosen_rows(rows, len(self))]
        home = np.searchsorted(self._starts, wanted, side="right") - 1
        parts, order = [], []
        for number in np.unique(home) if len(wanted) else [0]:
            of_shard = np.flatnonzero(home == number)
            shard = load_explanation(_file(self.folder, int(number)))
            parts.append(shard[wanted[of_shard] - self._starts[number]])
            order.append(of_shard)
        return join(parts)[np.argsort(np.concatenate(order), kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """Return the tidy table of the changed stretches of all answers; see :meth:`Explanation.to_frame`."""
        import pandas as pd

        frames = [shard.to_frame() for shard in self.shards()]
        for frame, start in zip(frames, self._starts, strict=True):
            frame["answer"] += start
        table: pd.DataFrame = pd.concat(frames, ignore_index=True)
        return table

    @cached_property
    def _starts(self) -> IntArray:
        """Number of the first answer of each shard."""
        sizes = [len(_read(_file(self.folder, number), "target")) for number in range(self.n_shards)]
        return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)

    def _all(self, name: str) -> Any:
        return np.concatenate([_read(_file(self.folder, number), name) for number in range(self.n_shards)])


class ShardWriter:
    """Writes shards, and knows which are there already.

    Parameters
    ----------
    folder
        Where to; made where it is not there.
    question
        All that decides the answers but the queries, as plain values.
    """

    def __init__(self, folder: str | os.PathLike[str], question: Mapping[str, Any]) -> None:
        self.folder, self.question = Path(folder), dict(question)
        self.seconds = 0.0
        if (self.folder / HEADER).exists():
            asked = _read_header(self.folder)["question"]
            other = [name for name in self.question if self.question[name] != asked.get(name)]
            if other:
                self._refuse(f"to another question: {', '.join(other)} {'differs' if len(other) == 1 else 'differ'}")
        elif self.folder.exists() and not self.folder.is_dir():
            raise StorageError(f"out= must be a folder, but {self.folder} is a file.")
        for left in self.folder.glob(f".{_file(self.folder, 0).stem[:5]}*.npz"):
            left.unlink(missing_ok=True)  # of a process that was killed while it wrote
        self.begun = False

    def any(self) -> Explanation | None:
        """Return the first shard that can be read; None where there is none."""
        for file in sorted(self.folder.glob("shard-*.npz")):
            shard = _readable(file)
            if shard is not None:
                return shard
        return None

    def held(self, number: int, X: FloatArray, target: IntArray | None) -> Explanation | None:
        """Return the finished shard of these queries; None where it is to be made.

        What is refused leaves all as it was: nothing is written before :meth:`begin`.
        """
        shard = _readable(_file(self.folder, number))
        if shard is None:
            return None
        n = int(self.question["n"])
        queries, wanted = shard.query[::n], shard.target[::n]
        k = min(len(queries), len(X))
        if queries.dtype != X.dtype or not np.array_equal(queries[:k], X[:k]):
            self._refuse(f"to other queries (see shard {number})")
        if target is not None and not np.array_equal(wanted[:k], target[:k]):
            self._refuse(f"for another target (see shard {number})")
        if len(queries) > len(X):
            self._refuse("to more queries than X gave")
        if len(queries) < len(X):
            return None  # the end of fewer queries than there are now
        self.seconds += shard.seconds
        return shard

    def begin(self) -> None:
        """Say that something is missing, before it is made."""
        if not self.begun:
            self._write_header(None)
        self.begun = True

    def write(self, number: int, shard: Explanation) -> None:
        """Write a shard, whole or not at all."""
        shard.save(_file(self.folder, number), compress=False)
        self.seconds += shard.seconds

    def finish(self, n_shards: int) -> ExplanationFolder:
        """Say that all is there."""
        if _file(self.folder, n_shards).exists():
            self._refuse("to more queries than X gave")
        self._write_header(n_shards)
        return ExplanationFolder(self.folder)

    def _refuse(self, why: str) -> NoReturn:
        raise StorageError(f"{self.folder} holds answers {why}. Choose another folder, or remove this one.")

    def _write_header(self, n_shards: int | None) -> None:
        header = {"format": FORMAT, "shards": n_shards, "seconds": self.seconds, "question": self.question}
        write_json(self.folder / HEADER, header)


def _read_header(folder: Path) -> Any:
    header = read_json(folder / HEADER, "a folder of explanations")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError(f"{folder / HEADER} is not of a folder of explanations that this version reads.")
    if not {"shards", "seconds", "question"} <= set(header):
        raise FileFormatError(f"{folder / HEADER} is damaged.")
    return header


def _file(folder: Path, number: int) -> Path:
    return folder / f"shard-{number:06d}.npz"


def _readable(file: Path) -> Explanation | None:
    """Return a shard; None where it is missing or damaged, and so has to be made again."""
    try:
        return load_explanation(file) if file.exists() else None
    except FileFormatError:
        return None


def _read(file: Path, name: str) -> Any:
    """Return one array of a shard; the others stay on disk."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return stored[name]
    except (OSError, KeyError, ValueError) as error:
        raise FileFormatError(f"{file} is missing or damaged: {error}. Explain again with the same out=.") from error
