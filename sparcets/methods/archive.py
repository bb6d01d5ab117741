"""Explaining Parquet or Arrow files into Parquet files, shard by shard, on every engine.

The answers are those of ``explain``; on the CPU, a shard is computed on one thread, so that every engine gives the same
bits. A series that cannot be explained becomes a row with its error. Computing a shard twice gives the same file.
"""

from __future__ import annotations

import copy
import os
import re
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.constraints import Constraints
from sparcets.core.errors import CapabilityError, ConfigError, DataError, StorageError
from sparcets.core.explanation import Explanation
from sparcets.core.progress import Bar, progress_bar
from sparcets.data.queries import Queries, QueryShard, plan_shards, read_queries
from sparcets.io.engines import Engine, make_engine
from sparcets.io.explanations import FORMAT, ShardFolder, queries_per_shard, writing_answers
from sparcets.io.files import UNFINISHED, digest_of_json
from sparcets.io.folders import inside
from sparcets.io.parquet import answers_table, read_part, with_errors, write_part
from sparcets.methods.base import BaseExplainer
from sparcets.methods.folder import load_parts
from sparcets.methods.stream import identity_of
from sparcets.training.device import threads_for

HEADER = "_sparcets.json"  # programs that read folders of Parquet files skip names with this prefix
TRIES = 3  # attempts at a shard
COUNTS = ("queries", "answers", "errors")


@dataclass(frozen=True, kw_only=True, eq=False)
class ParquetQuestion:
    """The task that is sent to the workers: its arguments, and the work on one shard.

    Attributes
    ----------
    model
        Folder with the subfolders ``classifier`` and ``explainer``, as `sparcets fit` writes it, which every worker
        loads once; or a fitted explainer, for workers in this process.
    device, seed
        Device of the networks; seed of the searches, or None for that of the fit.
    arguments
        Arguments of ``explain``: ``target``, ``constraints``, ``sparsity``, ``n``, ``confidence``, ``edits``.
    out
        Folder of the answers.
    digest
        Digest of everything that determines the answers, except the queries.
    own_model
        The Python file of the user's own model and the function in it, which workers may run; None allows nothing.
    like
        An empty table of answers (pyarrow), which gives the columns for shards that have errors only.
    """

    model: str | BaseExplainer[Any]
    device: str
    seed: int | None
    arguments: Mapping[str, Any]
    out: Path
    digest: str = ""
    own_model: str | None = None
    like: Any = None

    def explainer(self, device: str | None = None) -> BaseExplainer[Any]:
        """Return the explainer; loaded once per process."""
        if isinstance(self.model, BaseExplainer):
            return self.model
        return load_for(self.model, device or self.device, self.seed, self.own_model)

    def answer(self, shard: QueryShard) -> ShardReport:
        """Explain a shard and write its file, unless it is there already."""
        done = self.finished(shard)
        if done is not None:
            return done
        explainer, queries = self.explainer(), read_queries(shard)
        began = time.perf_counter()
        answered, errors = answer_queries(explainer, queries, self.arguments)
        return self._write(shard, queries, answered, errors, explain_s=time.perf_counter() - began)

    def give_up(self, shard: QueryShard, why: str) -> ShardReport:
        """Write a file of errors for a shard that no worker survived; the next run tries it again."""
        queries = read_queries(shard)
        return self._write(shard, queries, [], dict.fromkeys(range(len(queries.series)), why), given_up=True)

    def finished(self, shard: QueryShard) -> ShardReport | None:
        """Return the report of a shard whose file exists and is complete, or None."""
        about = read_part(self.out / shard.part)
        if about is None or about.get("given_up") or not self._about(shard).items() <= about.items():
            return None
        return ShardReport(**{name: about[name] for name in COUNTS})

    def _about(self, shard: QueryShard) -> dict[str, Any]:
        """Return the metadata of a file of answers, as a finished file must have them."""
        return {
            "format": FORMAT,
            "question": self.digest,
            "source": shard.name,
            "source_digest": shard.digest,
            "rows": [shard.first, shard.stop],
        }

    def _write(
        self,
        shard: QueryShard,
        queries: Queries,
        answered: list[Explanation],
        errors: dict[int, str],
        *,
        explain_s: float = 0.0,
        given_up: bool = False,
    ) -> ShardReport:
        import pyarrow as pa

        tables = [answers_table(e, queries.ids) for e in answered]
        if not tables:
            position = self.like.schema.get_field_index("id")
            tables = [self.like.set_column(position, "id", pa.array([], queries.ids.type))]
        table = pa.concat_tables(tables)
        if errors:
            rows = np.concatenate([np.zeros(0, dtype=np.int64), *(e.query_index for e in answered)])
            table = with_errors(table, rows, queries.ids, errors)
        counts = dict(zip(COUNTS, (len(queries.series), len(table), len(errors)), strict=True))
        about = {**self._about(shard), **counts, **({"given_up": True} if given_up else {})}
        write_part(self.out / shard.part, table, about)
        return ShardReport(**counts, explain_s=explain_s)


@dataclass(frozen=True)
class ShardReport:
    """Result of a shard: numbers of series, of rows, and of rows with an error; seconds in ``explain``."""

    queries: int
    answers: int
    errors: int
    explain_s: float = 0.0


@lru_cache(maxsize=1)
def load_for(folder: str, device: str, seed: int | None, own_model: str | None = None) -> BaseExplainer[Any]:
    """Return the explainer of a folder with its classifier."""
    return _with_seed(load_parts(Path(folder), device=device, model=own_model), seed)


def _with_seed(explainer: BaseExplainer[Any], seed: int | None) -> BaseExplainer[Any]:
    if seed is None:
        return explainer
    other = copy.copy(explainer)
    other.config = explainer.config.override(f"seed={seed}")
    return other


def answer_queries(
    explainer: BaseExplainer[Any], queries: Queries, arguments: Mapping[str, Any]
) -> tuple[list[Explanation], dict[int, str]]:
    """Explain series; return the answers, and the errors by the index of the series.

    The series are explained at once. If that raises, each half is tried separately, down to single series.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    info = explainer._fitted()
    answered: list[Explanation] = []
    errors = {i: one for i, one in enumerate(queries.series) if isinstance(one, str)}

    def explain(rows: list[int]) -> Explanation:
        X: Any = [queries.series[i] for i in rows]
        if not info.unequal:
            other = next((len(one) for one in X if len(one) != info.n_steps), None)
            if other is not None:
                raise DataError(f"it has {other} steps, but the explainer was fitted on series of {info.n_steps}.")
            X = np.stack(X)
        e = explainer.explain(X, **arguments, progress=False)
        return replace(e, query_index=np.asarray(rows, dtype=np.int64)[e.query_index])

    def answer(rows: list[int]) -> None:
        try:
            answered.extend([explain(rows)] if rows else [])
        except Exception as error:
            if len(rows) == 1:
                errors[rows[0]] = " ".join(str(error).split()) or type(error).__name__
                return
            half = len(rows) // 2
            answer(rows[:half])
            answer(rows[half:])

    with threads_for(0), threadpool_limits(1):
        answer([i for i in range(len(queries.series)) if i not in errors])
    return answered, errors


@dataclass(frozen=True, kw_only=True)
class ParquetAnswers:
    """Result of :func:`explain_parquet`.

    Attributes
    ----------
    folder
        Folder of the answers.
    queries, answers, errors
        Number of series, of answers, and of series that could not be explained; those are rows too.
    shards, computed
        Number of shards, and how many of them were computed in this call.
    unfinished
        File to reason for shards whose answers could not be written. The same call tries them again.
    seconds
        Duration of this call.
    explain_s
        Total time that its workers spent in ``explain``.
    """

    folder: Path
    queries: int
    answers: int
    errors: int
    shards: int
    computed: int
    unfinished: Mapping[str, str]
    seconds: float
    explain_s: float


def explain_parquet(
    model: str | os.PathLike[str] | BaseExplainer[Any],
    queries: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    target: Any = None,
    constraints: Constraints | None = None,
    sparsity: float | None = None,
    n: int = 1,
    confidence: float | None = None,
    edits: int | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    own_model: str | None = None,
    seed: int | None = None,
    device: str = "auto",
    engine: str = "local",
    workers: int | None = None,
    address: str | None = None,
    progress: bool | None = None,
) -> ParquetAnswers:
    """Explain all series of Parquet or Arrow files, into a folder of Parquet files.

    The same call after an interruption continues with the missing shards. A series that cannot be explained is a row
    with its error. Answers do not depend on the engine and the number of workers; on a CPU they are bit-identical.

    Parameters
    ----------
    model
        Folder of `sparcets fit`; or a folder with the subfolders ``classifier`` and ``explainer``, from ``clf.save``
        and ``ex.save``; or a fitted explainer, to work in this process.
    queries
        A .parquet, .arrow or .feather file, or a folder of them, possibly in subfolders such as ``ward=3/``.
    out
        Folder of the answers; it gets the same subfolders.
    target, constraints, sparsity, n, confidence, edits
        As in ``explain``, with one ``target`` for all series.
    id_column, time_column
        Names of those columns, if they are not ``id`` and ``time``.
    own_model
        Python file and function of a model of your own, as ``"my_model.py:load"``, if the folder was fitted to one. The
        file is executed, and only if it is named here.
    seed
        Seed of the searches; None uses the seed of the fit.
    device
        Device of the networks.
    engine, workers, address
        ``"local"``, with a number of processes, 1 unless given; or ``"ray"``, with a number of workers, one per GPU or
        core of the cluster unless given, and its address. All nodes must reach the files by the same paths.
    progress
        Whether to draw a progress bar; None draws it on a terminal and in a notebook.

    Examples
    --------
    >>> import numpy as np, pandas as pd, sparcets as sp
    >>> from tempfile import TemporaryDirectory
    >>> X = np.random.default_rng(0).normal(size=(40, 10, 1))
    >>> clf = sp.wrap(lambda X: np.eye(2)[(X.mean((1, 2)) > 0).astype(int)])
    >>> ex = sp.Nearest(clf).fit(X, clf.predict(X))
    >>> with TemporaryDirectory() as folder:
    ...     pd.DataFrame({"id": range(40), "f0": list(X[:, :, 0])}).to_parquet(f"{folder}/queries.parquet")
    ...     result = sp.explain_parquet(ex, f"{folder}/queries.parquet", f"{folder}/answers", target=1)
    ...     answers = pd.read_parquet(f"{folder}/answers/queries-0000000000.parquet")
    >>> result.answers, bool(answers["valid"].all())
    (40, True)
    """
    began = time.perf_counter()
    source: Any = model
    if isinstance(model, BaseExplainer):
        if engine != "local" or workers not in (None, 1):
            raise ConfigError(
                "other processes load the explainer from a folder: clf.save('m/classifier'), ex.save('m/explainer'), "
                "and pass 'm'."
            )
        if own_model is not None:
            raise ConfigError("own_model is for a folder; a fitted explainer has its model.")
        source = _with_seed(model, seed)
    else:
        source = str(Path(model).resolve())
        own_model = None if own_model is None else os.path.abspath(own_model)  # noqa: PTH100 - with the function behind
    arguments = {"target": target, "constraints": constraints, "sparsity": sparsity, "n": n, "confidence": confidence}
    arguments |= {} if edits is None else {"edits": edits}
    question = ParquetQuestion(
        model=source, device=device, seed=seed, arguments=arguments, out=Path(out).resolve(), own_model=own_model
    )
    # The machine that only hands out work may have no GPU.
    explainer = question.explainer(device if engine == "local" else "auto")
    info = explainer._fitted()
    if info.side is not None:
        raise CapabilityError("side inputs are not read from Parquet files. Pass the series to explain(X, side=…).")
    call = explainer._call(n_steps=info.n_steps, n_queries=1, **arguments)  # raises if an argument is invalid
    index = call.target.of_queries(0, 1)
    identity = {
        **identity_of(explainer, call),
        "target": "runner-up" if index is None else int(index[0]),
        "classifier": explainer.classifier.digest(),
    }
    within = Path(queries).resolve()
    if within.is_dir() and question.out.is_relative_to(within):
        raise ConfigError(
            f"the folder of the answers, {out}, is within that of the queries, {queries}. Choose another."
        )
    size = queries_per_shard(info.n_steps, info.n_features, n)
    columns = {"id_column": id_column, "time_column": time_column}
    with writing_answers(out) as folder:
        shards = list(plan_shards(Path(queries), info.feature_names, size, **columns))
        if not shards:
            raise DataError(f"{os.fspath(queries)} holds no series at all.")
        place = ShardFolder(folder, HEADER, identity)
        _check_parts(place, {shard.part for shard in shards})
        question = replace(question, digest=digest_of_json(identity), like=_like(explainer, shards[0], arguments))
        place.write_header(finished=False)
        unfinished: dict[str, str] = {}
        with progress_bar(f"explaining by {explainer.method}", len(shards), show=progress) as bar:
            reports = {shard.part: question.finished(shard) for shard in shards}
            pending = deque(shard for shard in shards if reports[shard.part] is None)
            done = [report for report in reports.values() if report is not None]
            bar.advance(len(done))
            computed = len(pending)
            if pending:
                made = make_engine(engine, address=address, device=device)
                done += _run(question, pending, unfinished, bar, made, workers)
        counts = {name: sum(getattr(report, name) for report in done) for name in COUNTS} | {"shards": len(shards)}
        place.write_header(finished=not unfinished, **counts)
    return ParquetAnswers(
        folder=folder,
        **counts,
        computed=computed - len(unfinished),
        unfinished=unfinished,
        seconds=time.perf_counter() - began,
        explain_s=sum(report.explain_s for report in done),
    )


def _run(
    question: ParquetQuestion,
    pending: deque[QueryShard],
    unfinished: dict[str, str],
    bar: Bar,
    engine: Engine,
    workers: int | None,
) -> list[ShardReport]:
    """Compute all shards; failed ones are tried again after all others."""
    tries: Counter[str] = Counter()
    done: list[ShardReport] = []
    any_answered = False
    with engine:
        for shard, result in engine.map_unordered(partial(ParquetQuestion.answer, question), pending, workers=workers):
            if isinstance(result, ShardReport):
                any_answered = True
                done.append(result)
            else:
                if not any_answered and not isinstance(result, OSError):
                    raise result  # such as a model that the workers cannot load
                tries[shard.part] += 1
                died = isinstance(result, ChildProcessError)
                if tries[shard.part] < TRIES and isinstance(result, OSError) and not (died and engine.retries):
                    pending.append(shard)
                    continue
                try:
                    if not died:
                        raise result
                    done.append(question.give_up(shard, str(result)))
                except Exception as error:
                    unfinished[shard.part] = " ".join(str(error).split())
            bar.advance(1)
    return done


def _check_parts(place: ShardFolder, parts: set[str]) -> None:
    """Raise if a folder holds answers to other queries, foreign files, or links to other places."""
    for part in parts:
        inside(place.folder, part)
    for path in place.folder.rglob("*.parquet"):
        name = path.relative_to(place.folder).as_posix()
        if (name not in parts or place.is_new) and re.search(UNFINISHED, path.name) is None:
            whose = "is no answer of sparcets" if place.is_new else "belongs to other queries"
            raise StorageError(f"{place.folder} holds {name}, which {whose}. Choose another folder.")


def _like(explainer: BaseExplainer[Any], shard: QueryShard, arguments: Mapping[str, Any]) -> Any:
    """Return an empty table of answers, after explaining one series here, so that general errors show at once."""
    import pyarrow as pa

    queries, why = read_queries(shard), ""
    for i, one in enumerate(queries.series):
        answered, errors = answer_queries(explainer, Queries(queries.ids.slice(i, 1), [one]), arguments)
        if answered:
            return answers_table(answered[0][[]], pa.array([], queries.ids.type))
        why = why or errors[0]
    raise DataError(f"none of the first {len(queries.series)} series of {shard.path} can be explained: {why}")
