"""Parquet or Arrow files of series in, Parquet files of answers out: shard by shard, on any engine.

What is finished is what is written: a shard counts when its file is there, whoever wrote it and whatever was killed
afterwards. So a run that was cut off goes on where it was, and nothing is there twice.
"""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from sparcets.constraints.spec import Constraints
from sparcets.datasets.query_files import Queries, QueryShard, plan_shards, read_queries
from sparcets.digests import digest_of_json
from sparcets.engines import make_engine
from sparcets.engines.base import Engine
from sparcets.errors import CapabilityError, ConfigError, DataError, StorageError
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.parquet import (
    FORMAT,
    ParquetQuestion,
    ShardReport,
    answer_queries,
    answer_shard,
    finished,
    give_up,
    identity_of_question,
    load_for,
)
from sparcets.explanation.parquet import answers_table
from sparcets.explanation.shards import queries_per_shard
from sparcets.locks import locked
from sparcets.progress import Bar, progress_bar
from sparcets.storage import TEMPORARY, is_file, read_json, write_json

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
        explainer = model if seed is None else _with_seed(model, seed)
        source: Any = explainer
    else:
        source = str(Path(model).resolve())
        # The machine that only hands out work may have no GPU.
        explainer = load_for(source, device if engine == "local" else "auto", seed)
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
    )
    with locked(folder / ".lock", what=f"the folder {folder}", wait=False):
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
    """Raise if a folder holds answers to another question, or to other queries."""
    if (folder / HEADER).exists():
        stored = read_json(folder / HEADER, "a folder of answers").get("question", {})
        other = [name for name in dict.fromkeys([*identity, *stored]) if identity.get(name) != stored.get(name)]
        if other:
            raise StorageError(
                f"{folder} holds answers to another question: {', '.join(other)} differ{'s' * (len(other) == 1)}. "
                "Choose another folder, or remove this one."
            )
    for path in folder.rglob("*.parquet"):
        name = path.relative_to(folder).as_posix()
        if name not in parts and TEMPORARY not in path.name:
            raise StorageError(
                f"{folder} holds {name}, which belongs to other queries. Choose another folder, or remove this one."
            )


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
