"""Fitted explainers of a benchmark: one fit answers for every target class and every wish for sparsity."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparcets.benchmark.store import locked
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import dataset_digest
from sparcets.errors import SparcetsError
from sparcets.explainers.adversarial import AdversarialExplainer
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.load import load
from sparcets.storage import read_json, write_json
from sparcets.training.device import resolve_device

SECONDS = "fit.json"


def find_explainer(
    explainer: BaseExplainer[Any], data: Dataset, classifier: TorchClassifier, folder: Path
) -> tuple[BaseExplainer[Any], float]:
    """Return an explainer fitted on the data, and the seconds that took: now, or when another cell needed it.

    Parameters
    ----------
    explainer
        Not fitted yet. One that trains nothing is fitted at once, and not kept.
    data, classifier
        What it learns, and what it explains.
    folder
        Where fitted ones are kept; processes wait for each other, so that none is trained twice.
    """
    if not isinstance(explainer, AdversarialExplainer):
        return explainer, _fit(explainer, data)
    settings = [replace(config, device="auto").to_dict() for config in (explainer.config, classifier.config)]
    kind = resolve_device(explainer.config.device).type  # sizes that the data decide depend on it
    about = [explainer.method, classifier.architecture, *settings, dataset_digest(data), kind]
    kept = folder / hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:16]
    with locked(kept.with_suffix(".lock")):
        try:
            return load(kept, classifier), float(read_json(kept / SECONDS, "the time of a fit")["seconds"])
        except (SparcetsError, KeyError, TypeError, ValueError):  # not there yet, or damaged
            seconds = _fit(explainer, data)
            explainer.save(kept)
            write_json(kept / SECONDS, {"seconds": seconds})
            return explainer, seconds


def _fit(explainer: BaseExplainer[Any], data: Dataset) -> float:
    begun = time.perf_counter()
    explainer.fit(data, progress=False)
    return time.perf_counter() - begun
