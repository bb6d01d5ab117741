"""Fitted explainers of a benchmark, stored so that cells which differ in target or sparsity limit share a fit."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import dataset_digest
from sparcets.errors import SparcetsError
from sparcets.explainers.adversarial import AdversarialExplainer
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.files import load
from sparcets.explainers.sparcets.explainer import Explainer
from sparcets.folders import atomic_folder, remove_unfinished
from sparcets.locks import locked
from sparcets.storage import read_json, write_json
from sparcets.training.device import resolve_device

SECONDS = "fit.json"  # the time of the fit, in the folder of the explainer


def find_explainer(
    explainer: BaseExplainer[Any], data: Dataset, classifier: TorchClassifier, folder: Path
) -> tuple[BaseExplainer[Any], float]:
    """Return an explainer fitted on the data, loaded if an earlier cell stored it, and the seconds the fit took.

    Parameters
    ----------
    explainer
        Not fitted yet. Explainers without training are fitted at once and not stored.
    data, classifier
        Training data, and the classifier to explain.
    folder
        Folder of the stored explainers; a lock keeps several processes from training the same one.
    """
    if not isinstance(explainer, (AdversarialExplainer, Explainer)):
        return explainer, _fit(explainer, data)
    settings = [replace(config, device="auto").to_dict() for config in (explainer.config, classifier.config)]
    if not settings[0].get("trains_sparsity", True):
        del settings[0]["weights"]["sparsity"]  # a term without a gradient: with any weight, the training is the same
    kind = resolve_device(explainer.config.device).type  # sizes chosen from the data depend on it
    identity = [explainer.method, classifier.architecture, *settings, dataset_digest(data), kind]
    stored = folder / hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    with locked(stored.with_suffix(".lock")):
        remove_unfinished(stored)  # of a process that was killed after it had stored the explainer
        try:
            return load(stored, classifier), float(read_json(stored / SECONDS, "the time of a fit")["seconds"])
        except (SparcetsError, KeyError, TypeError, ValueError):  # missing or damaged
            seconds = _fit(explainer, data)
            shutil.rmtree(stored, ignore_errors=True)
            with atomic_folder(stored) as folder:
                explainer.save(folder)
                write_json(folder / SECONDS, {"seconds": seconds})
            return explainer, seconds


def _fit(explainer: BaseExplainer[Any], data: Dataset) -> float:
    start = time.perf_counter()
    explainer.fit(data, progress=False)
    return time.perf_counter() - start
