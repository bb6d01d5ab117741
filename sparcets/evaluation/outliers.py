"""Plausibility: four outlier scores of counterfactuals, relative to those of real series of the target class."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sparcets.core.errors import FeatureMismatchError, filters_kept
from sparcets.core.explanation import Explanation
from sparcets.core.seeding import generator, random_state_kept, spawn
from sparcets.core.series import FloatArray, Scaler, Series
from sparcets.data.dataset import Dataset

RATIOS = ("lof_ratio", "isolation_forest_ratio", "svm_ratio", "knn_ratio")
NEIGHBOURS = 5  # of knn_ratio; a class needs more training series than that
AT_MOST = 2000  # training series per class to fit on, and test series per class to compare with
_CHUNK = 1000  # series scored per call, bounding memory

_Scores: TypeAlias = dict[str, Callable[[FloatArray], FloatArray]]


class Plausibility:
    """Outlier scores of counterfactuals, relative to those of real test series of the same class.

    The outlier models are fitted per class on first use and reused for later explanations.

    Parameters
    ----------
    dataset
        The real series.
    scaler
        Centre and scale of each feature; series are compared standardised.
    seed
        Seed of the subsampling and of the isolation forest.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> ds = sp.Dataset.from_arrays(*make_series())
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(ds).explain(ds.X_test, target=1)
    >>> ratios = Plausibility(ds, e.info.scaler).ratios(e)
    >>> sorted(ratios), ratios["knn_ratio"].shape
    (['isolation_forest_ratio', 'knn_ratio', 'lof_ratio', 'svm_ratio'], (24,))
    """

    def __init__(self, dataset: Dataset, scaler: Scaler, *, seed: int = 0) -> None:
        self.dataset = dataset
        self.scaler = scaler
        self.seed = seed
        self._fitted: dict[int, tuple[_Scores, dict[str, float]] | None] = {}

    def ratios(self, e: Explanation) -> dict[str, FloatArray]:
        """Return four scores of each counterfactual, each over the mean score of real test series of its target class.

        Lower is more plausible; 1 is the score of real series. ``lof_ratio``: local outlier factor with 20 neighbours.
        ``isolation_forest_ratio``: the forest's anomaly score. ``svm_ratio``: squared distance to the centre of a
        one-class SVM, in its feature space. ``knn_ratio``: mean distance to the 5 nearest training series. Each is
        (answers,), NaN where the class has fewer than 6 different training series, or no test series; padding does not
        count.
        """
        expected = self.dataset.X_train.shape[1:]
        if e.query.shape[1:] != expected:
            raise FeatureMismatchError(
                f"the data set {self.dataset.name!r} has series of {expected} steps and features, the explanation of "
                f"{e.query.shape[1:]}. Pass the data set its queries come from."
            )
        ratios = {name: np.full(len(e), np.nan) for name in RATIOS}
        for target in np.unique(e.target).tolist():
            if target not in self._fitted:
                self._fitted[target] = self._fit(target)
            fitted = self._fitted[target]
            if fitted is None:
                continue
            scores, reference = fitted
            rows = np.flatnonzero(e.target == target)
            for part in np.split(rows, range(_CHUNK, len(rows), _CHUNK)):
                flat = self._flat(Series(e.counterfactual, e.lengths)[part])
                with filters_kept():
                    found = {name: score(flat) for name, score in scores.items() if reference[name] > 0}
                for name, values in found.items():
                    ratios[name][part] = values / reference[name]
        return ratios

    def _fit(self, label: int) -> tuple[_Scores, dict[str, float]] | None:
        """Return the score functions of one class and their means on test series; None if there are too few series."""
        # Duplicates would have infinite local density.
        train = np.unique(self._real(label, "train"), axis=0)
        test = self._real(label, "test")
        if len(train) <= NEIGHBOURS or not len(test):
            return None
        scores = _fit_scores(train, spawn(self.seed, f"isolation forest/{label}"))
        with filters_kept():
            return scores, {name: float(score(test).mean()) for name, score in scores.items()}

    def _real(self, label: int, part: str) -> FloatArray:
        """Return at most ``AT_MOST`` real series of a class, flattened."""
        rows = np.flatnonzero(getattr(self.dataset, f"y_{part}") == label)
        if len(rows) > AT_MOST:
            rng = generator(self.seed, f"plausibility/{part}/{label}")
            rows = np.sort(rng.choice(rows, AT_MOST, replace=False))
        return self._flat(Series(*(getattr(self.dataset, f"{name}_{part}") for name in ("X", "lengths")))[rows])

    def _flat(self, series: Series) -> FloatArray:
        """Return standardised, flattened series with padding set to 0 and without gaps (batch, time · features)."""
        standard = series.with_values(self.scaler.transform(series.values.astype(np.float64))).filled(otherwise=0.0)
        flat: FloatArray = np.where(series.inside[..., None], standard.values, 0.0)
        return flat.reshape(len(series), series.n_steps * series.n_features)


def _fit_scores(real: FloatArray, seed: int) -> _Scores:
    """Fit the four models to flattened series (batch, entries); each score is higher for less similar series."""
    with random_state_kept():
        from sklearn.ensemble import IsolationForest
        from sklearn.neighbors import LocalOutlierFactor
        from sklearn.svm import OneClassSVM

    with filters_kept():  # all of scikit-learn's: validation of input sets filters too
        lof = LocalOutlierFactor(n_neighbors=min(20, len(real) - 1), novelty=True).fit(real)
        forest = IsolationForest(random_state=seed).fit(real)
        svm = OneClassSVM(kernel="rbf", gamma="scale", nu=0.1)
        svm.random_state = seed  # no parameter of its own: None would draw from NumPy's global generator
        svm.fit(real)

        # The SVM's w = Σ αᵢ φ(xᵢ); w / Σα is its centre, and ‖w‖² = Σ αᵢ ⟨w, φ(xᵢ)⟩.
        # Its score is ⟨w, φ(x)⟩, ‖φ(x)‖ is 1.
        weights = svm.dual_coef_[0]
        total = float(weights.sum())
        centre = float(weights @ svm.score_samples(svm.support_vectors_)) / total**2
    return {
        "lof_ratio": lambda x: -lof.score_samples(x),
        "isolation_forest_ratio": lambda x: -forest.score_samples(x),
        "svm_ratio": lambda x: 1 - 2 * svm.score_samples(x) / total + centre,
        "knn_ratio": lambda x: lof.kneighbors(x, NEIGHBOURS)[0].mean(1),
    }
