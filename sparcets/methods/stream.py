"""Explaining more queries than fit in memory: block by block, into a folder of shards."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, StrArray
from sparcets.core.errors import DataError, ShapeError, StorageError, TargetError
from sparcets.core.explanation import Explanation, join
from sparcets.core.info import SeriesInfo
from sparcets.core.progress import Bar, progress_bar
from sparcets.core.series import Series, rows_by_length
from sparcets.core.side_inputs import check_no_side, side_apart
from sparcets.core.validation import as_array, check_lengths, check_padded
from sparcets.io.explanations import ExplanationFolder, ShardWriter, queries_per_shard, writing_answers
from sparcets.methods.goal import target_words
from sparcets.methods.request import Answers, CallOptions, QueryBlock, QueryNames, Request
from sparcets.models.base import Classifier
from sparcets.models.views import at_length

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer


Part = tuple[FloatArray, "IntArray | None"]  # series, and their true lengths or None
COMPARED = 32  # queries that are predicted again, to check that the classifier is that of the finished shards


class QueryStream:
    """Queries in blocks: from an array, a memory map or an iterator, of which one block is in memory at a time.

    Parameters
    ----------
    X
        Series (batch, time, features): anything NumPy takes, a memory map, or an iterator over series (time, features)
        or batches of them.
    target
        Class name, index, one per query, or None.
    lengths
        True lengths of padded queries, or None.
    names
        Ids and subjects of the queries, or None.
    side
        Side inputs of all queries, as the user passed them.
    info, explainer
        The series of the fit, and the explainer, to check queries and targets by.
    """

    def __init__(
        self,
        X: Any,
        target: Any,
        lengths: Any,
        names: QueryNames | None = None,
        *,
        side: Any = None,
        info: SeriesInfo,
        explainer: BaseExplainer[Any],
    ) -> None:
        self.info, self.owner, self.names = info.of_series, type(explainer).__name__, names
        self.classifier, self.check_target = explainer.classifier, explainer._check_target
        self.iterates = is_stream(X)
        self.lazy = self.iterates or isinstance(X, np.memmap)
        self.X: Any = X
        self.lengths: Any = lengths
        if not self.lazy:
            self.X, self.lengths = self._check(X, lengths, 0)
        self.target = target
        self.n: int | None = None  # unknown for an iterator
        if not self.iterates:
            if self.X.ndim != 3 or not len(self.X) or (self.lengths is None and info.unequal):
                self._check(self.X, self.lengths, 0)  # raises the right error
            self.n = len(self.X)
            self.lengths = check_lengths(self.lengths, self.X) if self.lazy else self.lengths
            self.target = self.check_target(target, self.n)  # all at once: an error is raised before any work is done
            if names is not None:
                names.check_number(self.n)
        self.known_side = info.side
        self.side = None if info.side is None else info.side.table(side, self.n, owner=self.owner)
        if info.side is None:
            check_no_side(side, self.owner)

    def blocks(self, size: int) -> Iterator[QueryBlock]:
        """Yield blocks of ``size`` queries; the last may hold fewer."""
        first = 0
        for number, (X, lengths) in enumerate(self._series(size)):
            stop = first + len(X)
            self.classifier.check_gaps(X, lengths, first=first)
            if self.known_side is not None and self.side is not None:
                if len(self.side) < stop:
                    raise ShapeError(f"X gave more queries than side has rows ({len(self.side)}); pass one per query.")
                X = self.known_side.attach(X, self.side[first:stop], lengths)
            yield QueryBlock(number=number, first=first, series=Series(X, lengths), target=self._target(first, stop))
            first = stop
        if not first:
            raise ShapeError("X gave no series at all. Was the iterator used up before?")
        given: dict[str, Any] = {"target": self.target, "lengths": self.lengths, "side": self.side}
        for name, values in given.items():
            if _one_each(values) and len(values) != first:
                kind = TargetError if name == "target" else ShapeError
                raise kind(f"X gave {first} queries, but {name} has {len(values)} entries; pass one per query.")

        if self.names is not None:
            self.names.check_number(first)

    def _check(self, X: Any, lengths: Any, first: int) -> Part:
        gaps = self.classifier.takes_gaps
        return check_padded(X, lengths, owner=self.owner, like=self.info, first=first, gaps=gaps)

    def _lengths(self, first: int, stop: int) -> Any:
        return None if self.lengths is None else self.lengths[first:stop]

    def _target(self, first: int, stop: int) -> IntArray | None:
        target = self.target[first:stop] if _one_each(self.target) else self.target
        checked: IntArray | None = self.check_target(target, stop - first) if self.iterates else target
        return checked

    def _series(self, size: int) -> Iterator[Part]:
        if self.iterates:
            yield from self._from_iterator(size)
            return
        for first in range(0, len(self.X), size):
            part, lengths = self.X[first : first + size], self._lengths(first, first + size)
            if self.lazy:
                part, lengths = self._check(np.array(part), lengths, first)  # a copy: mapped pages can be released
                release_pages(self.X)
            yield part, lengths

    def _from_iterator(self, size: int) -> Iterator[Part]:
        held: list[Part] = []
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
            whole = _concatenate(held)
            full = waiting - waiting % size
            for start in range(0, full, size):
                yield _rows(whole, slice(start, start + size))
            first, waiting = first + full, waiting - full
            held = [_rows(whole, slice(full, None))] if waiting else []
        if held:
            yield _concatenate(held)


def release_pages(X: Any) -> None:
    """Release the memory that reading a memory map has taken; the file is unchanged."""
    file = getattr(X, "_mmap", None)
    # A copy-on-write map keeps its changes in this memory; and madvise is not available on every system.
    if file is not None and getattr(X, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        file.madvise(mmap.MADV_DONTNEED)


def explain_stream(
    explainer: BaseExplainer[Any],
    stream: QueryStream,
    options: CallOptions,
    *,
    out: str | os.PathLike[str] | None,
    progress: bool | None,
) -> Explanation:
    """Explain queries block by block, into memory or into a folder.

    Parameters
    ----------
    explainer
        Fitted.
    stream, options
        The queries, and what holds for all of them.
    out
        Folder for the answers; None keeps them in memory. Shards that are finished already are kept. A
        folder that another process is writing raises BusyError.
    progress
        Whether to draw a progress bar; None draws it on a terminal and in a notebook.
    """
    started = time.perf_counter()
    with progress_bar(f"explaining by {explainer.method}", stream.n, show=progress) as bar:
        if out is not None:
            return _explain_to_folder(explainer, stream, options, out, bar)
        blocks = stream.blocks(stream.n or explainer.config.batch_size)
        whole = join([_answer(explainer, stream, block, options, bar) for block in blocks])
    return replace(whole, seconds=time.perf_counter() - started)


def _explain_to_folder(
    explainer: BaseExplainer[Any], stream: QueryStream, options: CallOptions, out: str | os.PathLike[str], bar: Bar
) -> ExplanationFolder:
    with writing_answers(out) as folder:
        return _write_shards(explainer, stream, options, folder, bar)


def _write_shards(
    explainer: BaseExplainer[Any], stream: QueryStream, options: CallOptions, out: Path, bar: Bar
) -> ExplanationFolder:
    info = explainer._fitted()
    asked = "runner-up" if stream.target is None else "given"
    writer = ShardWriter(out, {**identity_of(explainer, options), "target": asked})
    finished = writer.first_readable()
    if finished is not None:
        _check_same_classifier(explainer, finished)
    n_shards = 0
    for block in stream.blocks(queries_per_shard(info.n_steps, info.n_features, options.n)):
        target: IntArray | StrArray | None = block.target
        if target is not None and info.outcome is not None:  # in words, as answers have it
            target = target_words(options.goals, info.outcome)[target]
        X, side = block.series.values, None
        if info.side is not None:
            X, parts = info.side.split(X)
            side = info.side.typed(parts)
        finished = writer.finished_shard(block.number, X, target, block.series.lengths, side)
        if finished is None:
            writer.begin()
            writer.write(block.number, _answer(explainer, stream, block, options, bar))
        else:
            if stream.names is not None and not stream.names.agree(finished):
                writer.refuse("to queries of other ids or subjects")
            bar.advance(len(block))
        n_shards += 1
    return writer.finish(n_shards)


def _answer(
    explainer: BaseExplainer[Any], stream: QueryStream, block: QueryBlock, options: CallOptions, bar: Bar
) -> Explanation:
    answers = side_apart(explainer._answer_block(block, options, bar))
    return answers if stream.names is None else stream.names.attach(answers)


def identity_of(explainer: BaseExplainer[Any], options: CallOptions) -> dict[str, Any]:
    """Return all that determines the answers besides queries and targets, as plain values."""
    digest = hashlib.sha256()
    for name, array in sorted(explainer._state().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    values = {
        "method": explainer.method,
        "config": explainer.config.deciding_values(),
        "constraints": options.constraints_given,
        "sparsity": options.sparsity,
        "n": options.n,
        "explainer": digest.hexdigest(),
    }
    if options.curve:
        values["curve"] = True
    if options.confidence is not None:
        values["confidence"] = options.confidence
    if options.excluded is not None:
        values["excluded"] = options.excluded
    if options.goals:
        values["targets"] = [repr(goal) for goal in options.goals]
    return dict(json.loads(json.dumps(values)))  # in the form in which it comes back from the disk


def _check_same_classifier(explainer: BaseExplainer[Any], finished: Explanation) -> None:
    some, outcome, known = finished[:COMPARED], finished.info.outcome, explainer.classifier.side
    if (known is None) != (some.side is None):
        raise StorageError("the answers in out= were made with other side inputs. Choose another folder.")
    series = some.query if known is None else known.attach(some.query, known.table(some.side, len(some)), some.lengths)
    now = explainer.classifier.outputs_unchecked(series, some.lengths)
    before = some.proba_before if some.numbers is None else some.numbers.before
    unit = np.ones(1) if outcome is None else outcome.scale
    if now.shape != before.shape or (np.abs(now - before) / unit).max() > 1e-3:
        raise StorageError(
            f"the answers in out= were made for another classifier than {explainer.classifier.name}, or it has changed "
            "since. Choose another folder, or remove this one."
        )


def _one_each(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str) and getattr(values, "shape", None) != ()


def _rows(part: Part, rows: slice) -> Part:
    return part[0][rows], None if part[1] is None else part[1][rows]


def _concatenate(parts: list[Part]) -> Part:
    if len(parts) == 1:
        return parts[0]
    if len({X.shape[1:] for X, _ in parts}) > 1:
        raise DataError("X gave series of different shapes; all must have the same steps and features.")
    lengths = [steps for _, steps in parts if steps is not None]
    return np.concatenate([X for X, _ in parts]), np.concatenate(lengths) if lengths else None


E = TypeVar("E", bound=Any)  # an explainer


def prolonged(explainer: E, n_steps: int) -> E:
    """Return a fitted explainer for queries that have more steps than the training series."""
    view = copy(explainer)
    view._set_fitted(replace(explainer._fitted(), n_steps=n_steps), explainer.constraints_, explainer._target)
    return view


def answer_by_length(
    request: Request, classifier: Classifier, answer: Callable[[Request, Classifier], Answers]
) -> Answers:
    """Answer padded queries by a method that takes queries of one length.

    Parameters
    ----------
    request
        Queries with their true lengths.
    classifier
        The explained one, of padded series.
    answer
        Answers queries of one length without padding, given a classifier of such series.
    """
    assert request.lengths is not None
    n, n_steps = request.n, request.X.shape[1]
    parts, places = [], []
    counterfactual = np.repeat(request.X, n, axis=0)  # (batch * n, time, features)
    for length, rows in rows_by_length(request.lengths):
        part = answer(request.cut(rows, length), at_length(classifier, length, n_steps))
        place = (rows[:, None] * n + np.arange(n)).ravel()
        counterfactual[place, :length] = part.counterfactual
        parts.append(part)
        places.append(place)
    order = np.argsort(np.concatenate(places))

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    return Answers(
        counterfactual=counterfactual,
        status=joined("status"),
        reason=joined("reason"),
        proba=None if parts[0].proba is None else joined("proba"),
        families=parts[0].families,
        support=None if parts[0].support is None else joined("support"),
    )


def is_stream(X: Any) -> bool:
    """Return whether ``X`` can only be iterated over: a generator, an iterator, a data loader.

    >>> is_stream(iter([[[1.0]]])), is_stream([[[1.0]]]), is_stream(np.zeros((1, 1, 1)))
    (True, False, False)
    """
    return hasattr(X, "__iter__") and not hasattr(X, "__getitem__") and not hasattr(X, "__array__")
