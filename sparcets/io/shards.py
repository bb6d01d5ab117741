"""Explanations too large for memory: a folder of shards, each an ordinary explanation file.

A shard is written completely or not at all, so an interrupted run can be resumed: a call with the same queries and the
same settings continues after the last finished shard.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, StrArray, check_rows, missing_entries
from sparcets.core.errors import FileFormatError, StorageError
from sparcets.core.evidence import PLAUSIBILITY, Evidence
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import Numbers
from sparcets.core.side_inputs import Side, join_side, side_to_arrays
from sparcets.io.explanations import load_explanation
from sparcets.io.files import UNREADABLE, digest_of_array, read_json, write_json
from sparcets.io.folders import inside

if TYPE_CHECKING:
    import pandas as pd

HEADER = "explanation.json"
FORMAT = 1
MAX_SHARD_BYTES = 2**24  # upper limit for the queries of a shard; memory of larger ones is not always released in time


def queries_per_shard(n_steps: int, n_features: int, n: int) -> int:
    """Return how many queries with ``n`` answers each go into a shard.

    >>> queries_per_shard(50, 50, 1)
    838
    """
    return max(1, MAX_SHARD_BYTES // (n_steps * n_features * 8 * n))


class ExplanationFolder(Explanation):
    """An explanation stored on disk as a folder of shards, read on access.

    The fields of :class:`Explanation` are properties here. Arrays with one entry per answer (``status``, ``valid``,
    ``target``, …) are read from all shards on first access and kept; ``query`` and ``counterfactual``, and with them
    ``delta`` and ``changed``, are read on every access and need memory for all answers. Rows (``e[3]``, ``e[2:5]``,
    ``e[e.valid]``) are ordinary explanations; :meth:`shards` iterates over all of them with the memory of one shard.

    Parameters
    ----------
    folder
        Folder written by ``explain(..., out=folder)``.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # Explanation.__init__ is not called: every field is a property of this class.
        self.folder = Path(folder)
        header = _read_header(self.folder)
        if header["shards"] is None:
            raise FileFormatError(
                f"{self.folder} is not finished: call explain with the same queries and out={str(self.folder)!r} "
                "to continue."
            )
        self.n_shards = int(header["shards"])
        self._seconds = float(header["seconds"])
        self._shared = load_explanation(_file(self.folder, 0))[[]]  # no answers, only what all shards have in common

    # Fields that are the same in every shard.

    @property
    def info(self) -> SeriesInfo:
        """Names, units and scale of the data."""
        return self._shared.info

    @property
    def mutable(self) -> BoolArray:
        """Features that were allowed to change."""
        return self._shared.mutable

    @property
    def frozen(self) -> BoolArray | None:
        """Entries (time, features) that were frozen, or None."""
        return self._shared.frozen

    @property
    def method(self) -> str:
        """Name of the method."""
        return self._shared.method

    @property
    def config(self) -> Mapping[str, Any]:
        """Configuration of the method."""
        return self._shared.config

    @property
    def constraints(self) -> Mapping[str, Any]:
        """Constraints given to ``fit`` and ``explain``."""
        return self._shared.constraints

    @property
    def seed(self) -> int:
        """Seed of the method."""
        return self._shared.seed

    @property
    def confidence(self) -> float | None:
        """The least probability of the target that counts as reached, or None."""
        return self._shared.confidence

    @property
    def seconds(self) -> float:
        """Computation time of all shards."""
        return self._seconds

    # Fields with one entry per answer.

    @property
    def query(self) -> FloatArray:
        """Queries (answers, time, features); read on every access."""
        return self._array("query")

    @property
    def counterfactual(self) -> FloatArray:
        """Counterfactuals (answers, time, features); read on every access."""
        return self._array("counterfactual")

    @cached_property
    def target(self) -> np.ndarray[Any, Any]:
        """Target class of each answer; for a regressor, the targets as text."""
        return self._array("target")

    @cached_property
    def status(self) -> StrArray:
        """Status of each answer."""
        return self._array("status")

    @cached_property
    def reason(self) -> StrArray:
        """Reason for each ``not_found``."""
        return self._array("reason")

    @cached_property
    def query_index(self) -> IntArray:
        """Index of each answer's query among the queries passed to ``explain``."""
        return self._array("query_index")

    @cached_property
    def proba_before(self) -> FloatArray:
        """The classifier's probabilities for the queries (answers, classes)."""
        return self._array("proba_before")

    @cached_property
    def proba_after(self) -> FloatArray:
        """The classifier's probabilities for the counterfactuals (answers, classes)."""
        return self._array("proba_after")

    @cached_property
    def lengths(self) -> IntArray | None:
        """True lengths of padded series, or None."""
        return None if self._shared.lengths is None else self._array("lengths")

    @cached_property
    def ids(self) -> np.ndarray[Any, Any] | None:
        """Name of each answer's query, or None."""
        return None if self._shared.ids is None else self._array("ids")

    @cached_property
    def subjects(self) -> np.ndarray[Any, Any] | None:
        """Recorded person of each answer's query, or None."""
        return None if self._shared.subjects is None else self._array("subjects")

    @cached_property
    def evidence(self) -> Evidence:
        """What speaks for each answer besides the explained classifier."""
        return Evidence.join([shard.evidence for shard in self.shards()])

    @cached_property
    def plausibility(self) -> Mapping[str, FloatArray]:
        """Four measures (answers,) of how real the counterfactuals look."""
        of_shards = [shard.plausibility for shard in self.shards()]
        return {name: np.concatenate([part[name] for part in of_shards]) for name in PLAUSIBILITY}

    @cached_property
    def numbers(self) -> Numbers | None:
        """Predictions of a regressor and the bounds of the targets, or None."""
        if self._shared.numbers is None:
            return None
        return Numbers.join([shard.numbers for shard in self.shards() if shard.numbers is not None])

    @cached_property
    def side(self) -> Side | None:
        """Side inputs of each answer's query, or None."""
        return None if self._shared.side is None else join_side([shard.side for shard in self.shards()])

    @property
    def missing(self) -> BoolArray | None:
        """Entries that are missing in the query, read on every access; None if none is."""
        return missing_entries(self.query)

    @property
    def share_changed(self) -> FloatArray:
        """Share of the entries that may change which do, per answer."""
        return np.concatenate([shard.share_changed for shard in self.shards()])

    def shards(self) -> Iterator[Explanation]:
        """Yield the shards in order, as ordinary explanations."""
        for number in range(self.n_shards):
            yield load_explanation(_file(self.folder, number))

    def __len__(self) -> int:
        return len(self.target)

    def __iter__(self) -> Iterator[Explanation]:
        return (answer for shard in self.shards() for answer in shard)

    def __getitem__(self, rows: Any) -> Explanation:
        """Select answers by index, slice, mask or list of indices; return an ordinary explanation."""
        selected = np.arange(len(self))[check_rows(rows, len(self))]
        shard_of = np.searchsorted(self._starts, selected, side="right") - 1
        parts, order = [], []
        for number in np.unique(shard_of) if len(selected) else [0]:
            of_shard = np.flatnonzero(shard_of == number)
            shard = load_explanation(_file(self.folder, int(number)))
            parts.append(shard[selected[of_shard] - self._starts[number]])
            order.append(of_shard)
        return join(parts)[np.argsort(np.concatenate(order), kind="stable")]

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy table of the changed segments of all answers; see :meth:`Explanation.to_frame`."""
        import pandas as pd

        frames = [shard.to_frame() for shard in self.shards()]
        for frame, start in zip(frames, self._starts, strict=True):
            frame["answer"] += start
        table: pd.DataFrame = pd.concat(frames, ignore_index=True)
        return table

    @cached_property
    def _sizes(self) -> list[int]:
        """Number of answers of each shard."""
        return [len(self._part(number, "target")) for number in range(self.n_shards)]

    @cached_property
    def _starts(self) -> IntArray:
        """Index of the first answer of each shard."""
        return np.concatenate([[0], np.cumsum(self._sizes)[:-1]]).astype(np.int64)

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        """Read one array of all shards."""
        return np.concatenate([self._part(number, name) for number in range(self.n_shards)])

    def _part(self, number: int, name: str) -> np.ndarray[Any, Any]:
        """Read one array of a shard, of the kind and shape that it has in the first one, with a row per answer."""
        file, like = _file(self.folder, number), getattr(self._shared, name)
        array: np.ndarray[Any, Any] = _read(file, name)
        wrong = array.dtype.kind != like.dtype.kind or array.shape[1:] != like.shape[1:] or array.ndim != like.ndim
        if wrong or (name != "target" and len(array) != self._sizes[number]):
            raise FileFormatError(
                f"{file} is damaged: {name} cannot be {array.dtype} of shape {array.shape}. Explain again with the "
                "same out=."
            )
        return array


class ShardWriter:
    """Writes shards and finds those that are already finished.

    Parameters
    ----------
    folder
        Output folder; created if missing.
    settings
        Everything besides the queries that determines the answers, as plain values.
    """

    def __init__(self, folder: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.folder, self.settings = Path(folder), dict(settings)
        self.seconds = 0.0
        if (self.folder / HEADER).exists():
            stored = _read_header(self.folder)["question"]
            names = dict.fromkeys([*self.settings, *stored])
            other = [name for name in names if self.settings.get(name) != stored.get(name)]
            if other:
                self.refuse(f"to another question: {', '.join(other)} {'differs' if len(other) == 1 else 'differ'}")
        elif found := sorted(self.folder.glob(f"shard-{'[0-9]' * 6}.npz")):
            raise StorageError(
                f"{self.folder} holds {found[0].name} but no {HEADER}, so it is not a folder of explanations. Choose "
                "another folder."
            )
        self._begun = False

    def first_readable(self) -> Explanation | None:
        """Return the first shard that can be read, or None."""
        for file in sorted(self.folder.glob("shard-*.npz")):
            shard = _readable(inside(self.folder, file.name))
            if shard is not None:
                return shard
        return None

    def finished_shard(
        self,
        number: int,
        X: FloatArray,
        target: IntArray | StrArray | None,
        lengths: IntArray | None = None,
        side: Side | None = None,
    ) -> Explanation | None:
        """Return the finished shard of these queries, or None if it has to be computed.

        Raises StorageError if the shard holds other queries, lengths, side inputs or targets. Nothing is written before
        :meth:`begin`, so the folder is then unchanged.
        """
        shard = _readable(_file(self.folder, number))
        if shard is None:
            return None
        n = int(self.settings["n"])
        queries, targets = shard.query[::n], shard.target[::n]
        k = min(len(queries), len(X))
        if queries.dtype != X.dtype or not np.array_equal(queries[:k], X[:k], equal_nan=True):
            self.refuse(f"to other queries (see shard {number})")
        steps = None if shard.lengths is None else shard.lengths[::n][:k]
        if not np.array_equal(steps, None if lengths is None else lengths[:k]):  # type: ignore[arg-type]
            self.refuse(f"to series of other lengths (see shard {number})")
        stored, now = (side_to_arrays(one) for one in (shard.side, side))
        if stored.keys() != now.keys() or any(not np.array_equal(stored[a][::n][:k], now[a][:k]) for a in now):
            self.refuse(f"to queries with other side inputs (see shard {number})")
        if target is not None and not np.array_equal(targets[:k], target[:k]):
            self.refuse(f"for another target (see shard {number})")
        if len(queries) > len(X):
            self.refuse("to more queries than X gave")
        if len(queries) < len(X):
            return None  # the last, partial shard of an earlier call with fewer queries
        self.seconds += shard.seconds
        return shard

    def begin(self) -> None:
        """Mark the folder as unfinished; call before the first :meth:`write`."""
        if not self._begun:
            self._write_header(None)
        self._begun = True

    def write(self, number: int, shard: Explanation) -> None:
        """Write a shard atomically."""
        shard.save(_file(self.folder, number), compress=False)
        self.seconds += shard.seconds

    def finish(self, n_shards: int) -> ExplanationFolder:
        """Mark the folder as finished and open it."""
        if _file(self.folder, n_shards).exists():
            self.refuse("to more queries than X gave")
        self._write_header(n_shards)
        return ExplanationFolder(self.folder)

    def refuse(self, why: str) -> NoReturn:
        """Raise because the folder holds other answers."""
        raise StorageError(f"{self.folder} holds answers {why}. Choose another folder, or remove this one.")

    def _write_header(self, n_shards: int | None) -> None:
        header = {"format": FORMAT, "shards": n_shards, "seconds": self.seconds, "question": self.settings}
        write_json(self.folder / HEADER, header)


def _read_header(folder: Path) -> Any:
    header = read_json(inside(folder, HEADER), "a folder of explanations")
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise FileFormatError(f"{folder / HEADER} is not of a folder of explanations that this version reads.")
    shards, seconds = header.get("shards", ""), header.get("seconds")
    fits = (shards is None or (isinstance(shards, int) and shards > 0)) and isinstance(seconds, (int, float))
    if not fits or not isinstance(header.get("question"), dict):
        raise FileFormatError(f"{folder / HEADER} is damaged.")
    return header


def _file(folder: Path, number: int) -> Path:
    return inside(folder, f"shard-{number:06d}.npz")


def _readable(file: Path) -> Explanation | None:
    """Return a shard, or None if it is missing or damaged and has to be computed again."""
    try:
        return load_explanation(file) if file.exists() else None
    except FileFormatError:
        return None


def _read(file: Path, name: str) -> Any:
    """Read a single array of a shard."""
    try:
        # Opened here, because NumPy does not close a file that it opened itself and cannot read.
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            expected, array = json.loads(str(stored["header"])).get("arrays"), stored[name]
        if expected is not None and expected[name] != digest_of_array(array):
            raise ValueError(f"the content of {name} does not match its sha256")
        return array
    except UNREADABLE as error:
        raise FileFormatError(f"{file} is missing or damaged: {error!r}. Explain again with the same out=.") from error
