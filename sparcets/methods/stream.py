"""Queries in blocks, from whatever they come in, and answers to more of them than fit in memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.core.errors import DataError, ShapeError, StorageError, TargetError
from sparcets.core.explanation import Explanation
from sparcets.core.info import SeriesInfo
from sparcets.core.progress import Bar
from sparcets.core.series import Series, as_array, check_lengths, check_padded
from sparcets.core.side_inputs import check_no_side
from sparcets.core.target import BoundTarget, is_one_each
from sparcets.core.validation import check_ids
from sparcets.io.explanations import ExplanationFolder, ShardWriter, queries_per_shard, writing_answers
from sparcets.methods.request import CallOptions, QueryBlock
from sparcets.models.base import Model

COMPARED = 32  # queries that are predicted again, to check that the classifier is that of the finished shards


def check_names(**given: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the names given to ``explain`` by what they are, ``ids`` or ``subjects``: whole numbers or text."""
    checked = {what: check_ids(values, what=what, each="query") for what, values in given.items()}
    # Both kinds are saved without pickle.
    return {
        what: names if names.dtype.kind in "iuU" else names.astype(str)
        for what, names in checked.items()
        if names is not None
    }


class Queries:
    """Queries in blocks, from an array, a memory map or an iterator, of which one block is in memory at a time.

    Parameters
    ----------
    X
        Series (batch, time, features): anything NumPy takes, a memory map, or an iterator over series (time, features)
        or batches of them.
    lengths, side
        True lengths of padded queries, and side inputs of all of them, as the user passed them.
    names
        Ids and subjects of the queries, where they are given; see :func:`check_names`.
    model, info, owner
        The explained model, the series of the fit, and the name of the explainer, for messages.
    longer
        Whether queries may be longer than the series of the fit, if the model takes such.

    Attributes
    ----------
    n
        Number of queries; None for an iterator.
    n_steps
        Number of steps of the blocks, and of the answers.
    """

    def __init__(
        self,
        X: Any,
        lengths: Any,
        side: Any,
        names: Mapping[str, np.ndarray[Any, Any]],
        *,
        model: Model,
        info: SeriesInfo,
        owner: str,
        longer: bool,
    ) -> None:
        self.info, self.owner, self.names, self.model = info.of_series, owner, names, model
        self.iterates, self.n, self.n_steps = is_stream(X), None, info.n_steps
        self.lazy = self.iterates or isinstance(X, np.memmap)
        self.X: Any = X
        self.lengths: Any = lengths
        self.series: Series | None = None
        if not self.lazy:
            self.series = self._check(X, lengths, 0, longer=longer and model.takes_longer)
            self.lengths, self.n, self.n_steps = self.series.lengths, len(self.series), self.series.n_steps
        elif not self.iterates:
            if X.ndim != 3 or not len(X) or (lengths is None and info.unequal):
                self._check(X, lengths, 0)  # raises the right error
            self.n = len(X)
            self.lengths = lengths if lengths is None else check_lengths(lengths, X)
        if self.n is not None:
            self._check_names(self.n)
        self.known_side = info.side
        self.side = None
        if info.side is not None:
            self.side = info.side.table(side, self.n, owner=owner)
        elif side is not None:
            check_no_side(side, owner)

    def blocks(self, target: BoundTarget, size: int) -> Iterator[QueryBlock]:
        """Yield blocks of ``size`` queries with their targets; the last may hold fewer."""
        first = 0
        for series in self._parts(size):
            stop = first + len(series)
            self.model.check_gaps(series.values, series.lengths, first=first)
            if self.known_side is not None and self.side is not None:
                if len(self.side) < stop:
                    raise ShapeError(f"X gave more queries than side has rows ({len(self.side)}); pass one per query.")
                X = self.known_side.attach(series.values, self.side[first:stop], series.lengths)
                series = series.with_values(X)
            yield QueryBlock(series=series, target=target.of_queries(first, stop), index=np.arange(first, stop))
            first = stop
        if not first:
            raise ShapeError("X gave no series at all. Was the iterator used up before?")
        targets = target.index if target.one_each else None
        for name, values in (("target", targets), ("lengths", self.lengths), ("side", self.side)):
            if values is not None and is_one_each(values) and len(values) != first:
                kind = TargetError if name == "target" else ShapeError
                raise kind(f"X gave {first} queries, but {name} has {len(values)} entries; pass one per query.")
        self._check_names(first)

    def named(self, answers: Explanation) -> Explanation:
        """Return answers with the names of their queries."""
        rows, least = answers.query_index, min(map(len, self.names.values()), default=None)
        if least is not None and len(rows) and rows.max() >= least:  # an iterator shows its number at its end only
            raise ShapeError(f"X gave more queries than there are names ({least}). Pass one of ids per query.")
        known: dict[str, Any] = {what: names[rows] for what, names in self.names.items()}
        return replace(answers, **known)

    def _check_names(self, n_queries: int) -> None:
        for what, names in self.names.items():
            if len(names) != n_queries:
                raise ShapeError(f"{what} must be {n_queries}, one per query, got {len(names)}.")

    def _check(self, X: Any, lengths: Any, first: int, *, longer: bool = False) -> Series:
        gaps = self.model.takes_gaps
        return Series(
            *check_padded(X, lengths, owner=self.owner, like=self.info, first=first, gaps=gaps, longer=longer)
        )

    def _lengths(self, first: int, stop: int) -> Any:
        return self.lengths[first:stop] if is_one_each(self.lengths) else self.lengths

    def _parts(self, size: int) -> Iterator[Series]:
        if self.series is not None:
            yield from self.series.batches(size)
        elif self.iterates:
            yield from self._from_iterator(size)
        else:
            for first in range(0, len(self.X), size):
                # A copy: mapped pages can be released.
                part = self._check(np.array(self.X[first : first + size]), self._lengths(first, first + size), first)
                release_pages(self.X)
                yield part

    def _from_iterator(self, size: int) -> Iterator[Series]:
        held: list[Series] = []
        first = waiting = 0
        for item in self.X:
            series = as_array(item, "an item of X", "Pass series (time, features), or batches of them.", gaps=True)
            if series.ndim not in (2, 3):
                raise ShapeError(
                    f"an item of X must be a series (time, features) or a batch of them, got shape {series.shape}."
                )
            series = series[None] if series.ndim == 2 and not self.info.unequal else series
            if series.ndim == 3 and not len(series):
                continue
            start = first + waiting
            # A single series has its own length; [series] says so.
            batch = [series] if series.ndim == 2 else series
            held.append(self._check(batch, self._lengths(start, start + len(batch)), start))
            waiting += len(batch)
            if waiting < size:
                continue
            whole, full = _join(held), waiting - waiting % size
            yield from whole[:full].batches(size)
            first, waiting = first + full, waiting - full
            held = [whole[full:]] if waiting else []
        if held:
            yield _join(held)


def _join(parts: list[Series]) -> Series:
    if len({part.values.shape[1:] for part in parts}) > 1:
        raise DataError("X gave series of different shapes; all must have the same steps and features.")
    return Series.join(parts)


def is_stream(X: Any) -> bool:
    """Return whether ``X`` can only be iterated over: a generator, an iterator, a data loader.

    >>> is_stream(iter([[[1.0]]])), is_stream([[[1.0]]]), is_stream(np.zeros((1, 1, 1)))
    (True, False, False)
    """
    return hasattr(X, "__iter__") and not hasattr(X, "__getitem__") and not hasattr(X, "__array__")


def release_pages(X: Any) -> None:
    """Release the memory that reading a memory map has taken; the file is unchanged."""
    file = getattr(X, "_mmap", None)
    # A copy-on-write map keeps its changes in this memory; and madvise is not available on every system.
    if file is not None and getattr(X, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def answer_to_folder(
    queries: Queries,
    call: CallOptions,
    answer: Callable[[QueryBlock], Explanation],
    out: str | os.PathLike[str],
    *,
    identity: Mapping[str, Any],
    bar: Bar,
) -> ExplanationFolder:
    """Answer queries block by block, each block a shard of a folder; shards that are finished already are kept.

    Parameters
    ----------
    queries, call
        What is answered.
    answer
        Answers a block.
    out
        The folder. One that another process is writing raises BusyError.
    identity
        All that determines the answers besides queries and targets, as plain values.
    bar
        Is advanced by the queries whose answers are there already.
    """
    target, known, n_shards = call.target, queries.known_side, 0
    with writing_answers(out) as folder:
        writer = ShardWriter(folder, {**identity, "target": "given" if target.given else "runner-up"})
        finished = writer.first_readable()
        if finished is not None:
            _check_same_model(queries.model, finished)
        n_features = queries.info.n_features + (0 if known is None else known.n_columns)
        for block in queries.blocks(target, queries_per_shard(queries.n_steps, n_features, call.n)):
            asked = block.target if block.target is None or not target.numbers else target.words(block.target)
            X, side = block.X, None
            if known is not None:
                X, parts = known.split(X)
                side = known.typed(parts)
            finished = writer.finished_shard(n_shards, Series(X, block.lengths), asked, side)
            if finished is None:
                writer.begin()
                writer.write(n_shards, queries.named(answer(block)))
            else:
                now = queries.named(finished)
                if not all(np.array_equal(getattr(now, what), getattr(finished, what)) for what in queries.names):
                    writer.refuse("to queries of other ids or subjects")
                bar.advance(len(block))
            n_shards += 1
        return writer.finish(n_shards)


def _check_same_model(model: Model, finished: Explanation) -> None:
    some, known = finished[:COMPARED], model.side
    if (known is None) != (some.side is None):
        raise StorageError("the answers in out= were made with other side inputs. Choose another folder.")
    series = some.query if known is None else known.attach(some.query, known.table(some.side, len(some)), some.lengths)
    now = model.outputs_unchecked(series, some.lengths)
    before = some.numbers.before if some.numbers else some.proba_before
    unit = some.info.outcome.scale if some.info.outcome else np.ones(1)
    if now.shape != before.shape or (np.abs(now - before) / unit).max() > 1e-3:
        raise StorageError(
            f"the answers in out= were made for another classifier than {model.name}, or it has changed since. Choose "
            "another folder, or remove this one."
        )
