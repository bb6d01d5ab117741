"""Judges: held-out classifiers of several families, for measuring transfer.

They are trained on the training part only and are not used to make explanations. Training them is the most expensive
part of an evaluation, so each is cached under a fingerprint of everything that determines it: the network in memory and
on disk, the others (see :mod:`sparcets.evaluation.families`) in memory only, because nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparcets.classifiers.base import Classifier
from sparcets.classifiers.regressor import Regressor
from sparcets.classifiers.torch_classifier import TorchClassifier, load_classifier
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.base import Dataset
from sparcets.datasets.fingerprint import dataset_digest
from sparcets.errors import FileFormatError, StorageError
from sparcets.evaluation.families import SEED, FamilyJudge, check_families, choose_rows
from sparcets.evaluation.inputs import check_dataset, check_kind, takes
from sparcets.evaluation.numbers import explained_variance, find_number_judges
from sparcets.explanation.result import Explanation
from sparcets.metrics.truth import Judge
from sparcets.progress import progress_bar
from sparcets.side_inputs import take_rows
from sparcets.training.device import resolve_device

log = logging.getLogger(__name__)

JUDGES = ("fcn", "bigru", "resnet", "tcn", "transformer")  # architectures of the network, in order of preference
# Narrower and with a larger learning rate than the default classifier: as accurate on Moving Box, in a quarter of the
# time.
JUDGE_CONFIG = ClassifierConfig(hidden=16, batch_size=128, lr=2e-3, epochs=60, patience=4, missing="forward", seed=SEED)
STEPS = 1500  # at most, of optimisation; large data sets take about as long as small ones
FEW = 60  # series; with fewer, some architectures do not learn the task, so all are trained, and for longer
MAX_TRAINING = 2000  # series that judges learn from
MAX_TEST = 500  # series that their accuracy is measured on

# Caches of this process: networks by fingerprint and device, the other families by digest of the data and family.
_trained: dict[tuple[str, str], TorchClassifier] = {}
_fitted: dict[tuple[str, str], FamilyJudge] = {}
_of_numbers: dict[tuple[str, str], Any] = {}  # regressors


def find_judges(
    dataset: Dataset,
    classifier: Classifier | Regressor | None = None,
    *,
    families: Sequence[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> dict[str, Any]:
    """Return classifiers of families that have little in common, newly trained or read from the cache.

    ==============  ===========================================================================
    family          judge
    ==============  ===========================================================================
    neural          a network of another architecture than ``classifier``
    convolutions    random convolutions and a linear model (MiniRocket)
    quantiles       trees over the quantiles of intervals (QUANT)
    intervals       trees over the mean, standard deviation and slope of intervals (time series forest)
    distances       nearest neighbour under dynamic time warping, among at most 200 series
    statistics      trees over statistics of the whole series, see :func:`~.families.summary_statistics`
    ==============  ===========================================================================

    Each learns from at most 2,000 training series, which keep the shares of the classes. All but ``neural`` and
    ``statistics`` are aeon's, which ``pip install 'sparcets[uea]'`` installs. For a data set of numbers, they are
    regressors of the same families.

    Parameters
    ----------
    dataset
        The data; its test part is not used.
    classifier
        The explained model; its architecture is excluded, because such a judge would be too similar to it. With None,
        or a model that is no :class:`~sparcets.TorchClassifier`, all architectures are available. With few training
        series, the other architectures are all trained and the one with the lowest validation loss is returned, because
        some may not learn the task.
    families
        Names of families; by default all that are available.
    cache
        Folder for trained networks; by default ``sparcets/judges`` in the user's cache folder.
    device
        Device to run the network on.
    progress
        Whether to draw a progress bar; None draws it on a terminal and in a notebook.

    Returns
    -------
    dict
        Judges by family.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sparcets.testing.data import make_series
    >>> dataset = Dataset.from_arrays(*make_series(90))
    >>> with TemporaryDirectory() as folder:
    ...     judges = find_judges(dataset, TorchClassifier("fcn"), families=["neural", "statistics"], cache=folder)
    >>> judges["neural"].architecture, judges["statistics"].predict(dataset.X_test).shape
    ('bigru', (18,))
    """
    check_dataset(dataset)
    if classifier is not None:
        check_kind(classifier)
    chosen = check_families(families)
    resolve_device(device)  # raises before any training
    part = _training_part(dataset)
    digest = dataset_digest(part)
    excluded = getattr(classifier, "architecture", None)
    if dataset.task == "regression":
        return find_number_judges(
            part,
            chosen,
            judge_config(len(part.X_train)),
            _of_numbers,
            digest,
            architecture=next(name for name in JUDGES if name != excluded),
            device=device,
            progress=progress,
        )
    folder = judges_folder() if cache is None else Path(cache)
    judges: dict[str, Classifier] = {}
    if "neural" in chosen:
        judges["neural"] = _find_network(part, digest, excluded, folder, device, progress)
    others = [family for family in chosen if family != "neural"]
    with progress_bar("judges", len(others), show=progress) as bar:
        for family in others:
            bar.advance(0, family)
            if (digest, family) not in _fitted:
                _fitted[digest, family] = FamilyJudge(family).fit(part)
            judges[family] = _fitted[digest, family]
            bar.advance()
    return judges


def _training_part(dataset: Dataset) -> Dataset:
    """Return the data with at most ``MAX_TRAINING`` training series, which keep the shares of the classes."""
    if len(dataset.y_train) <= MAX_TRAINING:
        return dataset
    labels = dataset.y_train if dataset.task == "classification" else np.zeros(len(dataset.y_train), dtype=np.int64)
    rows = choose_rows(labels, MAX_TRAINING)
    names = ("X_train", "y_train", "lengths_train", "subjects_train", "salient_train")
    parts = {name: getattr(dataset, name) for name in names}
    side = None if dataset.side_train is None else take_rows(dataset.side_train, rows)
    chosen = {name: values[rows] for name, values in parts.items() if values is not None}
    return replace(dataset, side_train=side, **chosen)


def _find_network(
    dataset: Dataset, digest: str, excluded: str | None, folder: Path, device: str, progress: bool | None
) -> TorchClassifier:
    """Return the first network that is not excluded or, of few series, the one with the lowest validation loss."""
    config = judge_config(len(dataset.X_train))
    available = [name for name in JUDGES if name != excluded]
    networks = []
    for architecture in available if len(dataset.X_train) < FEW else available[:1]:
        fingerprint = hashlib.sha256(f"{digest}/{architecture}/{config.fingerprint}".encode()).hexdigest()[:24]
        known = _trained.get((fingerprint, device))
        if known is None:
            judge = TorchClassifier(architecture, replace(config, device=device))
            known = _load_or_fit(folder / fingerprint, judge, dataset, progress)
        _trained[fingerprint, device] = known
        networks.append(known)
    return min(networks, key=_validation_loss)  # the first of equal ones


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

    classifier: Classifier | Regressor

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray[Any, Any]:
        return self.classifier.predict_unchecked(X, lengths)


def skip_checks(judges: Mapping[str, Judge], e: Explanation) -> dict[str, Judge]:
    """Return the judges for the series of ``e``, which were checked when it was made; other models stay as they are."""
    return {name: _UncheckedJudge(judge) if takes(judge, e.query) else judge for name, judge in judges.items()}


def accuracies(judges: Mapping[str, Judge], dataset: Dataset) -> dict[str, float]:
    """Return the accuracy of each judge on at most ``MAX_TEST`` test series; NaN without test series.

    Of regressors, it is the share of the variance that they explain.
    """
    if dataset.task == "regression":
        return explained_variance(judges, dataset)
    if not len(dataset.X_test):
        return dict.fromkeys(judges, math.nan)
    rows = choose_rows(dataset.y_test, MAX_TEST)
    X, y = dataset.X_test[rows], dataset.y_test[rows]
    lengths = None if dataset.lengths_test is None else dataset.lengths_test[rows]
    return {name: float((np.asarray(judge.predict(X, lengths)) == y).mean()) for name, judge in judges.items()}


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
    """Return the folder of networks in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sparcets" / "judges"
