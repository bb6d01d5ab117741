"""Explanations on disk: one file, or a folder of shards for more answers than fit in memory. Nothing is unpickled.

A shard is written completely or not at all, and counts when its file is there: a call with the same queries and the
same settings goes on after the last finished one. Folders of Parquet files (``methods/archive.py``) are written in the
same way, and share :class:`ShardFolder` with those of this module.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from sparcets.core.edits import PREFIX as EDITS
from sparcets.core.edits import EditLists
from sparcets.core.errors import FileFormatError, StorageError
from sparcets.core.evidence import PLAUSIBILITY, PREFIX, Evidence
from sparcets.core.explanation import SCHEMA, STATUSES, Explanation, check_rows, join
from sparcets.core.info import SeriesInfo
from sparcets.core.series import FloatArray, IntArray, Series, StrArray, missing_entries
from sparcets.core.side_inputs import PREFIX as SIDE_PREFIX
from sparcets.core.side_inputs import Side, side_from_arrays, side_to_arrays
from sparcets.core.target import FIELDS, Numbers
from sparcets.core.target import PREFIX as NUMBERS
from sparcets.io.files import (
    as_path,
    check_digest,
    digest_of_array,
    is_file,
    is_folder,
    read_json,
    write_json,
)
from sparcets.io.folders import inside
from sparcets.io.locks import LOCK, locked

if TYPE_CHECKING:
    import pandas as pd

HEADER = "explanation.json"
FORMAT = 1
MAX_SHARD_BYTES = 2**24  # upper limit for the queries of a shard; memory of larger ones is not always released in time


def load_explanation(path: str | os.PathLike[str]) -> Explanation:
    """Load a file written by :meth:`Explanation.save` or a folder written by ``explain(out=…)``, without pickle.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import MeanModule
    >>> X, y = make_series(60)
    >>> clf = sp.wrap(MeanModule(n_classes=3), n_classes=3)
    >>> from tempfile import TemporaryDirectory
    >>> e = sp.Nearest(clf).fit(X, y).explain(X[:4], target=1)
    >>> with TemporaryDirectory() as folder:
    ...     e.save(f"{folder}/run.npz")
    ...     len(sp.load_explanation(f"{folder}/run.npz"))
    4
    """
    file = as_path(path)
    if is_folder(file):
        return ExplanationFolder(file)
    if not is_file(file):
        raise FileFormatError(f"no file {file}. Pass an .npz file written by Explanation.save.")
    if not zipfile.is_zipfile(file):
        raise FileFormatError(f"{file} is not an explanation, or it is truncated: it is not a complete .npz file.")
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as stored:
            if "header" not in stored:
                raise FileFormatError(
                    f"{file} is not an explanation: it has no header. Was it written by Explanation.save?"
                )
            header = json.loads(str(stored["header"]))
            if header["schema"] != SCHEMA:
                raise FileFormatError(
                    f"{file} has layout {header['schema']}, this version of sparcets reads layout {SCHEMA}. "
                    "Use the version that wrote it, or explain again."
                )
            arrays: dict[str, Any] = {name: stored[name] for name in stored.files if name != "header"}
        _check_header(check_digest(header), arrays)
        info = SeriesInfo.from_dict(header["info"])
        _check_arrays(arrays, info)
        evidence = Evidence.from_arrays(arrays)
        rest = {name: header[name] for name in ("method", "config", "constraints", "seed", "seconds", "confidence")}
        apart = (PREFIX, NUMBERS, SIDE_PREFIX, EDITS)
        rest |= {name: array for name, array in arrays.items() if not name.startswith(apart)}
        rest |= {"numbers": Numbers.from_arrays(arrays), "side": side_from_arrays(arrays)}
        rest["edit_lists"] = EditLists.from_arrays(arrays)
        return Explanation(info=info, evidence=evidence, **rest)
    except FileFormatError:
        raise
    except Exception as error:  # the zip, zlib, npy and JSON readers raise all kinds of errors on damaged files
        raise FileFormatError(
            f"{file} is not an explanation, or it is damaged: {type(error).__name__}: {error}. Restore it from a copy, "
            "or explain again."
        ) from error


_ENTRIES: dict[str, Any] = {
    "method": str,
    "config": dict,
    "constraints": dict,
    "seed": int,
    "seconds": (int, float),
    "confidence": (float, type(None)),
}
# NumPy's letters for the kinds of types; all arrays that are not listed hold real numbers.
_KINDS = {"status": "U", "reason": "U", f"{PREFIX}families": "U", "mutable": "b", "frozen": "b", f"{EDITS}table": "U"}
_KINDS |= dict.fromkeys(("target", "query_index", "lengths"), "iu")
_KINDS |= dict.fromkeys(("ids", "subjects"), "iuU")


def _check_header(header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Raise ValueError if an entry has the wrong type, or the arrays are not those that are named by digest."""
    for name, kind in _ENTRIES.items():
        if not isinstance(header[name], kind):
            raise ValueError(f"its {name} cannot be {header[name]!r}")
    digests = header["arrays"]
    other = [name for name, array in arrays.items() if digests.get(name) != digest_of_array(array)]
    if other or set(digests) - set(arrays):
        raise ValueError(f"{', '.join(other) or 'an array'} does not match the sha256 in the header")


def _check_arrays(arrays: Mapping[str, Any], info: SeriesInfo) -> None:
    """Raise ValueError if arrays have a type, shape or value that answers never have."""
    n, n_steps = len(arrays["target"]), arrays["query"].shape[1]
    kinds, shapes = dict(_KINDS), dict[str, tuple[int, ...]]()
    shapes |= dict.fromkeys(("target", "query_index", "status", "reason", "lengths", "ids", "subjects"), (n,))
    shapes |= dict.fromkeys(("proba_before", "proba_after"), (n, info.n_classes))
    shapes |= dict.fromkeys(("query", "counterfactual"), (n, n_steps, info.n_features))
    shapes |= {"frozen": (n_steps, info.n_features), "mutable": (info.n_features,)}
    if outcome := info.outcome:
        shapes |= dict.fromkeys((f"{NUMBERS}before", f"{NUMBERS}after"), (n, outcome.n_outputs))
        kinds["target"] = "U"  # in words
    for name, array in arrays.items():
        if array.dtype.kind not in kinds.get(name, "fiub") or array.shape != shapes.get(name, array.shape):
            raise ValueError(f"{name} cannot be {array.dtype} of shape {array.shape}")
    lengths, target = arrays.get("lengths", np.ones(n)), arrays["target"]
    checks = {
        "query": n_steps > 0,
        "target": outcome or ((target >= 0) & (target < info.n_classes)).all(),
        "numbers": all(f"{NUMBERS}{name}" in arrays for name in FIELDS) == bool(outcome),
        "status": np.isin(arrays["status"], STATUSES).all(),
        "lengths": ((lengths > 0) & (lengths <= n_steps)).all(),
        "side inputs": all(len(array) == n for name, array in arrays.items() if name.startswith(SIDE_PREFIX)),
    }
    wrong = [name for name, fine in checks.items() if not fine]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} cannot be those of answers")


def queries_per_shard(n_steps: int, n_features: int, n: int) -> int:
    """Return how many queries with ``n`` answers each go into a shard.

    >>> queries_per_shard(50, 50, 1)
    838
    """
    return max(1, MAX_SHARD_BYTES // (n_steps * n_features * 8 * n))


@contextmanager
def writing_answers(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a folder of answers, which one process at a time writes; another one raises BusyError."""
    folder = as_path(out)
    if is_file(folder):
        raise StorageError(f"out= must be a folder, but {folder} is a file.")
    with locked(folder / LOCK, what=f"the folder {folder}", wait=False):
        yield folder


class ShardFolder:
    """A folder of answers to one question, a file per shard, with a header that says what was asked.

    The question is everything besides the queries that determines the answers, as plain values. A folder with answers
    to another one is refused.
    """

    def __init__(self, folder: Path, header: str, question: Mapping[str, Any]) -> None:
        self.folder, self.header, self.question = folder, inside(folder, header), dict(question)
        self.is_new = not self.header.exists()
        if not self.is_new:
            stored = read_header(folder, header)["question"]
            names = dict.fromkeys([*self.question, *stored])
            other = [name for name in names if self.question.get(name) != stored.get(name)]
            if other:
                self.refuse(f"to another question: {', '.join(other)} differ{'s' * (len(other) == 1)}")

    def refuse(self, why: str) -> NoReturn:
        """Raise because the folder holds other answers."""
        raise StorageError(f"{self.folder} holds answers {why}. Choose another folder, or remove this one.")

    def write_header(self, *, finished: bool, **about: Any) -> None:
        """Say whether all shards are there, and what is known of them."""
        write_json(self.header, {"format": FORMAT, "finished": finished, "question": self.question, **about})


def read_header(folder: Path, name: str) -> Any:
    """Return the header of a folder of answers, with the types that it was written with."""
    header = read_json(inside(folder, name), "a folder of answers")
    if not isinstance(header, dict) or header.get("format") != FORMAT or not isinstance(header.get("question"), dict):
        raise FileFormatError(f"{folder / name} is not of a folder of answers that this version reads.")
    return header


def _common(name: str) -> Any:
    """Return a property for a field that is the same in every shard."""
    return property(lambda folder: getattr(folder._shared, name))


def _of_answers(name: str) -> Any:
    """Return a property for what is known of every answer beside its series."""
    return property(lambda folder: getattr(folder._without_series, name))


def _of_shards(name: str) -> Any:
    """Return a property for what is read from all shards on every access, and needs memory for all answers."""
    return property(lambda folder: np.concatenate([getattr(shard, name) for shard in folder.shards()]))


class ExplanationFolder(Explanation):
    """An explanation stored on disk as a folder of shards, read on access.

    The fields of :class:`Explanation` are properties here. What has one entry per answer (``status``, ``valid``,
    ``target``, …) is read from all shards on first access and kept; ``query`` and ``counterfactual``, and with them
    ``delta`` and ``changed``, are read on every access and need memory for all answers. Rows (``e[3]``, ``e[2:5]``,
    ``e[e.valid]``) are ordinary explanations; :meth:`shards` iterates over all of them with the memory of one shard.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        # Explanation.__init__ is not called: every field is a property of this class.
        self.folder = Path(folder)
        header = read_header(self.folder, HEADER)
        shards, seconds = header.get("shards"), header.get("seconds")
        if not header.get("finished"):
            raise FileFormatError(
                f"{self.folder} is not finished: call explain with the same queries and out={str(self.folder)!r} "
                "to continue."
            )
        if not isinstance(shards, int) or shards < 1 or not isinstance(seconds, (int, float)):
            raise FileFormatError(f"{self.folder / HEADER} is damaged.")
        self.n_shards = shards
        first = load_explanation(_file(self.folder, 0))
        self._shared = replace(first[[]], seconds=float(seconds))  # no answers, only what all shards have in common

    info, mutable, frozen = _common("info"), _common("mutable"), _common("frozen")
    method, config, constraints = _common("method"), _common("config"), _common("constraints")
    seed, seconds, confidence = _common("seed"), _common("seconds"), _common("confidence")
    target, status, reason = _of_answers("target"), _of_answers("status"), _of_answers("reason")
    query_index, lengths = _of_answers("query_index"), _of_answers("lengths")
    ids, subjects = _of_answers("ids"), _of_answers("subjects")
    proba_before, proba_after = _of_answers("proba_before"), _of_answers("proba_after")
    evidence, numbers = _of_answers("evidence"), _of_answers("numbers")
    edit_lists, side = _of_answers("edit_lists"), _of_answers("side")
    query, counterfactual, share_changed = (
        _of_shards("query"),
        _of_shards("counterfactual"),
        _of_shards("share_changed"),
    )
    missing: Any = property(lambda folder: missing_entries(folder.query))

    @cached_property
    def plausibility(self) -> Mapping[str, FloatArray]:
        """Four measures (answers,) of how real the counterfactuals look."""
        of_shards = [shard.plausibility for shard in self.shards()]
        return {name: np.concatenate([part[name] for part in of_shards]) for name in PLAUSIBILITY}

    def shards(self) -> Iterator[Explanation]:
        """Yield the shards in order, as ordinary explanations."""
        for number in range(self.n_shards):
            shard, like = load_explanation(_file(self.folder, number)), self._shared.query
            if shard.query.shape[1:] != like.shape[1:] or shard.query.dtype != like.dtype:
                raise FileFormatError(f"shard {number} of {self.folder} is not of these answers. Explain again.")
            yield shard

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
    def _parts(self) -> list[Explanation]:
        """The shards, with series of no steps; of each nothing else is kept in memory."""
        shards = ((shard, shard.query[:, :0].copy()) for shard in self.shards())
        return [replace(shard, query=nothing, counterfactual=nothing, frozen=None) for shard, nothing in shards]

    @cached_property
    def _without_series(self) -> Explanation:
        """All answers, with series of no steps."""
        return join(self._parts)

    @cached_property
    def _starts(self) -> IntArray:
        """Index of the first answer of each shard."""
        return np.cumsum([0, *(len(part) for part in self._parts[:-1])])


class ShardWriter(ShardFolder):
    """Writes shards, into a folder that is created if missing, and finds those that are already finished."""

    def __init__(self, folder: str | os.PathLike[str], question: Mapping[str, Any]) -> None:
        super().__init__(Path(folder), HEADER, question)
        self.seconds = 0.0
        if self.is_new and (found := sorted(self.folder.glob(f"shard-{'[0-9]' * 6}.npz"))):
            raise StorageError(
                f"{self.folder} holds {found[0].name} but no {HEADER}, so it is not a folder of explanations. Choose "
                "another folder."
            )
        self._begun = False

    def first_readable(self) -> Explanation | None:
        """Return the first shard that can be read, or None."""
        files = (inside(self.folder, file.name) for file in sorted(self.folder.glob("shard-*.npz")))
        return next((shard for file in files if (shard := _readable(file)) is not None), None)

    def finished_shard(
        self,
        number: int,
        series: Series,
        target: IntArray | StrArray | None,
        side: Side | None = None,
    ) -> Explanation | None:
        """Return the finished shard of these queries, or None if it has to be computed.

        Raises StorageError if the shard holds other queries, lengths, side inputs or targets. Nothing is written before
        :meth:`write`, so the folder is then unchanged.
        """
        shard = _readable(_file(self.folder, number))
        if shard is None:
            return None
        n = int(self.question["n"])
        queries, targets = Series(shard.query, shard.lengths)[::n], shard.target[::n]
        k = min(len(queries), len(series))
        there, asked = queries[:k], series[:k]
        same = there.values.dtype == asked.values.dtype
        if not same or not np.array_equal(there.values, asked.values, equal_nan=True):
            self.refuse(f"to other queries (see shard {number})")
        if not np.array_equal(there.steps, asked.steps):
            self.refuse(f"to series of other lengths (see shard {number})")
        stored, now = (side_to_arrays(one) for one in (shard.side, side))
        if stored.keys() != now.keys() or any(not np.array_equal(stored[a][::n][:k], now[a][:k]) for a in now):
            self.refuse(f"to queries with other side inputs (see shard {number})")
        if target is not None and not np.array_equal(targets[:k], target[:k]):
            self.refuse(f"for another target (see shard {number})")
        if len(queries) > len(series):
            self.refuse("to more queries than X gave")
        if len(queries) < len(series):
            return None  # the last, partial shard of an earlier call with fewer queries
        self.seconds += shard.seconds
        return shard

    def write(self, number: int, shard: Explanation) -> None:
        """Write a shard atomically; the folder is marked as unfinished before the first one."""
        if not self._begun:
            self.write_header(finished=False)
        self._begun = True
        shard.save(_file(self.folder, number), compress=False)
        self.seconds += shard.seconds

    def finish(self, n_shards: int) -> ExplanationFolder:
        """Mark the folder as finished and open it."""
        if _file(self.folder, n_shards).exists():
            self.refuse("to more queries than X gave")
        self.write_header(finished=True, shards=n_shards, seconds=self.seconds)
        return ExplanationFolder(self.folder)


def _file(folder: Path, number: int) -> Path:
    return inside(folder, f"shard-{number:06d}.npz")


def _readable(file: Path) -> Explanation | None:
    """Return a shard, or None if it is missing or damaged and has to be computed again."""
    try:
        return load_explanation(file) if file.exists() else None
    except FileFormatError:
        return None
