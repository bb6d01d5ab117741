"""Answers in any class but one: the most probable other classes are tried, and the best answer is kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explainers.request import CallOptions, QueryBlock
from sparcets.explanation.result import Explanation, join
from sparcets.progress import Bar, progress_bar

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

MOST_CLASSES = 4  # that are tried for each query, the most probable ones


def answer_any_other(explainer: BaseExplainer[Any], block: QueryBlock, options: CallOptions, bar: Bar) -> Explanation:
    """Answer each query by the class, other than ``options.excluded``, whose answers are best.

    Parameters
    ----------
    explainer
        Fitted.
    block, options, bar
        The queries, what holds for all of them, and the progress.
    """
    assert options.excluded is not None
    of_classes, parts = replace(options, excluded=None), []
    for batch in block.batches(explainer.config.batch_size):
        before = explainer.classifier.proba_unchecked(batch.X, batch.lengths)
        with progress_bar("", None, show=False) as unseen:  # every class of a query would count

            def answer(part: QueryBlock, unseen: Bar = unseen) -> Explanation:
                return explainer._answer_block(part, of_classes, unseen)

            parts.append(_best_of_classes(batch, options.excluded, before, answer))
        bar.advance(len(batch.X))
    return join(parts)


def _best_of_classes(
    block: QueryBlock, excluded: int, before: FloatArray, answer: Callable[[QueryBlock], Explanation]
) -> Explanation:
    """Return the best answers of each query: believed ones first, then valid ones, then those that change less.

    Parameters
    ----------
    block
        The queries.
    excluded
        The class that answers must not be in.
    before
        Probabilities of the queries (batch, classes).
    answer
        Answers a block with one target class per query.
    """
    predicted = before.argmax(1)
    others = np.where(np.arange(before.shape[1]) == excluded, -np.inf, before)
    ranked = np.argsort(-others, axis=1, kind="stable")[:, : min(MOST_CLASSES, before.shape[1] - 1)]
    ranked[predicted != excluded] = predicted[predicted != excluded, None]  # they are in another class as they are
    rows, parts, n = np.arange(len(block.X)), [], 1
    for rank in range(ranked.shape[1]):
        rows = rows if rank == 0 else np.flatnonzero(predicted == excluded)
        if len(rows):
            lengths = None if block.lengths is None else block.lengths[rows]
            part = answer(replace(block, X=block.X[rows], target=ranked[rows, rank], lengths=lengths))
            n = len(part) // len(rows)
            parts.append(replace(part, query_index=np.repeat(block.first + rows, n)))
    tried = join(parts)
    query = tried.query_index.reshape(-1, n)[:, 0] - block.first  # of each n answers
    rank_by = np.stack([tried.believed, tried.valid, -tried.share_changed]).reshape(3, -1, n).mean(2)
    order = np.lexsort((*-rank_by[::-1], query))
    best = order[np.unique(query[order], return_index=True)[1]]
    return tried[(best[:, None] * n + np.arange(n)).ravel()]
