"""Queries block by block: arrays, memory maps and iterators alike, so that no more than a block is ever held."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.errors import DataError, ShapeError, TargetError
from sparcets.validation import check_lengths, check_target

Check = Callable[[Any, int], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """Some queries that stand behind one another.

    Attributes
    ----------
    number, first
        Of the block among all, and of its first query among all.
    X
        Checked series (batch, time, features).
    target, lengths
        Classes asked for and true lengths, or None.
    """

    number: int
    first: int
    X: FloatArray
    target: IntArray | None
    lengths: IntArray | None


class Queries:
    """What was passed to ``explain``, to be gone through once.

    Parameters
    ----------
    X
        Series (batch, time, features): anything NumPy takes, a memory map, or an iterator over series (time, features)
        or batches of them.
    target
        Class name, index, one per query, or None.
    lengths
        True lengths of padded queries, or None.
    check
        Checks series, given those and the number of the first; all at once where they are in memory anyway.
    class_names
        Of all classes.
    """

    def __init__(self, X: Any, target: Any, lengths: Any, *, check: Check, class_names: tuple[str, ...]) -> None:
        self.check, self.class_names, self.lengths, self.target = check, class_names, lengths, target
        self.streams = is_stream(X)
        self.lazy = self.streams or isinstance(X, np.memmap)
        self.X = X if self.lazy else check(X, 0)
        self.n: int | None = None  # not known of an iterator
        if not self.streams:
            if self.X.ndim != 3 or not len(self.X):
                check(self.X, 0)  # says what is wrong
            self.n = len(self.X)
            self.lengths = check_lengths(lengths, self.X)
            if target is not None:  # all at once: a mistake in the last one should show before any work
                self.target = check_target(target, n_queries=self.n, class_names=class_names)

    def blocks(self, size: int) -> Iterator[Block]:
        """Yield blocks of ``size`` queries; the last may hold fewer."""
        first = 0
        for number, X in enumerate(self._series(size)):
            stop = first + len(X)
            target = self._target(first, stop)
            lengths = None if self.lengths is None else self.lengths[first:stop]
            if self.streams and lengths is not None:
                lengths = check_lengths(np.asarray(lengths), X)
            yield Block(number=number, first=first, X=X, target=target, lengths=lengths)
            first = stop
        if not first:
            raise ShapeError("X gave no series at all. Was the iterator used up before?")
        for name, values in (("target", self.target), ("lengths", self.lengths)):
            if _one_each(values) and len(values) != first:
                kind = TargetError if name == "target" else ShapeError
                raise kind(f"X gave {first} queries, but {name} has {len(values)} entries; pass one per query.")

    def _target(self, first: int, stop: int) -> IntArray | None:
        if self.target is None:
            return None
        asked = self.target[first:stop] if _one_each(self.target) else self.target
        return check_target(asked, n_queries=stop - first, class_names=self.class_names)

    def _series(self, size: int) -> Iterator[FloatArray]:
        if self.streams:
            yield from self._from_stream(size)
            return
        for first in range(0, len(self.X), size):
            part = self.X[first : first + size]
            if self.lazy:
                part = self.check(np.array(part), first)  # a copy: the pages behind it are given back at once
                release_pages(self.X)
            yield part

    def _from_stream(self, size: int) -> Iterator[FloatArray]:
        held: list[FloatArray] = []
        first = waiting = 0
        for item in self.X:
            series = np.asarray(item)
            series = series[None] if series.ndim == 2 else series
            if series.ndim == 3 and not len(series):
                continue
            held.append(self.check(series, first + waiting))
            waiting += len(series)
            if waiting < size:
                continue
            whole = _together(held)
            full = waiting - waiting % size
            for start in range(0, full, size):
                yield whole[start : start + size]
            first, waiting = first + full, waiting - full
            held = [whole[full:]] if waiting else []
        if held:
            yield _together(held)


def is_stream(X: Any) -> bool:
    """Whether ``X`` can only be gone through: a generator, an iterator, a data loader.

    >>> is_stream(iter([[[1.0]]])), is_stream([[[1.0]]]), is_stream(np.zeros((1, 1, 1)))
    (True, False, False)
    """
    return hasattr(X, "__iter__") and not hasattr(X, "__getitem__") and not hasattr(X, "__array__")


def release_pages(X: Any) -> None:
    """Give back the memory that reading a memory map has taken; the file and what was changed in it stay."""
    file = getattr(X, "_mmap", None)
    # A copy-on-write map keeps its changes in exactly this memory; and not every system can do it.
    if file is not None and getattr(X, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def _one_each(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str) and getattr(values, "shape", None) != ()


def _together(parts: list[FloatArray]) -> FloatArray:
    if len({part.shape[1:] for part in parts}) > 1:
        raise DataError("X gave series of different shapes; all must have the same steps and features.")
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
