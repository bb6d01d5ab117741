"""Explaining a shard of a Parquet or Arrow file into one Parquet file: the piece of work of every engine.

The answers are those of ``explain``; on the CPU, a shard is computed on one thread, so that they are the same bits on
every engine. A series that cannot be explained becomes a row with its error. Doing a shard twice gives the same file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.classifiers.own_model import load_any_model
from sparcets.datasets.query_files import Queries, QueryShard, read_queries
from sparcets.errors import DataError
from sparcets.explainers.asked import settle_target
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.files import load
from sparcets.explainers.streaming import identity_of
from sparcets.explanation.parquet import answers_table, read_part, with_errors, write_part
from sparcets.explanation.result import Explanation
from sparcets.targets import Not, NumberTarget
from sparcets.training.threads import threads_for

FORMAT = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class ParquetQuestion:
    """What is asked about every shard.

    Attributes
    ----------
    model
        Folder with the subfolders ``classifier`` and ``explainer``, as `sparcets fit` writes it, which every worker
        loads once; or a fitted explainer, for workers in this process.
    device, seed
        Device of the networks; seed of the searches, or None for that of the fit.
    arguments
        Of ``explain``: ``target``, ``constraints``, ``sparsity``, ``n``, ``confidence``.
    out
        Folder of the answers.
    digest
        Of all that determines the answers, apart from the queries.
    like
        Answers to no queries, a table of pyarrow without rows: the columns, for shards that have errors only.
    """

    model: str | BaseExplainer[Any]
    device: str
    seed: int | None
    arguments: Mapping[str, Any]
    out: Path
    digest: str
    like: Any = None

    def explainer(self) -> BaseExplainer[Any]:
        """Return the explainer; loaded once per process."""
        if isinstance(self.model, BaseExplainer):
            return self.model
        return load_for(self.model, self.device, self.seed)


@dataclass(frozen=True)
class ShardReport:
    """What became of a shard.

    Attributes
    ----------
    queries, answers, errors
        Number of series, of rows, and of rows with an error.
    seconds
        Time that the shard took, of which ``explain_s`` were for ``explain``.
    """

    queries: int
    answers: int
    errors: int
    seconds: float = 0.0
    explain_s: float = 0.0


@lru_cache(maxsize=1)
def load_for(folder: str, device: str, seed: int | None) -> BaseExplainer[Any]:
    """Return the explainer of a folder with its classifier."""
    place = Path(folder)
    explainer = load(place / "explainer", classifier=load_any_model(place / "classifier", device=device))
    if seed is not None:
        explainer.config = explainer.config.override(f"seed={seed}")
    return explainer


def identity_of_question(explainer: BaseExplainer[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that determines the answers besides the queries, as plain values; what is wrong with it raises."""
    info, target = explainer._fitted(), arguments["target"]
    given = {name: arguments[name] for name in ("sparsity", "n", "confidence")}
    options = explainer._defaults.for_call(arguments["constraints"], info, **given)
    if info.outcome is not None or isinstance(target, (Not, NumberTarget)):
        owner = type(explainer).__name__
        options, target = settle_target(target, options, info, own=explainer._target, owner=owner)
    index = explainer._check_target(target, 1)
    asked = "runner-up" if index is None else int(index[0])
    return {**identity_of(explainer, options), "target": asked, "classifier": explainer.classifier.digest()}


def answer_shard(question: ParquetQuestion, shard: QueryShard) -> ShardReport:
    """Explain a shard and write its file, unless it is there already."""
    done = finished(question, shard)
    if done is not None:
        return done
    began = time.perf_counter()
    explainer, queries = question.explainer(), read_queries(shard)
    loaded = time.perf_counter()
    answered, errors = answer_queries(explainer, queries, question.arguments)
    explained = time.perf_counter()
    return _write(question, shard, queries, answered, errors, began, explained - loaded)


def give_up(question: ParquetQuestion, shard: QueryShard, why: str) -> ShardReport:
    """Write a file of errors for a shard that no worker survived; the next run tries it again."""
    queries = read_queries(shard)
    return _write(question, shard, queries, [], dict.fromkeys(range(len(queries.series)), why), given_up=True)


def finished(question: ParquetQuestion, shard: QueryShard) -> ShardReport | None:
    """Return the report of a shard whose file is there and complete, or None."""
    said = read_part(question.out / shard.part)
    if said is None or said.get("given_up"):
        return None
    expected = _about(question, shard)
    if any(said.get(name) != value for name, value in expected.items()):
        return None
    return ShardReport(said["queries"], said["answers"], said["errors"])


def answer_queries(
    explainer: BaseExplainer[Any], queries: Queries, arguments: Mapping[str, Any]
) -> tuple[list[Explanation], dict[int, str]]:
    """Explain series; return the answers, and what went wrong by the index of the series.

    The series are explained at once. If that raises, each half is tried by itself, down to the series that cannot be
    explained.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    work = _Halves(explainer, queries, arguments)
    with threads_for(0), threadpool_limits(1):
        work.answer([i for i, one in enumerate(queries.series) if not isinstance(one, str)])
    return work.answered, {**{i: s for i, s in enumerate(queries.series) if isinstance(s, str)}, **work.errors}


@dataclass
class _Halves:
    explainer: BaseExplainer[Any]
    queries: Queries
    arguments: Mapping[str, Any]
    answered: list[Explanation] = field(default_factory=list)
    errors: dict[int, str] = field(default_factory=dict)

    def answer(self, rows: list[int]) -> None:
        if not rows:
            return
        try:
            e = self.explainer.explain(**self._series(rows), **self.arguments, progress=False)
        except Exception as error:
            if len(rows) == 1:
                self.errors[rows[0]] = " ".join(str(error).split()) or type(error).__name__
                return
            half = len(rows) // 2
            self.answer(rows[:half])
            self.answer(rows[half:])
            return
        self.answered.append(_of_rows(e, rows))

    def _series(self, rows: list[int]) -> dict[str, Any]:
        series: list[FloatArray] = [self.queries.series[i] for i in rows]  # type: ignore[misc]
        info = self.explainer._fitted()
        steps = {len(one) for one in series}
        if not info.unequal and steps != {info.n_steps}:
            other = min(steps - {info.n_steps})
            raise DataError(f"it has {other} steps, but the explainer was fitted on series of {info.n_steps}.")
        return {"X": series if info.unequal else np.stack(series)}


def _of_rows(e: Explanation, rows: list[int]) -> Explanation:
    return replace(e, query_index=np.asarray(rows, dtype=np.int64)[e.query_index])


def _write(
    question: ParquetQuestion,
    shard: QueryShard,
    queries: Queries,
    answered: list[Explanation],
    errors: dict[int, str],
    began: float | None = None,
    explain_s: float = 0.0,
    *,
    given_up: bool = False,
) -> ShardReport:
    import pyarrow as pa

    tables = [answers_table(e, queries.ids) for e in answered]
    if not tables:
        position = question.like.schema.get_field_index("id")
        tables = [question.like.set_column(position, "id", pa.array([], queries.ids.type))]
    table = pa.concat_tables(tables)
    if errors:
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *(e.query_index for e in answered)])
        table = with_errors(table, rows, queries.ids, errors)
    report = ShardReport(
        queries=len(queries.series),
        answers=len(table),
        errors=len(errors),
        seconds=0.0 if began is None else time.perf_counter() - began,
        explain_s=explain_s,
    )
    counts = {"queries": report.queries, "answers": report.answers, "errors": report.errors}
    about = {**_about(question, shard), **counts, **({"given_up": True} if given_up else {})}
    write_part(question.out / shard.part, table, about)
    return report


def _about(question: ParquetQuestion, shard: QueryShard) -> dict[str, Any]:
    """Return what a file of answers says about itself, and what a finished one must say."""
    return {
        "format": FORMAT,
        "question": question.digest,
        "source": shard.name,
        "source_digest": shard.digest,
        "rows": [shard.first, shard.stop],
    }
