"""Explaining a shard of a Parquet or Arrow file into one Parquet file: the piece of work of every engine.

The answers are those of ``explain``; on the CPU, a shard is computed on one thread, so that they are the same bits on
every engine. A series that cannot be explained becomes a row with its error. Doing a shard twice gives the same file.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.constraints import Constraints
from sparcets.core.errors import CapabilityError, ConfigError, DataError, FileFormatError, StorageError
from sparcets.core.explanation import Explanation
from sparcets.core.progress import Bar, progress_bar
from sparcets.core.target import Not, NumberTarget
from sparcets.data.queries import Queries, QueryShard, plan_shards, read_queries
from sparcets.io.engines import Engine, make_engine
from sparcets.io.files import UNFINISHED, digest_of_json, is_file, read_json, write_json
from sparcets.io.folders import inside
from sparcets.io.locks import LOCK, locked
from sparcets.io.parquet import answers_table, read_part, with_errors, write_part
from sparcets.io.shards import queries_per_shard
from sparcets.methods.base import BaseExplainer
from sparcets.methods.fit_folder import load_parts
from sparcets.methods.goal import settle_target
from sparcets.methods.stream import identity_of
from sparcets.training.device import threads_for

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
    own_model
        The Python file of the user's own model and the function in it, which workers may run; None allows nothing.
    like
        Answers to no queries, a table of pyarrow without rows: the columns, for shards that have errors only.
    """

    model: str | BaseExplainer[Any]
    device: str
    seed: int | None
    arguments: Mapping[str, Any]
    out: Path
    digest: str
    own_model: str | None = None
    like: Any = None

    def explainer(self) -> BaseExplainer[Any]:
        """Return the explainer; loaded once per process."""
        if isinstance(self.model, BaseExplainer):
            return self.model
        return load_for(self.model, self.device, self.seed, self.own_model)


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
def load_for(folder: str, device: str, seed: int | None, own_model: str | None = None) -> BaseExplainer[Any]:
    """Return the explainer of a folder with its classifier."""
    explainer = load_parts(Path(folder), device=device, model=own_model)
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


HEADER = "_sparcets.json"  # programs that read folders of Parquet files leave out names that begin so
TRIES = 3  # times that a shard is tried


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
        Shards whose answers could not be written, by file: why. The same call tries them again.
    seconds
        Duration of this call.
    explain_s
        Time that its workers spent in ``explain``, added up.
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

    The same call after an interruption goes on with the shards that are missing. A series that cannot be explained is a
    row with its error. Answers do not depend on engine and number of workers; on a CPU, to the last bit.

    Parameters
    ----------
    model
        Folder of `sparcets fit`; or one with the subfolders ``classifier`` and ``explainer``, by ``clf.save`` and
        ``ex.save``; or a fitted explainer, to work in this process.
    queries
        A .parquet, .arrow or .feather file, or a folder of them, possibly in subfolders such as ``ward=3/``.
    out
        Folder of the answers; it gets the same subfolders.
    target, constraints, sparsity, n, confidence
        As in ``explain``; ``target`` is one for all series.
    id_column, time_column
        Names of those columns, if they are not ``id`` and ``time``.
    own_model
        Python file and function of a model of your own, as ``"my_model.py:load"``, if the folder was fitted to one. The
        file is run, and never without being named here.
    seed
        Of the searches; None is that of the fit.
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
    folder, alone = Path(out), engine == "local" and (workers is None or workers == 1)
    if isinstance(model, BaseExplainer):
        if not alone:
            raise ConfigError(
                "other processes load the explainer from a folder: clf.save('m/classifier'), ex.save('m/explainer'), "
                "and pass 'm'."
            )
        if own_model is not None:
            raise ConfigError("own_model is for a folder; a fitted explainer has its model.")
        explainer = model if seed is None else _with_seed(model, seed)
        source: Any = explainer
    else:
        source = str(Path(model).resolve())
        own_model = None if own_model is None else os.path.abspath(own_model)  # noqa: PTH100 - with the function behind
        # The machine that only hands out work may have no GPU.
        explainer = load_for(source, device if engine == "local" else "auto", seed, own_model)
    info = explainer._fitted()
    if info.side is not None:
        raise CapabilityError("side inputs are not read from Parquet files. Pass the series to explain(X, side=…).")
    arguments = {"target": target, "constraints": constraints, "sparsity": sparsity, "n": n, "confidence": confidence}
    identity = identity_of_question(explainer, arguments)
    _check_places(Path(queries), folder)
    size = queries_per_shard(info.n_steps, info.n_features, n)
    shards = list(plan_shards(Path(queries), info.feature_names, size, id_column=id_column, time_column=time_column))
    if not shards:
        raise DataError(f"{os.fspath(queries)} holds no series at all.")
    question = ParquetQuestion(
        model=source,
        device=device,
        seed=seed,
        arguments=arguments,
        out=folder.resolve(),
        digest=digest_of_json(identity),
        own_model=own_model,
    )
    with locked(folder / LOCK, what=f"the folder {folder}", wait=False):
        _check_folder(folder, identity, {shard.part for shard in shards})
        question = replace(question, like=_like(explainer, shards[0], arguments))
        write_json(folder / HEADER, {"format": FORMAT, "finished": False, "question": identity})
        total = _Total()
        with progress_bar(f"explaining by {explainer.method}", len(shards), show=progress) as bar:
            pending: deque[QueryShard] = deque()
            for shard in shards:
                done = finished(question, shard)
                if done is None:
                    pending.append(shard)
                else:
                    total.add(done)
                    bar.advance(1)
            computed = len(pending)
            if pending:
                place = make_engine(engine, address=address, device=device)
                _run(question, pending, total, bar, place, workers)
        result = ParquetAnswers(
            folder=folder,
            **{name: total.counts[name] for name in ("queries", "answers", "errors")},
            shards=len(shards),
            computed=computed - len(total.unfinished),
            unfinished=dict(total.unfinished),
            seconds=time.perf_counter() - began,
            explain_s=total.explain_s,
        )
        counts = {name: getattr(result, name) for name in ("queries", "answers", "errors", "shards")}
        write_json(
            folder / HEADER, {"format": FORMAT, "finished": not result.unfinished, "question": identity, **counts}
        )
    return result


class _Total:
    """The sum of the reports."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.explain_s = 0.0
        self.unfinished: dict[str, str] = {}

    def add(self, report: ShardReport) -> None:
        self.counts.update(queries=report.queries, answers=report.answers, errors=report.errors)
        self.explain_s += report.explain_s


def _run(
    question: ParquetQuestion, pending: deque[QueryShard], total: _Total, bar: Bar, engine: Engine, workers: int | None
) -> None:
    """Have the shards answered; those that fail are tried again after all others."""
    tries: Counter[str] = Counter()
    any_done = False
    with engine:
        for shard, result in engine.map_unordered(partial(answer_shard, question), pending, workers=workers):
            if isinstance(result, ShardReport):
                any_done = True
                total.add(result)
            else:
                if not any_done and not isinstance(result, OSError):
                    raise result  # such as a model that the workers cannot load
                tries[shard.part] += 1
                died = isinstance(result, ChildProcessError)
                if tries[shard.part] < TRIES and isinstance(result, OSError) and not (died and engine.retries):
                    pending.append(shard)
                    continue
                try:
                    if not died:
                        raise result
                    total.add(give_up(question, shard, str(result)))
                except Exception as error:
                    total.unfinished[shard.part] = " ".join(str(error).split())
            bar.advance(1)


def _with_seed(explainer: BaseExplainer[Any], seed: int) -> BaseExplainer[Any]:
    import copy

    other = copy.copy(explainer)
    other.config = explainer.config.override(f"seed={seed}")
    return other


def _check_places(queries: Path, out: Path) -> None:
    if is_file(out):
        raise StorageError(f"out must be a folder, but {out} is a file.")
    within = queries.resolve()
    if within.is_dir() and (out.resolve() == within or within in out.resolve().parents):
        raise ConfigError(
            f"the folder of the answers, {out}, is within that of the queries, {queries}. Choose another."
        )


def _check_folder(folder: Path, identity: dict[str, Any], parts: set[str]) -> None:
    """Raise if a folder holds answers to another question, or to other queries, or links that lead elsewhere."""
    for part in parts:
        inside(folder, part)
    known = inside(folder, HEADER).exists()
    if known:
        header = read_json(folder / HEADER, "a folder of answers")
        if not isinstance(header, dict) or not isinstance(stored := header.get("question"), dict):
            raise FileFormatError(f"{folder / HEADER} is not of a folder of answers. Choose another folder.")
        other = [name for name in dict.fromkeys([*identity, *stored]) if identity.get(name) != stored.get(name)]
        if other:
            raise StorageError(
                f"{folder} holds answers to another question: {', '.join(other)} differ{'s' * (len(other) == 1)}. "
                "Choose another folder, or remove this one."
            )
    for path in folder.rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        if (name not in parts or not known) and re.search(UNFINISHED, path.name) is None:
            whose = "belongs to other queries" if known else "is no answer of sparcets"
            raise StorageError(f"{folder} holds {name}, which {whose}. Choose another folder.")


def _like(explainer: BaseExplainer[Any], shard: QueryShard, arguments: Mapping[str, Any]) -> Any:
    """Return a table of answers without rows, after explaining one series here: what is wrong for all shows at once."""
    import pyarrow as pa

    queries, why = read_queries(shard), ""
    for i, one in enumerate(queries.series):
        answered, errors = answer_queries(explainer, Queries(queries.ids.slice(i, 1), [one]), arguments)
        if answered:
            return answers_table(answered[0][[]], pa.array([], queries.ids.type))
        why = why or errors[0]
    raise DataError(f"none of the first {len(queries.series)} series of {shard.path} can be explained: {why}")
