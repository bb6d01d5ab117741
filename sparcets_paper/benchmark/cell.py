"""Run one cell: train or load the classifier, fit, explain, evaluate, and return the row of results."""

from __future__ import annotations

import gc
import hashlib
import json
import platform
import subprocess
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import lru_cache, partial
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

import sparcets
from sparcets.core.errors import DataError, SparcetsError, StorageError
from sparcets.core.explanation import STATUSES, Explanation
from sparcets.core.series import IntArray, Scaler
from sparcets.core.settings import ClassifierConfig, from_preset
from sparcets.core.target import check_target, name_or_index
from sparcets.data.dataset import Dataset, dataset_digest
from sparcets.data.load import load_dataset
from sparcets.evaluation.evaluate import evaluate
from sparcets.evaluation.judges import find_judges, judges_folder
from sparcets.evaluation.measures import roc
from sparcets.evaluation.outliers import Plausibility
from sparcets.io.files import read_json, write_json
from sparcets.io.folders import atomic_folder, remove_unfinished
from sparcets.io.locks import LOCK, locked
from sparcets.methods.adversarial import AdversarialExplainer
from sparcets.methods.base import BaseExplainer
from sparcets.methods.folder import load
from sparcets.methods.own.explainer import Explainer
from sparcets.models.network import TorchClassifier, load_classifier
from sparcets.training.device import resolve_device
from sparcets_paper.benchmark.figure_numbers import figure_numbers
from sparcets_paper.benchmark.plan import Cell, file_digest, registry_of
from sparcets_paper.peers.cfts import CftsPeer

T = TypeVar("T")
SECONDS = "fit.json"  # the time of the fit, in the folder of the explainer


def find_explainer(
    explainer: BaseExplainer[Any], data: Dataset, classifier: TorchClassifier, folder: Path
) -> tuple[BaseExplainer[Any], float]:
    """Return an explainer fitted on the data, loaded if an earlier cell stored it, and the seconds the fit took.

    Explainers without training are fitted at once and not stored. A lock keeps several processes from training the same
    one.
    """
    if not isinstance(explainer, (AdversarialExplainer, Explainer)):
        return explainer, _fit(explainer, data)
    settings = [replace(config, device="auto").to_dict() for config in (explainer.config, classifier.config)]
    if not settings[0].get("trains_sparsity", True):
        del settings[0]["weights"]["sparsity"]  # a term without a gradient: with any weight, the training is the same
    kind = resolve_device(explainer.config.device).type  # sizes chosen from the data depend on it

    def read(stored: Path) -> tuple[BaseExplainer[Any], float]:
        remove_unfinished(stored)  # of a process that was killed after it had stored the explainer
        return load(stored, classifier), float(read_json(stored / SECONDS, "the time of a fit")["seconds"])

    def make(stored: Path) -> tuple[BaseExplainer[Any], float]:
        seconds = _fit(explainer, data)
        with atomic_folder(stored) as new:
            explainer.save(new)
            write_json(new / SECONDS, {"seconds": seconds})
        return explainer, seconds

    return _stored(
        folder, [explainer.method, classifier.architecture, *settings, dataset_digest(data), kind], read, make
    )


def _stored(folder: Path, identity: list[Any], read: Callable[[Path], T], make: Callable[[Path], T]) -> T:
    """Return what is stored under its identity, or make and store it; by one process at a time."""
    stored = folder / hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    with locked(stored.with_suffix(LOCK)):
        try:
            return read(stored)
        except (SparcetsError, KeyError, TypeError, ValueError):  # missing or damaged
            return make(stored)


def _fit(explainer: BaseExplainer[Any], data: Dataset) -> float:
    start = time.perf_counter()
    explainer.fit(data, progress=False)
    return time.perf_counter() - start


DIGITS, FEW_DIGITS = 6, 4  # significant digits in a row, and in its long lists
COURSE = 20  # epochs between the values of a training that a row keeps
MAX_MESSAGE, MAX_TRACE = 600, 2000  # characters of an error's message and of the end of its trace
# Fields of a cell that its row holds under "request": under the first names the row holds their results.
_REQUEST = ("queries", "curve", "keep", "figures", "seconds_per_query")


@dataclass(frozen=True)
class RunContext:
    """The folder that a benchmark writes to, the device it runs on, and the digest of the code, if rows name it."""

    folder: Path
    device: str = "auto"
    code: str | None = None


def run_cell(cell: Cell, context: RunContext) -> dict[str, Any]:
    """Run one cell; an error becomes part of the row.

    Returns
    -------
    row
        ``key`` and the cell's fields; ``measures`` (means by name) with their 95 % ``intervals``; ``queries``,
        ``statuses``, ``accuracy`` of the classifier, ``judges`` (accuracies by family), ``fit_s``, ``explain_s``,
        ``history`` (last epoch), ``config`` (resolved, of classifier and explainer), device, versions and commit; or
        ``error`` and ``trace``.
    """
    row = cell_fields(cell, context.code)
    try:
        row |= _measure(cell, context)
    except Exception as error:
        row |= failure(error)
    finally:
        _free_memory()
    return row


def cell_fields(cell: Cell, code: str | None = None) -> dict[str, Any]:
    """Return the part of a row that is known before the run: the cell's fields, time, versions, commit and code."""
    fields = cell.to_dict()
    request = {name: fields.pop(name) for name in _REQUEST}
    versions = {name: metadata.version(name) for name in ("torch", "numpy")}
    return {
        "key": cell.key,
        **fields,
        "request": request,
        "started": datetime.now(timezone.utc).isoformat(),
        "versions": {"sparcets": sparcets.__version__, **versions, "python": platform.python_version()},
        "git": _git_hash(),
        **({} if code is None else {"code": code}),
    }


def failure(error: BaseException) -> dict[str, str]:
    """Return the fields of a row that describe an error."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    return {"error": f"{type(error).__name__}: {error}"[:MAX_MESSAGE], "trace": trace[-MAX_TRACE:]}


def prepare(context: RunContext, cells: Sequence[Cell]) -> None:
    """Train the classifier and the network among the judges, which cells share, unless they are stored already."""
    data = load_data(cells[0])
    _train_network(data, find_classifier(cells[0], data, context), context)
    _free_memory()


def load_data(cell: Cell) -> Dataset:
    """Return the data of a cell; the last four data sets stay in memory for the cells that follow."""
    return _load_data(cell.source or cell.dataset, json.dumps(dict(cell.options), sort_keys=True), file_digest(cell))


@lru_cache(maxsize=4)
def _load_data(name: str, options: str, digest: str | None) -> Dataset:
    return load_dataset(name, **json.loads(options))  # of a file that has changed, the digest is another key


@lru_cache(maxsize=4)
def _plausibility(data: Dataset) -> Plausibility:
    """Return the plausibility measures fitted on the training series, for all cells of the same data object."""
    return Plausibility(data, Scaler.fit(data.X_train, data.lengths_train))


def find_classifier(cell: Cell, data: Dataset, context: RunContext) -> TorchClassifier:
    """Return the classifier of a cell: loaded from its folder, or trained by one process at a time.

    Its seed does not depend on the cell's, so that repetitions explain the same classifier.
    """
    config = ClassifierConfig.from_dict(cell.classifier_config)

    def make(folder: Path) -> TorchClassifier:
        classifier = TorchClassifier(cell.classifier, replace(config, device=context.device))
        classifier.fit(data, progress=False).save(folder)
        return classifier

    identity = [cell.classifier, replace(config, device="auto").to_dict(), dataset_digest(data)[:16]]
    return _stored(context.folder / "classifiers", identity, partial(load_classifier, device=context.device), make)


def _measure(cell: Cell, context: RunContext) -> dict[str, Any]:
    device = resolve_device(context.device)
    digest = file_digest(cell)  # taken first: if the file is replaced during the run, the next run notices
    data = load_data(cell)
    target = None
    if cell.target is not None:
        given = name_or_index(cell.target, data.class_names)
        target = int(check_target(given, n_queries=1, class_names=data.class_names)[0])
    kind = registry_of(cell.method).load(cell.method)
    config = _config(cell, kind, target, data, context)  # errors in the settings show before any training
    classifier = find_classifier(cell, data, context)
    _train_network(data, classifier, context)
    judges = find_judges(data, classifier, device=context.device, progress=False)  # others: fitted once per process
    rows = _queries(cell, data, target)

    explainer: BaseExplainer[Any] = kind(classifier, config)
    explainer, fit_s = find_explainer(explainer, data, classifier, context.folder / "explainers")
    lengths = None if data.lengths_test is None else data.lengths_test[rows]
    start = time.perf_counter()
    name = None if target is None else data.class_names[target]
    e = explainer.explain(data.X_test[rows], name, sparsity=cell.sparsity, lengths=lengths, progress=False)
    explain_s = time.perf_counter() - start

    plausibility = _plausibility(data)
    scores = evaluate(
        e, data, classifier=classifier, rows=rows, judges=judges, plausibility=plausibility, progress=False
    )
    correct = classifier.predict(data.X_test, data.lengths_test) == data.y_test
    row: dict[str, Any] = {
        "measures": _rounded({name: s["mean"] for name, s in scores.summary.items()}),
        "intervals": _rounded({name: [s["low"], s["high"]] for name, s in scores.summary.items()}),
        "queries": len(rows),
        "statuses": {status: int((e.status == status).sum()) for status in STATUSES},
        **_rounded({"accuracy": correct.mean(), "judges": scores.judges, "fit_s": fit_s, "explain_s": explain_s}),
        "history": _rounded({name: values[-1] for name, values in explainer.history_.items() if values}),
        "config": {"classifier": classifier.config.to_dict(), "explainer": config.to_dict()},
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "data": {"name": data.name, "digest": digest, "split": data.split}
        | {"train": len(data.X_train), "test": len(data.X_test)},
    }
    if isinstance(explainer, CftsPeer):  # it may time out or crash on some queries
        row["peer"] = {"ran": explainer.ran_, "timed_out": explainer.timed_out_, "crashed": explainer.crashed_}
    if cell.keep:
        e[: cell.keep].save(context.folder / "explanations" / f"{cell.key}.npz")
        row["keep"] = min(cell.keep, len(e))
    if cell.curve:
        row["curve"] = _curve(e, data, rows)
    if cell.figures:
        row["figures"] = _rounded(figure_numbers(e, data, rows), FEW_DIGITS)
        course = {name: values[COURSE - 1 :: COURSE] for name, values in explainer.history_.items()}
        row["course"] = _rounded(course, FEW_DIGITS)
    return row


def _config(cell: Cell, kind: Any, target: int | None, data: Dataset, context: RunContext) -> Any:
    """Return the explainer's settings; with the preset ``paper`` the explainer is fitted for the cell's target."""
    fixed = None if target is None or cell.preset != "paper" else data.class_names[target]
    if fixed is not None and fixed.isdigit():
        fixed = str(target)  # digits are read as an index
    config = from_preset(kind.config_class, cell.preset, fixed)
    capped = cell.seconds_per_query is not None and hasattr(config, "seconds_per_query")
    limits = [f"seconds_per_query={cell.seconds_per_query}"] if capped else []
    return config.override(f"seed={cell.seed}", f"device={context.device}", *limits, *cell.settings)


def _queries(cell: Cell, data: Dataset, target: int | None) -> IntArray:
    """Return the rows of the test part to explain: the first ``queries`` that are not labelled as the target."""
    rows = np.arange(len(data.y_test)) if target is None else np.flatnonzero(data.y_test != target)
    if not len(rows):
        raise DataError(f"{data.name} has no test series of a class other than {cell.target!r}: nothing to explain.")
    return rows[: cell.queries]


def _train_network(data: Dataset, classifier: TorchClassifier, context: RunContext) -> None:
    """Train the judge that is stored in the user's cache, by one process at a time."""
    with ExitStack() as stack:
        with suppress(StorageError):  # without a writable cache there is nothing to lock
            stack.enter_context(locked(judges_folder().with_name(f"judges-{dataset_digest(data)[:16]}{LOCK}")))
        find_judges(data, classifier, families=["neural"], device=context.device, progress=False)


def _curve(e: Explanation, data: Dataset, rows: IntArray) -> dict[str, list[float]] | None:
    """Return the ROC curve over the answers to all queries that were not in the target class already."""
    if data.salient_test is None:
        return None
    answered = e[e.status != "unchanged"]
    fpr, tpr = roc(answered, data.salient_test[rows[answered.query_index]])
    return dict(_rounded({"fpr": fpr, "tpr": tpr}, FEW_DIGITS))


def _rounded(value: Any, digits: int = DIGITS) -> Any:
    """Return nested numbers with few digits."""
    if isinstance(value, Mapping):
        return {name: _rounded(one, digits) for name, one in value.items()}
    if isinstance(value, (list, np.ndarray)):
        return [_rounded(one, digits) for one in value]
    return float(f"{float(value):.{digits}g}")


def _free_memory() -> None:
    """Release unused memory, since several workers may share one GPU."""
    gc.collect()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        with suppress(RuntimeError):  # CUDA is broken; the runner checks for that with cuda_works
            torch.cuda.empty_cache()


@lru_cache(maxsize=1)
def _git_hash() -> str | None:
    """Return the commit of the checkout that runs; None for an installed package."""
    root = Path(sparcets.__file__).resolve().parents[1]
    command = ["git", "rev-parse", "--show-toplevel", "HEAD"]
    try:
        answer = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=10, check=True).stdout
        top, commit = answer.splitlines()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return commit if Path(top).resolve() == root else None  # else the repository is another project's


def cuda_works() -> bool:
    """Return whether CUDA still works: after some errors a process can no longer use it."""
    try:
        if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
            torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True
