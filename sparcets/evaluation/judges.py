"""Judges: small classifiers of other architectures than the explained one, which say whether a change convinces them.

They learn from the training part alone and never take part in making an explanation. Training them is the dearest part
of an evaluation, so each is kept, in memory and on disk, under a name made from all that decides what it learns.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from sparcets.classifiers.base import Classifier
from sparcets.classifiers.torch_classifier import TorchClassifier, load_classifier
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import dataset_digest
from sparcets.errors import ConfigError, FileFormatError, StorageError
from sparcets.evaluation.inputs import check_dataset, check_kind
from sparcets.metrics.truth import Judge
from sparcets.seeding import spawn
from sparcets.training.device import resolve_device

log = logging.getLogger(__name__)

JUDGES = ("fcn", "bigru", "resnet", "tcn", "transformer")  # the order in which they are called
# Narrower and in longer strides than the default classifier: as accurate on Moving Box, in a quarter of the time.
JUDGE_CONFIG = ClassifierConfig(hidden=16, batch_size=128, lr=2e-3, epochs=60, patience=4, seed=spawn(0, "judge"))
STEPS = 1500  # of optimisation, at most; so large data sets take as long as small ones, give or take
FEW = 60  # series; from fewer, not every architecture learns what there is to learn, so all are tried, and for longer

_trained: dict[tuple[str, str], TorchClassifier] = {}  # by fingerprint and device, as long as the process lives


def find_judges(
    dataset: Dataset,
    classifier: Classifier | None = None,
    *,
    n: int = 3,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> dict[str, TorchClassifier]:
    """Return classifiers of other architectures than ``classifier``, trained on the training part or found trained.

    Parameters
    ----------
    dataset
        What they learn; of its test part they see nothing.
    classifier
        The explained model; a judge of its architecture would only repeat what it says. None, or a model that is no
        :class:`~sparcets.TorchClassifier`, leaves all architectures to choose from.
    n
        How many. Where there are few training series, all other architectures are tried, and those with the least loss
        on series they did not learn from are called: a judge that knows little judges little.
    cache
        Folder where trained judges are kept; by default ``sparcets/judges`` in the user's cache folder.
    device
        Where they run.
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
    free = [name for name in JUDGES if name != getattr(classifier, "architecture", None)]
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= len(free):
        raise ConfigError(f"n must be a number of judges from 1 to {len(free)} ({', '.join(free)}), got {n!r}.")
    resolve_device(device)  # a mistake here should show before any training
    config = judge_config(len(dataset.X_train))
    digest = dataset_digest(dataset)
    folder = judges_folder() if cache is None else Path(cache)
    judges = {}
    for architecture in free if len(dataset.X_train) < FEW else free[:n]:
        fingerprint = hashlib.sha256(f"{digest}/{architecture}/{config.fingerprint}".encode()).hexdigest()[:24]
        known = _trained.get((fingerprint, device))
        if known is None:
            judge = TorchClassifier(architecture, replace(config, device=device))
            known = _kept(folder / fingerprint, judge, dataset, progress)
        judges[architecture] = _trained[fingerprint, device] = known
    best = sorted(judges, key=lambda name: _held_out_loss(judges[name]))[:n]  # stable: of equals, the first called
    return {name: judge for name, judge in judges.items() if name in best}


def judge_config(n_series: int) -> ClassifierConfig:
    """Return how judges are trained on so many series: about equally many steps, whatever the size of the data.

    >>> [(c.batch_size, c.epochs, c.patience) for c in map(judge_config, (40, 200, 1_580, 14_080))]
    [(32, 300, 60), (32, 60, 12), (32, 35, 7), (128, 15, 4)]
    """
    longest = JUDGE_CONFIG if n_series >= FEW else replace(JUDGE_CONFIG, epochs=5 * JUDGE_CONFIG.epochs)
    return longest.sized(n_series, steps=STEPS)


def accuracies(judges: Mapping[str, Judge], dataset: Dataset) -> dict[str, float]:
    """Return the share of the test series that each judge puts into the right class; NaN without test series."""
    if not len(dataset.X_test):
        return dict.fromkeys(judges, math.nan)
    return {
        name: float((np.asarray(judge.predict(dataset.X_test, dataset.lengths_test)) == dataset.y_test).mean())
        for name, judge in judges.items()
    }


def _kept(folder: Path, judge: TorchClassifier, dataset: Dataset, progress: bool | None) -> TorchClassifier:
    """Return the judge from its folder, or train it and put it there."""
    try:
        if folder.is_dir():
            return load_classifier(folder, device=judge.config.device)
    except (FileFormatError, OSError) as error:
        log.warning("training the judge %s anew: %s", judge.architecture, error)
    judge.fit(dataset, progress=progress)
    try:
        judge.save(folder)
    except StorageError as error:
        log.warning("the judge %s is not kept for the next time: %s", judge.architecture, error)
    return judge


def _held_out_loss(judge: TorchClassifier) -> float:
    return min((loss for loss in judge.history_.get("validation_loss", []) if math.isfinite(loss)), default=math.inf)


def judges_folder() -> Path:
    """Return the folder in the user's cache where judges are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sparcets" / "judges"
