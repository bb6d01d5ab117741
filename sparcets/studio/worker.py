"""The process of one training job: ``python -m sparcets.studio.worker``, started by :mod:`sparcets.studio.jobs`.

It reads the task as one line of JSON from stdin and reports progress as lines of JSON on stdout. It exits when stdin is
closed, that is, when the studio exits. In a process of its own a job can be stopped at any moment, cannot crash the
studio, and does not change the random state of the process that serves requests.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sparcets.core.errors import CapabilityError, SparcetsError
from sparcets.core.progress import report_progress_to
from sparcets.studio import processes
from sparcets.studio.data import load
from sparcets.studio.models import ClassifierRecord, ExplainerRecord, FitExplainer, TrainClassifier
from sparcets.studio.own_explainer import load_model
from sparcets.studio.workspace import Workspace, write_record
from sparcets.web.errors import code_of

if TYPE_CHECKING:
    from sparcets.models.base import Classifier

REPORT_INTERVAL = 0.1  # seconds between two reports of one stage


def train_classifier(
    workspace: Workspace,
    name: str,
    request: TrainClassifier,
    seed: int,
    device: str,
    own: dict[str, Any] | None = None,
) -> None:
    """Train a classifier, or load the user's own model, ``own``, and save it in the workspace."""
    from sparcets.core.settings import ClassifierConfig
    from sparcets.methods.compatibility import agree_on_class_names
    from sparcets.models.base import Regressor
    from sparcets.models.network import TorchClassifier
    from sparcets.models.own_model import OwnModel

    started = time.perf_counter()
    preset = ClassifierConfig.tiny() if request.preset == "tiny" else ClassifierConfig()
    dataset = load(workspace, workspace.dataset(request.dataset))
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
            raise CapabilityError(
                f"{source.name} predicts numbers; the studio explains classifiers only. Use sparcets fit --task "
                "regression and sparcets explain, or Python."
            )
        model = loaded
        agree_on_class_names(model, dataset.X_train, dataset.lengths_train, dataset.y_train, dataset)
        save = partial(source.save, model=model, X=dataset.X_train)
    correct = model.predict(dataset.X_test, dataset.lengths_test) == dataset.y_test
    with workspace.create("classifiers", name) as folder:
        save(folder)
        record = ClassifierRecord(
            id=name,
            **request.model_dump(),
            seed=seed,
            test_accuracy=float(correct.mean()),
            seconds=time.perf_counter() - started,
            own=own is not None,
        )
        write_record(folder, record)


def fit_explainer(
    workspace: Workspace,
    name: str,
    request: FitExplainer,
    seed: int,
    device: str,
    own: dict[str, Any] | None = None,
) -> None:
    """Fit an explainer and save it in the workspace; ``own`` is the user's own model, which may be run."""
    from sparcets.core.settings import from_preset
    from sparcets.methods import EXPLAINERS
    from sparcets.models.own_model import OwnModel

    started = time.perf_counter()
    method = EXPLAINERS.load(request.method)
    config = from_preset(method.config_class, request.preset).override(f"seed={seed}", f"device={device}")
    classifier = workspace.classifier(request.classifier)
    named = None if own is None else OwnModel.from_dict(own)
    model = load_model(workspace.path("classifiers", classifier.id), device, named)
    explainer = method(model, config).fit(load(workspace, workspace.dataset(classifier.dataset)))
    info = explainer.info_
    assert info is not None  # it is fitted
    with workspace.create("explainers", name) as folder:
        explainer.save(folder)
        record = ExplainerRecord(
            id=name,
            dataset=classifier.dataset,
            **request.model_dump(),
            seed=seed,
            summary=explainer.summary(),
            doubts=[] if info.model is None else info.model.findings,
            seconds=time.perf_counter() - started,
        )
        write_record(folder, record)


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


def main() -> int:
    """Run the task given on stdin; return the exit code."""
    task, stdout = processes.begin(), sys.stdout
    sys.stdout = sys.stderr  # keeps other output out of the reports

    def send(**event: Any) -> None:
        stdout.write(json.dumps(event) + "\n")
        stdout.flush()

    workspace = Workspace(Path(task["workspace"]))
    item = (workspace, task["id"])
    options = {"seed": task["seed"], "device": task["device"]}
    try:
        with report_progress_to(throttled(send)):
            if task["kind"] == "classifier":
                request = TrainClassifier.model_validate(task["request"])
                train_classifier(*item, request, **options, own=task.get("model"))
            else:
                fit_explainer(*item, FitExplainer.model_validate(task["request"]), **options, own=task.get("model"))
    except SparcetsError as error:
        send(code=code_of(error), message=str(error))
        return 2
    except MemoryError:
        send(code="out_of_memory", message="not enough memory. Use less data, or a smaller model.")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
