"""Processes of the studio: each gets its task as a line of JSON on stdin, and exits when the studio does.

They read uploads (:mod:`sparcets.studio.uploads`) or train (:func:`train`). In a process of its own a training can be
stopped at any moment, cannot crash the studio, and does not change the random state of the studio's process.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sparcets.core.errors import CapabilityError, SparcetsError
from sparcets.core.progress import report_progress_to
from sparcets.studio.models import ClassifierRecord, DatasetRecord, ExplainerRecord, FitExplainer, TrainClassifier
from sparcets.studio.workspace import CLASSIFIERS_ONLY, Workspace, described, load, load_model
from sparcets.web.errors import code_of

if TYPE_CHECKING:
    from sparcets.models.base import Classifier

NICENESS = 10  # requests have priority


def command(module: str, function: str) -> list[str]:
    """Return the command that runs a function of a module, which is found where this process finds it.

    With ``python -m``, Python would look for modules in the current folder first, in which others may be able to write.
    """
    code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {function} as main; sys.exit(main())"
    return [sys.executable, "-c", code]


@asynccontextmanager
async def running(
    command: Sequence[str], task: Mapping[str, Any], environment: Mapping[str, str]
) -> AsyncIterator[tuple[Process, asyncio.StreamReader]]:
    """Start a process with a task, and yield it with its output; it ends with the block at the latest.

    Ctrl-C in the terminal does not reach it: that is for the studio, which ends it.
    """
    process = await asyncio.create_subprocess_exec(
        *command, stdin=PIPE, stdout=PIPE, env={**os.environ, **environment}, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(f"{json.dumps(task)}\n".encode())  # not closed: the process exits when stdin closes
        yield process, process.stdout
    finally:
        with suppress(ProcessLookupError):  # it has ended
            process.kill()
        process.stdin.close()
        await process.communicate()


def begin() -> tuple[dict[str, Any], Callable[..., None]]:
    """Return the task of this process, and a function that sends a JSON object to the studio.

    The process steps back behind requests and exits when the studio does; what it prints goes to stderr.
    """
    task: dict[str, Any] = json.loads(sys.stdin.readline())

    def exit_with_parent() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    stdout, sys.stdout = sys.stdout, sys.stderr

    def send(**event: Any) -> None:
        stdout.write(json.dumps(event) + "\n")
        stdout.flush()

    return task, send


REPORT_INTERVAL = 0.1  # seconds between two reports of one stage


def train_classifier(
    workspace: Workspace, name: str, request: TrainClassifier, seed: int, device: str, own: dict[str, Any] | None = None
) -> None:
    """Train a classifier, or load the user's own model, ``own``, and save it in the workspace."""
    from sparcets.core.series import Series
    from sparcets.core.settings import ClassifierConfig
    from sparcets.methods.compatibility import agree_on_class_names
    from sparcets.models.base import Regressor
    from sparcets.models.network import TorchClassifier
    from sparcets.models.own_model import OwnModel

    started = time.perf_counter()
    preset = ClassifierConfig.tiny() if request.preset == "tiny" else ClassifierConfig()
    dataset = load(workspace, workspace.record(DatasetRecord, request.dataset))
    missing = ["missing=forward"] if dataset.n_missing else []
    config = preset.override(f"seed={seed}", f"device={device}", *missing)
    save: Callable[[Path], object]
    if own is None:
        trained = TorchClassifier(request.architecture, config).fit(dataset)
        model, save = cast("Classifier", trained), trained.save
    else:
        source = OwnModel.from_dict(own)
        loaded = source.load()
        if isinstance(loaded, Regressor):
            raise CapabilityError(f"{source.name} predicts numbers; {CLASSIFIERS_ONLY}")
        model = loaded
        agree_on_class_names(model, Series(dataset.X_train, dataset.lengths_train), dataset.y_train, dataset)
        save = partial(source.save, model=model, X=dataset.X_train)
    correct = model.predict(dataset.X_test, dataset.lengths_test) == dataset.y_test
    record = ClassifierRecord(
        id=name,
        **request.model_dump(),
        seed=seed,
        test_accuracy=float(correct.mean()),
        seconds=time.perf_counter() - started,
        own=own is not None,
    )
    workspace.add(record, save)


def fit_explainer(
    workspace: Workspace, name: str, request: FitExplainer, seed: int, device: str, own: dict[str, Any] | None = None
) -> None:
    """Fit an explainer and save it in the workspace; ``own`` is the user's own model, which may be run."""
    from sparcets.core.settings import from_preset
    from sparcets.methods import EXPLAINERS
    from sparcets.models.own_model import OwnModel

    started = time.perf_counter()
    method = EXPLAINERS.load(request.method)
    config = from_preset(method.config_class, request.preset).override(f"seed={seed}", f"device={device}")
    classifier = workspace.record(ClassifierRecord, request.classifier)
    named = None if own is None else OwnModel.from_dict(own)
    model = load_model(workspace.path("classifiers", classifier.id), device, named)
    explainer = method(model, config).fit(load(workspace, workspace.record(DatasetRecord, classifier.dataset)))
    record = ExplainerRecord(
        id=name,
        dataset=classifier.dataset,
        **request.model_dump(),
        seed=seed,
        **described(explainer),
        seconds=time.perf_counter() - started,
    )
    workspace.add(record, explainer.save)


def throttled(send: Callable[..., None]) -> Callable[[str, float, float | None, str], None]:
    """Return a progress listener that sends the start and end of a stage at once, and its steps at most every 0.1 s.

    >>> report = throttled(lambda **event: print(event))
    >>> report("training fcn", 0.0, 3.0, "")
    {'stage': 'training fcn', 'done': 0.0, 'total': 3.0, 'note': ''}
    >>> report("training fcn", 1.0, 3.0, "loss 1")  # within 0.1 s
    """
    last = 0.0

    def report(title: str, done: float, total: float | None, note: str) -> None:
        nonlocal last
        now = time.monotonic()
        if done == 0 or done == total or now - last > REPORT_INTERVAL:
            last = now
            send(stage=title, done=done, total=total, note=note)

    return report


def train() -> int:
    """Run the training that stdin describes; return the exit code."""
    task, send = begin()
    options = {"seed": task["seed"], "device": task["device"], "own": task.get("model")}
    workspace = Workspace(Path(task["workspace"]))
    try:
        with report_progress_to(throttled(send)):
            if task["kind"] == "classifier":
                train_classifier(workspace, task["id"], TrainClassifier.model_validate(task["request"]), **options)
            else:
                fit_explainer(workspace, task["id"], FitExplainer.model_validate(task["request"]), **options)
    except SparcetsError as error:
        send(code=code_of(error), message=str(error))
        return 2
    except MemoryError:
        send(code="out_of_memory", message="not enough memory. Use less data, or a smaller model.")
        return 2
    return 0
