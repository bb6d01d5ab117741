"""More queries than fit in memory: read block by block, and answered shard by shard into a folder."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import DataError, ShapeError, StorageError, TargetError
from sparcets.core.explanation import Explanation
from sparcets.core.progress import Bar
from sparcets.core.series import Series, as_array, check_lengths, check_padded
from sparcets.core.side_inputs import check_no_side
from sparcets.core.target import BoundTarget, is_per_query
from sparcets.io.explanations import ExplanationFolder, ShardWriter, queries_per_shard, writing_answers
from sparcets.methods.request import CallOptions, Queries, QueryBlock
from sparcets.models.base import Model

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer

COMPARED = 32  # queries that are predicted again, to check that the classifier is the one of the finished shards


class Stream(Queries):
    """Queries from a memory map or an iterator, of which one block is in memory at a time.

    A memory map is of series (batch, time, features), an iterator is over series (time, features) or batches of them.
    The parameters are those of :class:`~sparcets.methods.request.Queries`, but ``longer`` is ignored: all blocks have
    the steps of the fit.
    """

    def _open(self, longer: bool) -> None:
        X, lengths, side = self.X, self.lengths, self.model.side
        self.n, self.n_steps, known = None, self.info.n_steps, lengths is not None
        if isinstance(X, np.memmap):
            if X.ndim != 3 or not len(X) or (self.info.unequal and not known):
                self._check(X, lengths, 0)  # raises the right error
            self.n, self.lengths = len(X), check_lengths(lengths, X) if known else None
            self._check_names(self.n)
        self.padded = known and not np.all(np.asarray(lengths) == self.n_steps)
        if side is None:
            check_no_side(self.side, self.owner)
        else:
            self.side = side.table(self.side, self.n, owner=self.owner)

    def blocks(self, target: BoundTarget, size: int) -> Iterator[QueryBlock]:
        """Yield blocks of ``size`` queries with their targets; the last may hold fewer."""
        first = 0
        for series in self._parts(size):
            stop = first + len(series)
            self.model.check_gaps(series, first=first)
            if self.model.side is not None and self.side is not None:
                if len(self.side) < stop:
                    raise ShapeError(f"X gave more queries than side has rows ({len(self.side)}); pass one per query.")
                X = self.model.side.attach(series.values, self.side[first:stop], series.lengths)
                series = series.with_values(X)
            yield QueryBlock(series=series, target=target.of_queries(first, stop), index=np.arange(first, stop))
            first = stop
        if not first:
            raise ShapeError("X gave no series at all. Was the iterator used up before?")
        targets = target.index if target.per_query else None
        for name, values in (("target", targets), ("lengths", self.lengths), ("side", self.side)):
            if values is not None and is_per_query(values) and len(values) != first:
                kind = TargetError if name == "target" else ShapeError
                raise kind(f"X gave {first} queries, but {name} has {len(values)} entries; pass one per query.")
        self._check_names(first)

    def _check(self, X: Any, lengths: Any, first: int) -> Series:
        gaps = self.model.takes_gaps
        return Series(*check_padded(X, lengths, owner=self.owner, like=self.info, first=first, gaps=gaps))

    def _lengths(self, first: int, stop: int) -> Any:
        return self.lengths[first:stop] if is_per_query(self.lengths) else self.lengths

    def _parts(self, size: int) -> Iterator[Series]:
        if self.n is None:
            yield from self._from_iterator(size)
            return
        for first in range(0, self.n, size):
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
            # A single series has its own length, as in a list.
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


def release_pages(X: Any) -> None:
    """Release the memory used by reading a memory map; the file is unchanged."""
    file = getattr(X, "_mmap", None)
    # A copy-on-write map keeps its changes in this memory; and madvise is not available on every system.
    if file is not None and getattr(X, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def answer_to_folder(
    explainer: BaseExplainer[Any],
    queries: Queries,
    call: CallOptions,
    answer: Callable[[QueryBlock], Explanation],
    out: str | os.PathLike[str],
    *,
    bar: Bar,
) -> ExplanationFolder:
    """Answer queries block by block, each block a shard of a folder; finished shards are kept.

    ``answer`` answers a block; the bar advances by the queries that are answered already. A folder that another process
    is writing raises BusyError.
    """
    target, known, n_shards = call.target, queries.model.side, 0
    with writing_answers(out) as folder:
        identity = identity_of(explainer, call)
        writer = ShardWriter(folder, {**identity, "target": "given" if target.given else "runner-up"})
        finished = writer.first_readable()
        if finished is not None:
            _check_same_model(queries.model, finished)
        for block in queries.blocks(target, queries_per_shard(queries.n_steps, call.info.n_features, call.n)):
            asked = block.target if block.target is None or not target.numbers else target.words(block.target)
            X, side = block.X, None
            if known is not None:
                X, parts = known.split(X)
                side = known.typed(parts)
            finished = writer.finished_shard(n_shards, Series(X, block.series.lengths), asked, side)
            if finished is None:
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
    now = model.outputs_unchecked(Series(series, some.lengths))
    before = some.numbers.before if some.numbers else some.proba_before
    unit = some.info.outcome.scale if some.info.outcome else np.ones(1)
    if now.shape != before.shape or (np.abs(now - before) / unit).max() > 1e-3:
        raise StorageError(
            f"the answers in out= were made for another classifier than {model.name}, or it has changed since. Choose "
            "another folder, or remove this one."
        )


def identity_of(explainer: BaseExplainer[Any], call: CallOptions) -> dict[str, Any]:
    """Return everything that determines the answers besides queries and targets, as plain values."""
    digest = hashlib.sha256()
    for name, array in sorted(explainer._state().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    values = {
        "method": explainer.method,
        "config": explainer.config.deciding_values(),
        "constraints": call.constraints_given,
        "sparsity": call.sparsity,
        "n": call.n,
        "explainer": digest.hexdigest(),
        **({"curve": True} if call.curve else {}),
        **({} if call.edits is None else {"edits": call.edits}),
        **({} if call.confidence is None else {"confidence": call.confidence}),
        **({} if call.target.excluded is None else {"excluded": call.target.excluded}),
        **({"targets": [repr(one) for one in call.target.numbers]} if call.target.numbers else {}),
    }
    return dict(json.loads(json.dumps(values)))  # in the form in which it is read from the disk
