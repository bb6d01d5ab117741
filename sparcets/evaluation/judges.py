"""Judges: small held-out classifiers of other architectures than the explained one, for measuring transfer.

They are trained on the training part only and are not used to make explanations. Training them is the most expensive
part of an evaluation, so each is cached, in memory and on disk, under a fingerprint of everything that determines it.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.arrays import IntArray
from sparcets.classifiers.base import Classifier
from sparcets.classifiers.torch_classifier import TorchClassifier, load_classifier
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import dataset_digest
from sparcets.errors import ConfigError, FileFormatError, StorageError
from sparcets.evaluation.inputs import check_dataset, check_kind, takes
from sparcets.explanation.result import Explanation
from sparcets.metrics.truth import Judge
from sparcets.seeding import spawn
from sparcets.training.device import resolve_device

log = logging.getLogger(__name__)

JUDGES = ("fcn", "bigru", "resnet", "tcn", "transformer")  # in order of preference
# Narrower and with a larger learning rate than the default classifier: as accurate on Moving Box, in a quarter of the
# time.
JUDGE_CONFIG = ClassifierConfig(hidden=16, batch_size=128, lr=2e-3, epochs=60, patience=4, seed=spawn(0, "judge"))
STEPS = 1500  # at most, of optimisation; large data sets take about as long as small ones
FEW = 60  # series; with fewer, some architectures do not learn the task, so all are trained, and for longer

_trained: dict[tuple[str, str], TorchClassifier] = {}  # cache of this process, by fingerprint and device


def find_judges(
    dataset: Dataset,
    classifier: Classifier | None = None,
    *,
    n: int = 3,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> dict[str, TorchClassifier]:
    """Return classifiers of other architectures than ``classifier``, newly trained or read from the cache.

    Parameters
    ----------
    dataset
        The data; its test part is not used.
    classifier
        The explained model; its architecture is excluded, because such a judge would be too similar to it. With None,
        or a model that is no :class:`~sparcets.TorchClassifier`, all architectures are available.
    n
        Number of judges. With few training series, all other architectures are trained and those with the lowest
        validation loss are returned, because some may not learn the task.
    cache
        Folder for trained judges; by default ``sparcets/judges`` in the user's cache folder.
    device
        Device to run them on.
    progress
        Whether to draw a progress bar; None draws it on a terminal.

    Returns
    -------
    dict
        Judges by architecture.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sparcets.testing.data import make_series
    >>> dataset = Dataset.from_arrays(*make_series(90))
    >>> with TemporaryDirectory() as folder:
    ...     list(find_judges(dataset, TorchClassifier("fcn"), n=1, cache=folder))
    ['bigru']
    """
    check_dataset(dataset)
    if classifier is not None:
        check_kind(classifier)
    available = [name for name in JUDGES if name != getattr(classifier, "architecture", None)]
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= len(available):
        raise ConfigError(
            f"n must be a number of judges from 1 to {len(available)} ({', '.join(available)}), got {n!r}."
        )
    resolve_device(device)  # raises before any training
    config = judge_config(len(dataset.X_train))
    digest = dataset_digest(dataset)
    folder = judges_folder() if cache is None else Path(cache)
    judges = {}
    for architecture in available if len(dataset.X_train) < FEW else available[:n]:
        fingerprint = hashlib.sha256(f"{digest}/{architecture}/{config.fingerprint}".encode()).hexdigest()[:24]
        known = _trained.get((fingerprint, device))
        if known is None:
            judge = TorchClassifier(architecture, replace(config, device=device))
            known = _load_or_fit(folder / fingerprint, judge, dataset, progress)
        judges[architecture] = _trained[fingerprint, device] = known
    best = sorted(judges, key=lambda name: _validation_loss(judges[name]))[:n]  # stable: ties by preference
    return {name: judge for name, judge in judges.items() if name in best}


def judge_config(n_series: int) -> ClassifierConfig:
    """Return the config of judges for ``n_series`` training series: about the same number of steps for every size.

    >>> [(c.batch_size, c.epochs, c.patience) for c in map(judge_config, (40, 200, 1_580, 14_080))]
    [(32, 300, 60), (32, 60, 12), (32, 35, 7), (128, 15, 4)]
    """
    longest = JUDGE_CONFIG if n_series >= FEW else replace(JUDGE_CONFIG, epochs=5 * JUDGE_CONFIG.epochs)
    return longest.sized(n_series, steps=STEPS)


@dataclass(frozen=True)
class _UncheckedJudge:
    """A judge for series that were checked before."""

    classifier: Classifier

    def predict(self, X: Any, lengths: Any = None) -> IntArray:
        return self.classifier.predict_unchecked(X, lengths)


def skip_checks(judges: Mapping[str, Judge], e: Explanation) -> dict[str, Judge]:
    """Return the judges for the series of ``e``, which were checked when it was made; other models stay as they are."""
    return {name: _UncheckedJudge(judge) if takes(judge, e.query) else judge for name, judge in judges.items()}


def accuracies(judges: Mapping[str, Judge], dataset: Dataset) -> dict[str, float]:
    """Return the test accuracy of each judge; NaN without test series."""
    if not len(dataset.X_test):
        return dict.fromkeys(judges, math.nan)
    return {
        name: float((np.asarray(judge.predict(dataset.X_test, dataset.lengths_test)) == dataset.y_test).mean())
        for name, judge in judges.items()
    }


def _load_or_fit(folder: Path, judge: TorchClassifier, dataset: Dataset, progress: bool | None) -> TorchClassifier:
    """Return the judge stored in the folder, or train it and store it there."""
    try:
        if folder.is_dir():
            return load_classifier(folder, device=judge.config.device)
    except (FileFormatError, OSError) as error:
        log.warning("training the judge %s again: %s", judge.architecture, error)
    judge.fit(dataset, progress=progress)
    try:
        judge.save(folder)
    except StorageError as error:
        log.warning("the judge %s could not be cached: %s", judge.architecture, error)
    return judge


def _validation_loss(judge: TorchClassifier) -> float:
    return min((loss for loss in judge.history_.get("validation_loss", []) if math.isfinite(loss)), default=math.inf)


def judges_folder() -> Path:
    """Return the folder of judges in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sparcets" / "judges"
