"""Answering into a folder, shard by shard, for more queries than fit in memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.errors import StorageError, TargetError
from sparcets.explainers.queries import Queries
from sparcets.explainers.request import Question
from sparcets.explanation import Explanation, join
from sparcets.progress import Bar
from sparcets.shards import ExplanationFolder, ShardWriter, queries_per_shard

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

COMPARED = 32  # queries that a classifier is shown again, to see whether it is the one of the finished shards


def explain_to(
    explainer: BaseExplainer[Any], out: str | os.PathLike[str], queries: Queries, question: Question, bar: Bar
) -> ExplanationFolder:
    """Answer into a folder; shards that are there already are left as they are.

    Parameters
    ----------
    explainer
        Fitted.
    out
        The folder.
    queries, question
        What is asked.
    bar
        Told how many queries are done.
    """
    info = explainer._fitted()
    asked = {**_describe(explainer, question), "target": "runner-up" if queries.target is None else "given"}
    writer = ShardWriter(out, asked)
    there = writer.any()
    if there is not None:
        _check_same_classifier(explainer, there)
    n_shards = 0
    for block in queries.blocks(queries_per_shard(info.n_steps, info.n_features, question.n)):
        held = writer.held(block.number, block.X, block.target)
        if held is None:
            writer.begin()
            writer.write(block.number, join(list(explainer._explain_block(block, question, bar))))
        else:
            bar.advance(len(block.X))
        n_shards += 1
    folder = writer.finish(n_shards)
    refuse_nothing_to_do(folder.shards())
    return folder


def refuse_nothing_to_do(parts: Iterable[Explanation] | Iterator[Explanation]) -> None:
    """Raise where all queries are in their target class; the parts are looked at no further than needed."""
    count, first = 0, ""
    for part in parts:
        if (part.status != "unchanged").any():
            return
        count, first = count + len(part), first or part.class_names[int(part.target[0])]
    raise TargetError(
        f"all {count} queries are in their target class already (the first in {first!r}); "
        "there is nothing to explain. Choose another target or other queries."
    )


def _describe(explainer: BaseExplainer[Any], question: Question) -> dict[str, Any]:
    """Return what decides the answers besides the queries; the size of the batches and the device do not."""
    digest = hashlib.sha256()
    for name, array in sorted(explainer._state().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    config = explainer.config.to_dict()
    described = {
        "method": explainer.method,
        "config": {name: value for name, value in config.items() if name not in ("batch_size", "device")},
        "constraints": question.said,
        "sparsity": question.sparsity,
        "n": question.n,
        "explainer": digest.hexdigest(),
    }
    return dict(json.loads(json.dumps(described)))  # as it comes back from the disk


def _check_same_classifier(explainer: BaseExplainer[Any], held: Explanation) -> None:
    some = held[:COMPARED]
    now = explainer.classifier.predict_proba(some.query, some.lengths)
    if now.shape != some.proba_before.shape or np.abs(now - some.proba_before).max() > 1e-3:
        raise StorageError(
            f"the answers in out= were made for another classifier than {explainer.classifier.name}, or it has changed "
            "since. Choose another folder, or remove this one."
        )
