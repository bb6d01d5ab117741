"""The folder of a fit: classifier, explainer, and ``run.json``, which names both by digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sparcets.errors import FileFormatError

if TYPE_CHECKING:
    from sparcets.classifiers.base import Classifier
    from sparcets.classifiers.regressor import Regressor
    from sparcets.explainers.base import BaseExplainer

T = TypeVar("T")
RUN = "run.json"  # data set, method and settings
CLASSIFIER, EXPLAINER = "classifier", "explainer"  # subfolders
EXPLAINER_HEADER = f"{EXPLAINER}/explainer.json"
CLASSIFIER_HEADERS = (f"{CLASSIFIER}/model.json", f"{CLASSIFIER}/classifier.json")  # the user's own model, or ours


def load_fit(folder: Path, *, device: str) -> tuple[dict[str, Any], BaseExplainer[Any]]:
    """Return ``run.json`` and the explainer with its classifier, all of the same fit."""
    from sparcets.classifiers.own_model import load_any_model
    from sparcets.explainers.files import load

    return _of_one_fit(
        folder, lambda: load(folder / EXPLAINER, classifier=load_any_model(folder / CLASSIFIER, device=device))
    )


def load_fitted_model(folder: Path, *, device: str) -> tuple[dict[str, Any], Classifier | Regressor]:
    """Return ``run.json`` and the explained model of the same fit."""
    from sparcets.classifiers.own_model import load_any_model

    return _of_one_fit(folder, lambda: load_any_model(folder / CLASSIFIER, device=device))


def _of_one_fit(folder: Path, read: Callable[[], T]) -> tuple[dict[str, Any], T]:
    """Read ``run.json`` and something else of the folder, which nobody replaces meanwhile."""
    from sparcets.folders import warn_unverified
    from sparcets.locks import locked_in_place

    with locked_in_place(folder, shared=True):
        run = _read_run(folder)
        if "parts" in run:
            _check_parts(folder, run["parts"])
        else:
            warn_unverified(folder / RUN)
        return run, read()


def _read_run(folder: Path) -> dict[str, Any]:
    from sparcets.storage import read_json

    run = read_json(folder / RUN, "a folder written by `sparcets fit`")
    for name in ("dataset", "dataset_options"):
        if not isinstance(run, dict) or name not in run:
            raise FileFormatError(f"{folder / RUN} has no {name!r}. Run sparcets fit again.")
    return dict(run)


def _check_parts(folder: Path, expected: Any) -> None:
    found = digests_of(folder)
    other = [
        str(folder / name)
        for name, digest in found.items()
        if not isinstance(expected, dict) or expected.get(name) != digest
    ]
    if other:
        raise FileFormatError(
            f"{folder / RUN} and {' and '.join(other)} are of different fits. Run sparcets fit again, with --force."
        )


def digests_of(folder: Path) -> dict[str, str]:
    """Return the digests of the headers; each header in turn holds that of its arrays."""
    from sparcets.digests import digest_of_json
    from sparcets.storage import read_json

    classifier = next((name for name in CLASSIFIER_HEADERS if (folder / name).is_file()), CLASSIFIER_HEADERS[-1])
    return {
        name: digest_of_json(read_json(folder / name, "a folder written by `sparcets fit`"))
        for name in (classifier, EXPLAINER_HEADER)
    }
