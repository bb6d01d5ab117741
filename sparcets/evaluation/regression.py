"""Evaluation of answers about numbers: judges are regressors of the same families, and agree where theirs do.

A judge agrees if its own number lies within the target (*transfer*). It may be off by more than the target is narrow,
so whether its number moves towards the target at all is measured, too (*direction*).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.errors import DataError
from sparcets.core.explanation import Explanation
from sparcets.core.info import Scaler
from sparcets.core.outcome import is_within
from sparcets.core.progress import progress_bar
from sparcets.core.settings import ClassifierConfig
from sparcets.data.dataset import Dataset
from sparcets.evaluation.families import (
    MAX_REFERENCES,
    WINDOW,
    choose_rows,
    judge_inputs,
    left_as_found,
    make_estimator,
)
from sparcets.evaluation.truth import Judge
from sparcets.models.base import Regressor
from sparcets.models.network import TorchRegressor

if TYPE_CHECKING:
    from typing_extensions import Self

NEIGHBOURS = 3  # that `distances` takes the mean of
MOST_REFERENCES = 1000  # short series that `distances` compares with: there are more different numbers than classes
DIRECTION = "direction"  # name of the measure
MAX_TEST = 500  # series that the judges are measured on
ATOL = 1e-3  # of the spread of the labels: another device or batch size makes a smaller difference, a model a larger


class NumberJudge(Regressor):
    """A regressor of one of the families of judges, except ``neural``.

    Parameters
    ----------
    family
        One of :data:`~sparcets.evaluation.families.FAMILIES`.

    Examples
    --------
    >>> from sparcets.testing.data import make_series
    >>> X, _ = make_series(90)
    >>> dataset = Dataset.from_arrays(X, X[:, :, 0].mean(1), task="regression")
    >>> judge = NumberJudge("statistics").fit(dataset)
    >>> bool(np.corrcoef(judge.predict(dataset.X_test)[:, 0], dataset.y_test)[0, 1] > 0.9)
    True
    """

    missing = "forward"
    _knows_means = True

    def __init__(self, family: str) -> None:
        self.family = family

    @property
    def name(self) -> str:
        """The family."""
        return self.family

    def fit(self, dataset: Dataset) -> Self:
        """Learn from the training part; one estimator for each output, except for neighbours."""
        _, self.n_steps, self.n_features = dataset.X_train.shape
        y = labels_of(dataset.y_train)
        self._scaler = Scaler.fit(dataset.X_train, dataset.lengths_train)
        rows = np.arange(len(y))
        if self.family == "distances":
            rows = choose_rows(np.zeros(len(y), dtype=np.int64), number_of_references(self.n_steps))
        lengths = None if dataset.lengths_train is None else dataset.lengths_train[rows]
        inputs = judge_inputs(self.family, self._scaler, dataset.X_train[rows], lengths)
        if self.family == "distances":
            self._references, self._numbers = inputs, y[rows]
        else:
            with left_as_found():
                self._estimators = [make_estimator(self.family, "regression").fit(inputs, one) for one in y.T]
        return self

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        inputs = judge_inputs(self.family, self._scaler, X, lengths)
        with left_as_found():
            if self.family == "distances":
                return weighted_mean(self._numbers, *nearest_series(inputs, self._references))
            return np.stack([np.asarray(one.predict(inputs)) for one in self._estimators], axis=1)


def nearest_series(X: FloatArray, references: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return distances to the nearest references by dynamic time warping, and their rows, each (batch, neighbours).

    The regressor of aeon 1.0 has no public way to ask for them.

    Parameters
    ----------
    X, references
        Series of one length (batch, features, time) and (references, features, time).
    """
    from aeon.distances import dtw_pairwise_distance

    distance = np.asarray(dtw_pairwise_distance(X, references, window=WINDOW))
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    return np.take_along_axis(distance, nearest, axis=1), nearest


def weighted_mean(numbers: FloatArray, distance: FloatArray, nearest: IntArray) -> FloatArray:
    """Return the means over the nearest series, in which the nearer ones count more.

    Without weights, the mean would stay the same while a series changes, until its neighbours are others.

    Parameters
    ----------
    numbers
        Of the real series (series, outputs).
    distance, nearest
        Distances to the nearest ones, and their rows (batch, neighbours).

    Examples
    --------
    >>> weighted_mean(np.array([[0.0], [1.0], [9.0]]), np.array([[1.0, 3.0]]), np.array([[0, 1]])).round(6).tolist()
    [[0.25]]
    """
    weight = 1 / np.maximum(distance, np.finfo(np.float64).tiny ** 0.5)[..., None]
    return np.asarray((weight * numbers[nearest]).sum(1) / weight.sum(1))


def labels_of(y: Any) -> FloatArray:
    """Return the labels of a data set for regression as (batch, outputs)."""
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)


def number_of_references(n_steps: int) -> int:
    """Return how many series `distances` compares with; a comparison takes a time quadratic in their length.

    Examples
    --------
    >>> number_of_references(50), number_of_references(100), number_of_references(1000)
    (1000, 500, 200)
    """
    return max(MAX_REFERENCES, min(MOST_REFERENCES, 5 * 10**6 // n_steps**2))


def find_number_judges(
    dataset: Dataset,
    families: Sequence[str],
    config: ClassifierConfig,
    known: dict[tuple[str, str], Any],
    digest: str,
    *,
    architecture: str,
    device: str,
    progress: bool | None,
) -> dict[str, Any]:
    """Return regressors of the families, newly trained or known already.

    Parameters
    ----------
    dataset
        The part that they learn from.
    families
        Names of families.
    config, architecture, device
        Of the network.
    known, digest
        Those of this process by digest of the data and family, and the digest of these data.
    progress
        Whether to draw a progress bar.
    """
    judges: dict[str, Any] = {}
    with progress_bar("judges", len(families), show=progress) as bar:
        for family in families:
            bar.advance(0, family)
            if (digest, family) not in known and family == "neural":
                net = TorchRegressor(architecture, replace(config, device=device))
                y, lengths = labels_of(dataset.y_train), dataset.lengths_train
                known[digest, family] = net.fit_unchecked(
                    dataset.X_train, y, lengths, progress=False, subjects=dataset.subjects_train
                )
            elif (digest, family) not in known:
                known[digest, family] = NumberJudge(family).fit(dataset)
            judges[family] = known[digest, family]
            bar.advance()
    return judges


def transfer_of_numbers(e: Explanation, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
    """Return whether judges predict numbers within the target, and whether theirs move towards it.

    Returns
    -------
    dict
        Under each judge's name, 1 where its number is within the target, else 0, and under ``"direction_<name>"``, 1
        where it is nearer to the target for the counterfactual than for the query, or within it, else 0 (answers,); the
        means over judges under ``"transfer"`` and ``"direction"``.
    """
    assert e.numbers is not None
    agrees, moves = {}, {}
    for name, judge in judges.items():
        before, after = (np.asarray(judge.predict(X, e.lengths), dtype=np.float64) for X in (e.query, e.counterfactual))
        if after.shape != e.numbers.after.shape:
            raise DataError(
                f"the judge {name!r} gives numbers of shape {after.shape}, the explained model {e.numbers.after.shape}."
            )
        agrees[name] = is_within(after, e.numbers.bounds).astype(np.float64)
        moved = (_beyond(after, e) < _beyond(before, e)) | (agrees[name] == 1)
        moves[f"{DIRECTION}_{name}"] = moved.astype(np.float64)
    means = {"transfer": agrees, DIRECTION: moves}
    return {**agrees, **moves, **{name: np.mean(list(of.values()), axis=0) for name, of in means.items()}}


def _beyond(numbers: FloatArray, e: Explanation) -> FloatArray:
    """Return how far numbers (answers, outputs) are from the target, in spreads of the labels (answers,)."""
    assert e.numbers is not None
    assert e.info.outcome is not None
    low, high = e.numbers.bounds[..., 0], e.numbers.bounds[..., 1]
    return np.asarray((np.maximum(np.maximum(low - numbers, numbers - high), 0) / e.info.outcome.scale).max(1))


def explained_variance(judges: Mapping[str, Judge], dataset: Dataset) -> dict[str, float]:
    """Return the share of the variance of test labels that each judge explains; NaN without test series."""
    if len(dataset.X_test) < 2:
        return dict.fromkeys(judges, math.nan)
    rows = choose_rows(np.zeros(len(dataset.X_test), dtype=np.int64), MAX_TEST)
    X, y = dataset.X_test[rows], labels_of(dataset.y_test)[rows]
    lengths = None if dataset.lengths_test is None else dataset.lengths_test[rows]
    return {name: share_explained(judge.predict(X, lengths), y) for name, judge in judges.items()}


def share_explained(numbers: Any, y: FloatArray) -> float:
    """Return the share of the variance of labels (batch, outputs) that predicted numbers explain."""
    total = max(float(((y - y.mean(0)) ** 2).sum()), 1e-12)
    return float(1 - ((np.asarray(numbers) - y) ** 2).sum() / total)


def check_explained_numbers(regressor: Any, e: Explanation, rows: IntArray, predict: Callable[..., Any]) -> None:
    """Raise an error if a regressor's numbers of some answers differ from those in the explanation."""
    assert e.numbers is not None
    assert e.info.outcome is not None
    stored = e.numbers.after[rows]
    found = np.asarray(predict(e.counterfactual[rows], None if e.lengths is None else e.lengths[rows]))
    hint = "Pass the one the explainer was given, or leave classifier= out."
    if found.shape != stored.shape:
        raise DataError(
            f"{regressor!r} is not the model that was explained: it predicts {found.shape[1]} numbers per series, the "
            f"explanation has {stored.shape[1]}. {hint}"
        )
    off = np.abs(found - stored) / e.info.outcome.scale
    i = int(off.max(1).argmax())
    if off[i].max() > ATOL:
        raise DataError(
            f"{regressor!r} is not the model that was explained: for answer {rows[i]} it predicts "
            f"{e.info.outcome.say(found[i])}, but the explanation has {e.info.outcome.say(stored[i])}. {hint}"
        )
