"""Judges: held-out classifiers of several families, and whether they predict the target of a counterfactual.

A change that only affects the network it was optimised against is adversarial noise. Classifiers that were not used to
make the change detect it.

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
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sparcets.core.errors import CapabilityError, DataError, FileFormatError, StorageError, quoted
from sparcets.core.explanation import Explanation
from sparcets.core.progress import progress_bar
from sparcets.core.series import FloatArray, Series
from sparcets.core.settings import ClassifierConfig
from sparcets.core.side_inputs import SideInputs, take_rows
from sparcets.core.target import is_within
from sparcets.data.dataset import Dataset, dataset_digest
from sparcets.evaluation.families import SEED, FamilyJudge, NumberJudge, check_families, choose_rows, labels_of
from sparcets.models.base import Classifier, Regressor
from sparcets.models.network import TorchClassifier, TorchRegressor, load_classifier
from sparcets.training.device import resolve_device

log = logging.getLogger(__name__)

# Answers that are predicted again: for classes the least certain ones, which differ most between models.
N_COMPARED = 16
# Tolerance of a probability. Another device or batch size makes a smaller difference, another model a larger one. If
# both models are certain, only the small probabilities differ, hence the relative part.
ATOL, RTOL = 1e-4, 0.1
ATOL_NUMBERS = 1e-3  # of the spread of the labels
# Names that no judge can have, because measures are named after them.
RESERVED = {"valid": "valid answers", "unseen": "the families that the method did not use", "transfer": "all judges"}
JUDGES = ("fcn", "bigru", "resnet", "tcn", "transformer")  # architectures of the network, in order of preference
# Narrower and with a larger learning rate than the default classifier: as accurate on Moving Box, in a quarter of the
# time.
JUDGE_CONFIG = ClassifierConfig(hidden=16, batch_size=128, lr=2e-3, epochs=60, patience=4, missing="forward", seed=SEED)
STEPS = 1500  # of optimisation at most; large data sets take about as long as small ones
FEW = 60  # series; with fewer, some architectures do not learn the task, so all are trained, for longer
MAX_TRAINING = 2000  # series that judges learn from
MAX_TEST = 500  # series that their accuracy is measured on

# Caches of this process: networks by fingerprint and device, the other families by digest of the data and family.
_trained: dict[tuple[str, str], TorchClassifier | TorchRegressor] = {}
_fitted: dict[tuple[str, str], FamilyJudge | NumberJudge] = {}


class Judge(Protocol):
    """A model of series (batch, time, features) with the same classes, or numbers, as the explained one."""

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return class indices (batch,) or numbers (batch, outputs); ``lengths`` as for :meth:`Classifier.predict`."""


def check_explanation(e: Any) -> None:
    """Raise an error unless ``e`` is an explanation with at least one answer to measure."""
    if not isinstance(e, Explanation):
        raise DataError(
            f"evaluate measures an Explanation, got {type(e).__name__}. Make one with explainer.explain(X, target), "
            "or read one with sp.load_explanation."
        )
    if not len(e):
        raise DataError("there are no answers to evaluate. Explain at least one query.")
    if (e.status == "unchanged").all():
        raise DataError(
            f"there is nothing to measure: all {len(e)} answers are 'unchanged', because the classifier puts their "
            "queries into the target class already. Explain queries of other classes, or choose another target."
        )


def check_dataset(dataset: Any) -> None:
    """Raise an error unless ``dataset`` is a Dataset."""
    if not isinstance(dataset, Dataset):
        raise DataError(
            f"dataset must be a Dataset, got {type(dataset).__name__}. sp.load_dataset(name) loads one, "
            "sp.Dataset.from_arrays(X, y) makes one of arrays."
        )


def check_kind(classifier: Any) -> None:
    """Raise an error unless ``classifier`` is a sparcets classifier, or a regressor."""
    if not isinstance(classifier, (Classifier, Regressor)):
        raise CapabilityError(
            f"classifier must be a sparcets classifier, got {quoted(classifier)}. Pass the explained one; wrap a model "
            "of your own with sp.wrap(model)."
        )


def check_explained(classifier: Any, e: Explanation) -> None:
    """Raise an error if the outputs of the model for the answers differ from those in the explanation."""
    check_kind(classifier)
    hint = "Pass the one the explainer was given, or leave classifier= out."
    if isinstance(classifier, Regressor) != e.info.is_regression:
        raise DataError(
            f"{classifier!r} is not the model that was explained: one predicts numbers, the other classes. {hint}"
        )
    stored = e.predictions.outputs
    if e.info.is_regression:
        rows, tolerance = np.arange(min(len(e), N_COMPARED)), ATOL_NUMBERS * e.info.numbers.scale
    else:
        rows = np.argsort(stored.max(1), kind="stable")[:N_COMPARED]
        tolerance = ATOL + RTOL * stored[rows]
    stored = stored[rows]
    series = Series(e.counterfactual, e.lengths)[rows]
    side = take_rows(e.side, rows)
    found = classifier.outputs(series.values, series.lengths, side=side)
    if found.shape != stored.shape:
        what = "numbers per series" if e.info.is_regression else "classes"
        raise DataError(
            f"{classifier!r} is not the model that was explained: it has {found.shape[1]} {what}, the explanation "
            f"{stored.shape[1]}. {hint}"
        )
    excess = np.abs(found - stored) - tolerance
    i, k = np.unravel_index(excess.argmax(), excess.shape)
    if excess[i, k] > 0:
        outcome = e.info.outcome
        now, before = (outcome.say(x[i]) if outcome else f"{x[i, k]:.3g}" for x in (found, stored))
        of = "" if outcome else f" as the probability of class {e.class_names[k]!r}"
        raise DataError(
            f"{classifier!r} is not the model that was explained: for answer {rows[i]} it predicts {now}{of}, "
            f"but the explanation has {before}. {hint}"
        )


def check_judges(judges: Any) -> None:
    """Raise an error unless ``judges`` maps names to objects with a ``predict`` method."""
    if not isinstance(judges, Mapping):
        raise DataError(
            f"judges must be a mapping from names to classifiers, got {type(judges).__name__}. "
            "Write judges={'mine': classifier}; an empty mapping leaves transfer out."
        )
    for name, judge in judges.items():
        if name in RESERVED:
            raise DataError(
                f"no judge can be named {quoted(name)}, which is the name of the mean over {RESERVED[name]}. Rename it."
            )
        if not callable(getattr(judge, "predict", None)):
            raise CapabilityError(
                f"the judge {name!r} ({type(judge).__name__}) has no predict(X, lengths). Wrap it: sp.wrap(model)."
            )


def find_judges(
    dataset: Dataset,
    classifier: Classifier | Regressor | None = None,
    *,
    families: Sequence[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> dict[str, Any]:
    """Return classifiers of different families, newly trained or read from the cache.

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
        or a model other than a :class:`~sparcets.TorchClassifier`, all architectures are available. With few training
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
    judges: dict[str, Any] = {}
    if "neural" in chosen:
        folder = judges_folder() if cache is None else Path(cache)
        judges["neural"] = _find_network(part, digest, excluded, folder, device, progress)
    others = [family for family in chosen if family != "neural"]
    kind = FamilyJudge if dataset.task == "classification" else NumberJudge
    with progress_bar("judges", len(others), show=progress) as bar:
        for family in others:
            bar.advance(0, family)
            if (digest, family) not in _fitted:
                _fitted[digest, family] = kind(family).fit(part)
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
    chosen = {name: getattr(dataset, name)[rows] for name in names if getattr(dataset, name) is not None}
    return replace(dataset, side_train=take_rows(dataset.side_train, rows), **chosen)


def _find_network(
    dataset: Dataset, digest: str, excluded: str | None, folder: Path, device: str, progress: bool | None
) -> TorchClassifier | TorchRegressor:
    """Return the first network that is not excluded or, for few series, the classifier with the lowest validation loss.

    Classifiers are also stored on disk.
    """
    config = judge_config(len(dataset.X_train))
    available, of_classes = [name for name in JUDGES if name != excluded], dataset.task == "classification"
    networks = []
    for architecture in available if of_classes and len(dataset.X_train) < FEW else available[:1]:
        fingerprint = hashlib.sha256(f"{digest}/{architecture}/{config.fingerprint}".encode()).hexdigest()[:24]
        known, settings = _trained.get((fingerprint, device)), replace(config, device=device)
        if known is None and of_classes:
            known = _load_or_fit(folder / fingerprint, TorchClassifier(architecture, settings), dataset, progress)
        elif known is None:
            series, y = Series(dataset.X_train, dataset.lengths_train), labels_of(dataset.y_train)
            known = TorchRegressor(architecture, settings).fit_unchecked(
                series, y, progress=progress, subjects=dataset.subjects_train
            )
        _trained[fingerprint, device] = known
        networks.append(known)
    return min(networks, key=_validation_loss)  # the first if several are equal


def judge_config(n_series: int) -> ClassifierConfig:
    """Return the config of judges for ``n_series`` training series: about the same number of steps for every size.

    >>> [(c.batch_size, c.epochs, c.patience) for c in map(judge_config, (40, 200, 1_580, 14_080))]
    [(32, 300, 60), (32, 60, 12), (32, 35, 7), (128, 15, 4)]
    """
    longest = JUDGE_CONFIG if n_series >= FEW else replace(JUDGE_CONFIG, epochs=5 * JUDGE_CONFIG.epochs)
    return longest.sized(n_series, steps=STEPS)


def accuracies(judges: Mapping[str, Judge], dataset: Dataset) -> dict[str, float]:
    """Return the accuracy of each judge on at most ``MAX_TEST`` test series; NaN without test series.

    For regressors, it is the share of the variance that they explain.
    """
    of_classes, n = dataset.task == "classification", len(dataset.X_test)
    if n < (1 if of_classes else 2):
        return dict.fromkeys(judges, math.nan)
    rows = choose_rows(dataset.y_test if of_classes else np.zeros(n, dtype=np.int64), MAX_TEST)
    series, y = Series(dataset.X_test, dataset.lengths_test)[rows], dataset.y_test[rows]
    said = {name: np.asarray(judge.predict(series.values, series.lengths)) for name, judge in judges.items()}
    if of_classes:
        return {name: float((found == y).mean()) for name, found in said.items()}
    return {name: share_explained(found, labels_of(y)) for name, found in said.items()}


def share_explained(numbers: Any, y: FloatArray) -> float:
    """Return the share of the variance of labels (batch, outputs) that predicted numbers explain."""
    total = max(float(((y - y.mean(0)) ** 2).sum()), 1e-12)
    return float(1 - ((np.asarray(numbers) - y) ** 2).sum() / total)


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


def _validation_loss(judge: TorchClassifier | TorchRegressor) -> float:
    losses = judge.history_.get("validation_loss", []) if isinstance(judge, TorchClassifier) else []
    return min(filter(math.isfinite, losses), default=math.inf)


def judges_folder() -> Path:
    """Return the folder of networks in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "sparcets" / "judges"


def with_side_features(e: Explanation, dataset: Dataset) -> tuple[Explanation, Dataset]:
    """Return answers and data whose side inputs are constant features of the series, if both have them.

    Side inputs may determine the predicted class, so judges need them as well. Only the series of the answers are
    adapted, since judges use nothing else.
    """
    if e.side is None or dataset.side_train is None or dataset.side_test is None:
        return e, dataset
    known = SideInputs.of(dataset.side_train)
    table = known.table(e.side, len(e), owner=f"the data set {dataset.name!r}")
    query, counterfactual = (known.attach(X, table, e.lengths) for X in (e.query, e.counterfactual))
    n_train, n_test = len(dataset.X_train), len(dataset.X_test)
    data = replace(
        dataset,
        X_train=known.attach(dataset.X_train, known.table(dataset.side_train, n_train), dataset.lengths_train),
        X_test=known.attach(dataset.X_test, known.table(dataset.side_test, n_test), dataset.lengths_test),
        feature_names=None,
        units=None,
        mutable=None,
        side_train=None,
        side_test=None,
    )
    return replace(e, query=query, counterfactual=counterfactual, side=None), data


def transfer(e: Explanation, judges: Mapping[str, Judge]) -> dict[str, dict[str, FloatArray]]:
    """Return whether held-out models agree that the target is reached: by measure and name of the judge, (answers,).

    ``"transfer"`` is 1 where a judge predicts the target, else 0. The error of a judge of numbers may exceed the
    target's interval, so there is also ``"direction"``, 1 where its number is nearer to the target for the
    counterfactual than for the query, or within it.
    """
    after = {name: np.asarray(judge.predict(e.counterfactual, e.lengths)) for name, judge in judges.items()}
    if e.numbers is None:
        return {"transfer": {name: np.asarray(found == e.target, dtype=np.float64) for name, found in after.items()}}
    numbers, scale = e.numbers, e.info.numbers.scale
    for name, found in after.items():
        if found.shape != numbers.after.shape:
            raise DataError(
                f"the judge {name!r} gives numbers of shape {found.shape}, the explained model {numbers.after.shape}."
            )
    low, high = np.moveaxis(numbers.bounds, -1, 0)

    def beyond(found: FloatArray) -> FloatArray:
        """Return how far numbers (answers, outputs) are from the target, in spreads of the labels (answers,)."""
        return np.asarray((np.maximum(np.maximum(low - found, found - high), 0) / scale).max(1))

    agrees = {name: is_within(found, numbers.bounds).astype(np.float64) for name, found in after.items()}
    moves = {}
    for name, judge in judges.items():
        nearer = beyond(after[name]) < beyond(np.asarray(judge.predict(e.query, e.lengths)))
        moves[name] = (nearer | (agrees[name] == 1)).astype(np.float64)
    return {"transfer": agrees, "direction": moves}
