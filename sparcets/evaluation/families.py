"""Judges other than neural networks: models of families that use different properties of a series.

A family is named after the properties that its models use. The estimators are those of aeon, except for ``statistics``,
which needs scikit-learn only. All of them learn from standardised series.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sparcets.core.errors import preserve_warning_filters
from sparcets.core.registry import require_extra, unknown_name
from sparcets.core.seeding import preserve_random_state, spawn
from sparcets.core.series import FloatArray, IntArray, Scaler, Series
from sparcets.core.validation import Task
from sparcets.data.dataset import Dataset
from sparcets.models.base import Classifier, Model, Regressor
from sparcets.training.device import number_of_threads, single_precision

if TYPE_CHECKING:
    from typing_extensions import Self

AEON = ("convolutions", "quantiles", "intervals", "distances")  # families whose estimators are aeon's
FAMILIES = ("neural", *AEON, "statistics")
EXTRA = "uea"  # the extra that brings aeon
SEED = spawn(0, "judge")
# aeon before this version, the last ones for Python 3.10, takes convolutions' seeds below 2³¹ only.
LARGE_SEEDS = (1, 5)
WINDOW = 0.1  # of the length: how far dynamic time warping may shift a series, for `distances`
MAX_REFERENCES = 200  # series that `distances` compares with, because it is slow
DTW_NEIGHBOURS = 3  # neighbours whose mean `distances` predicts, for numbers
MOST_REFERENCES = 1000  # short series for numbers, of which there are more different ones than classes
MIN_STEPS = 9  # length of the convolutions; shorter series are extended by their last value

# The estimator of each family for classes and for numbers: module, class without its ending, and settings; imported on
# use.
_ESTIMATORS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "convolutions": ("aeon.{task}.convolution_based", "MiniRocket", {"n_kernels": 2000, "random_state": SEED}),
    "quantiles": ("aeon.{task}.interval_based", "QUANT", {"random_state": SEED}),
    "intervals": ("aeon.{task}.interval_based", "TimeSeriesForest", {"n_estimators": 100, "random_state": SEED}),
    "distances": (
        "aeon.{task}.distance_based",
        "KNeighborsTimeSeries",
        {"distance": "dtw", "distance_params": {"window": WINDOW}, "n_neighbors": 1},
    ),
    "statistics": ("sklearn.ensemble", "ExtraTrees", {"n_estimators": 200, "random_state": SEED}),
}
ENDINGS: dict[Task, str] = {"classification": "Classifier", "regression": "Regressor"}


def check_families(families: Sequence[str] | None) -> tuple[str, ...]:
    """Return the families in the order of :data:`FAMILIES`; None means all available families."""
    if families is None:
        return tuple(name for name in FAMILIES if name not in missing_families())
    for name in families:
        if name not in FAMILIES:
            raise unknown_name("family of judges", name, FAMILIES)
        if name in missing_families():
            require_extra("aeon", f"judges of the families {', '.join(AEON)}", EXTRA)
    return tuple(name for name in FAMILIES if name in families)


def missing_families() -> tuple[str, ...]:
    """Return the families that need aeon, if it is not installed."""
    return AEON if find_spec("aeon") is None else ()


class _OfFamily(Model):
    """A model of one of the families, except ``neural``."""

    missing = "forward"
    _knows_means = True

    def __init__(self, family: str) -> None:
        self.family = family

    @property
    def name(self) -> str:
        """The family."""
        return self.family

    def _inputs(self, dataset: Dataset, rows: IntArray) -> FloatArray:
        """Return the inputs of the estimator, and store the scale of the training part."""
        series = Series(dataset.X_train, dataset.lengths_train)
        self.n_steps, self.n_features = series.n_steps, series.n_features
        self._scaler = Scaler.fit(series.values, series.lengths)
        return judge_inputs(self.family, self._scaler, series[rows])


class FamilyJudge(_OfFamily, Classifier):
    """A classifier of one of the families, except ``neural``."""

    def fit(self, dataset: Dataset) -> Self:
        """Learn from the training part."""
        self._class_names, self.named = dataset.class_names, True
        rows = np.arange(len(dataset.y_train))
        if self.family == "distances":
            rows = choose_rows(dataset.y_train, MAX_REFERENCES, balanced=True)
        inputs = self._inputs(dataset, rows)
        with preserve_global_state():
            self._estimator = make_estimator(self.family, "classification").fit(inputs, dataset.y_train[rows])
        return self

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        inputs = judge_inputs(self.family, self._scaler, Series(X, lengths))
        with preserve_global_state():
            found = np.asarray(self._estimator.predict_proba(inputs))
        proba = np.zeros((len(X), self.n_classes))
        proba[:, np.asarray(self._estimator.classes_, dtype=np.int64)] = found
        return proba


class NumberJudge(_OfFamily, Regressor):
    """A regressor of one of the families, except ``neural``."""

    def fit(self, dataset: Dataset) -> Self:
        """Learn from the training part; one estimator for each output, except for neighbours."""
        y, rows = labels_of(dataset.y_train), np.arange(len(dataset.y_train))
        if self.family == "distances":  # a comparison is quadratic in the length
            n = max(MAX_REFERENCES, min(MOST_REFERENCES, 5 * 10**6 // dataset.X_train.shape[1] ** 2))
            rows = choose_rows(np.zeros(len(y), dtype=np.int64), n)
        inputs = self._inputs(dataset, rows)
        if self.family == "distances":
            self._references, self._numbers = inputs, y[rows]
        else:
            with preserve_global_state():
                self._estimators = [make_estimator(self.family, "regression").fit(inputs, one) for one in y.T]
        return self

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        inputs = judge_inputs(self.family, self._scaler, Series(X, lengths))
        with preserve_global_state():
            if self.family != "distances":
                return np.stack([np.asarray(one.predict(inputs)) for one in self._estimators], axis=1)
            from aeon.distances import dtw_pairwise_distance  # its regressor has no public way to the neighbours

            distance = np.asarray(dtw_pairwise_distance(inputs, self._references, window=WINDOW))
        nearest = np.argsort(distance, axis=1, kind="stable")[:, :DTW_NEIGHBOURS]
        # Without weights, the mean would not change with a series until it has other neighbours.
        apart = np.take_along_axis(distance, nearest, axis=1)
        weight = 1 / np.maximum(apart, np.finfo(np.float64).tiny ** 0.5)[..., None]
        return np.asarray((weight * self._numbers[nearest]).sum(1) / weight.sum(1))


def judge_inputs(family: str, scaler: Scaler, series: Series) -> FloatArray:
    """Return the inputs of a family's estimator: statistics (batch, columns), or series (batch, features, time)."""
    standardised = series.with_values(scaler.transform(np.asarray(series.values, dtype=np.float64)))
    if family == "statistics":
        return summary_statistics(np.where(series.inside[..., None], standardised.values, np.nan))
    # The estimators take series of one length. Each series is stretched to it, without padding.
    values = standardised.filled(otherwise=0.0).resampled(series.n_steps).astype(np.float32)
    missing = max(0, MIN_STEPS - series.n_steps)
    return np.ascontiguousarray(np.pad(values, ((0, 0), (0, missing), (0, 0)), mode="edge").swapaxes(1, 2))


def labels_of(y: Any) -> FloatArray:
    """Return the labels of a data set for regression as (batch, outputs)."""
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)


def summary_statistics(X: FloatArray) -> FloatArray:
    """Return simple statistics of each feature over the whole series (batch, 9 * features); 0 where one is not defined.

    Mean, standard deviation, minimum, maximum, the three quartiles, mean absolute difference between successive steps,
    and autocorrelation at lag 1. Entries that are padded or missing are NaN.

    >>> summary_statistics(np.array([[[0.0], [1.0], [0.0], [1.0]]])).tolist()
    [[0.5, 0.5, 0.0, 1.0, 0.0, 0.5, 1.0, 1.0, -0.75]]
    """
    with preserve_warning_filters(ignore=RuntimeWarning):  # NumPy's, for the mean of no values and for 0 / 0
        mean, std = np.nanmean(X, 1), np.nanstd(X, 1)  # (batch, features)
        centred = X - mean[:, None]
        lagged = np.nansum(centred[:, 1:] * centred[:, :-1], 1)
        power = np.nansum(centred**2, 1)
        columns = [
            mean,
            std,
            np.nanmin(X, 1),
            np.nanmax(X, 1),
            *np.nanquantile(X, (0.25, 0.5, 0.75), axis=1),
            np.nanmean(np.abs(np.diff(X, axis=1)), 1),
            lagged / power,
        ]
    statistics: FloatArray = np.nan_to_num(np.concatenate(columns, axis=1))
    return statistics


def choose_rows(y: IntArray, n: int, *, balanced: bool = False) -> IntArray:
    """Return at most ``n`` rows, in ascending order; the same ones at every call.

    They keep the shares of the classes or, if ``balanced``, have equal numbers of each class where possible.

    >>> y = np.repeat([0, 1], (90, 10))
    >>> np.bincount(y[choose_rows(y, 20)]).tolist(), np.bincount(y[choose_rows(y, 20, balanced=True)]).tolist()
    ([18, 2], [10, 10])
    """
    order = np.random.default_rng(SEED).permutation(len(y))
    position = np.empty(len(y))
    for k in np.unique(y):
        of_class = order[y[order] == k]
        position[of_class] = np.arange(len(of_class)) / (1 if balanced else len(of_class))
    return np.sort(order[np.argsort(position[order], kind="stable")[:n]])


@contextmanager
def preserve_global_state() -> Iterator[None]:
    """Restore the global state that aeon and numba change: numbers of threads, random states, filters of warnings.

    Importing and calling them also sets PyTorch's number of threads, which makes small networks many times slower. One
    block runs at a time, since this state is global.
    """
    with preserve_random_state():
        n_torch = number_of_threads()
        numba = sys.modules.get("numba")
        n_numba = None if numba is None else numba.get_num_threads()
        try:
            with preserve_warning_filters(ignore=Warning), single_precision():
                yield
        finally:
            if numba is not None:
                numba.set_num_threads(n_numba)
            torch.set_num_threads(n_torch)


def make_estimator(family: str, task: Task) -> Any:
    """Return the estimator of a family, not fitted yet."""
    module, name, settings = _ESTIMATORS[family]
    if family == "convolutions" and tuple(map(int, version("aeon").split(".")[:2])) < LARGE_SEEDS:
        settings = {**settings, "random_state": SEED % 2**31}
    return getattr(importlib.import_module(module.format(task=task)), name + ENDINGS[task])(**settings)
