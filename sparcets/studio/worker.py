"""One training, in a process of its own: ``python -m sparcets.studio.worker``, started by :mod:`sparcets.studio.jobs`.

It reads what to do as one line of JSON from stdin and tells how far it is by lines of JSON on stdout. It ends with the
studio: stdin stays open as long as that lives. A training thus can be stopped at any moment, cannot take the studio
down with it, and leaves the random state of the answering process alone.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparcets.errors import SparcetsError
from sparcets.progress import listening
from sparcets.studio.data import load
from sparcets.studio.errors import code_of
from sparcets.studio.models import ClassifierRecord, ExplainerRecord, FitExplainer, TrainClassifier
from sparcets.studio.workspace import Workspace, write_record

if TYPE_CHECKING:
    from sparcets.classifiers.base import Classifier

EVERY = 0.1  # seconds between two reports of one stage
POLITE = 10  # niceness: answers at the slider come first


def train_classifier(workspace: Workspace, name: str, asked: TrainClassifier, seed: int, device: str) -> None:
    """Train a classifier and put it into the workspace."""
    from sparcets.classifiers.torch_classifier import TorchClassifier
    from sparcets.config.models import ClassifierConfig
    from sparcets.config.presets import from_preset

    started = time.perf_counter()
    config = from_preset(ClassifierConfig, asked.preset).override(f"seed={seed}", f"device={device}")
    dataset = load(workspace, workspace.dataset(asked.dataset))
    model = TorchClassifier(asked.architecture, config).fit(dataset)
    right = model.predict(dataset.X_test, dataset.lengths_test) == dataset.y_test
    with workspace.making("classifiers", name) as folder:
        model.save(folder)
        record = ClassifierRecord(
            id=name,
            **asked.model_dump(),
            seed=seed,
            test_accuracy=float(right.mean()),
            seconds=time.perf_counter() - started,
        )
        write_record(folder, record)


def fit_explainer(workspace: Workspace, name: str, asked: FitExplainer, seed: int, device: str) -> None:
    """Fit an explainer and put it into the workspace."""
    from sparcets.classifiers.torch_classifier import load_classifier
    from sparcets.config.presets import from_preset
    from sparcets.explainers import EXPLAINERS

    started = time.perf_counter()
    kind = EXPLAINERS.load(asked.method)
    config = from_preset(kind.config_class, asked.preset).override(f"seed={seed}", f"device={device}")
    about = workspace.classifier(asked.classifier)
    model: Classifier = load_classifier(workspace.path("classifiers", about.id), device=device)
    explainer = kind(model, config).fit(load(workspace, workspace.dataset(about.dataset)))
    with workspace.making("explainers", name) as folder:
        explainer.save(folder)
        record = ExplainerRecord(
            id=name,
            dataset=about.dataset,
            **asked.model_dump(),
            seed=seed,
            summary=explainer.summary(),
            seconds=time.perf_counter() - started,
        )
        write_record(folder, record)


def reporter(say: Callable[..., None]) -> Callable[[str, float, float | None, str], None]:
    """Return a listener that reports every new stage at once, and its steps not too often.

    >>> tell = reporter(lambda **event: print(event))
    >>> tell("training fcn", 0.0, 3.0, "")
    {'stage': 'training fcn', 'done': 0.0, 'total': 3.0, 'note': ''}
    >>> tell("training fcn", 1.0, 3.0, "loss 1")  # within a tenth of a second
    """
    last: dict[str, Any] = {"time": 0.0}

    def tell(title: str, done: float, total: float | None, note: str) -> None:
        now = time.monotonic()
        if done == 0 or done == total or now - last["time"] > EVERY:
            last["time"] = now
            say(stage=title, done=done, total=total, note=note)

    return tell


def main() -> int:
    """Do what stdin says; return the exit code."""
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(POLITE)
    stdout = sys.stdout
    sys.stdout = sys.stderr  # whatever else prints does not stand in the way of the reports

    def say(**event: Any) -> None:
        stdout.write(json.dumps(event) + "\n")
        stdout.flush()

    workspace = Workspace(Path(asked["workspace"]))
    place = (workspace, asked["id"])
    how = {"seed": asked["seed"], "device": asked["device"]}
    try:
        with listening(reporter(say)):
            if asked["kind"] == "classifier":
                train_classifier(*place, TrainClassifier.model_validate(asked["request"]), **how)
            else:
                fit_explainer(*place, FitExplainer.model_validate(asked["request"]), **how)
    except SparcetsError as error:
        say(code=code_of(error), message=str(error))
        return 2
    except MemoryError:
        say(
            code="out_of_memory", message="the memory of this machine is not enough. Use less data, or a smaller model."
        )
        return 2
    return 0


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
