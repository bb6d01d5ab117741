"""Plausibility of counterfactuals: four outlier scores of each, and a classifier two-sample test of all together.

In the test, two classifiers learn to distinguish answers from recorded test series of the target classes, and are
tested on others. If neither can distinguish them, answers look like recordings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sparcets.core.errors import FeatureMismatchError, preserve_warning_filters
from sparcets.core.explanation import Explanation
from sparcets.core.seeding import generator, preserve_random_state, spawn
from sparcets.core.series import BoolArray, FloatArray, IntArray, Scaler, Series
from sparcets.data.dataset import Dataset
from sparcets.evaluation.families import choose_rows, judge_inputs, missing_families, preserve_global_state

RATIOS = ("lof_ratio", "isolation_forest_ratio", "svm_ratio", "knn_ratio")
KNN_NEIGHBOURS = 5  # of knn_ratio; a class needs more training series
AT_MOST = 2000  # training series per class to fit on, and test series per class to compare with
_CHUNK = 1000  # series scored per call, bounding memory

Score: TypeAlias = Callable[[FloatArray], FloatArray]  # of flattened series; higher for less similar ones
MIN_COMPARED = 20  # answers for c2st; with fewer, the result is not reliable
MAX_COMPARED = 400  # answers for c2st, and as many recordings, at most
DONORS = 4000  # training series among which c2st finds the nearest one to an answer, at most
FOLDS = 5  # of c2st


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
        self._fitted: dict[int, dict[str, tuple[Score, float]]] = {}

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
            scores, rows = self._fitted[target], np.flatnonzero(e.target == target)
            for part in np.split(rows, range(_CHUNK, len(rows), _CHUNK)) if scores else ():
                flat = self._flat(Series(e.counterfactual, e.lengths)[part])
                with preserve_warning_filters():
                    for name, (score, reference) in scores.items():
                        ratios[name][part] = score(flat) / reference
        return ratios

    def _fit(self, label: int) -> dict[str, tuple[Score, float]]:
        """Return the scores of one class and their means on test series, if above 0; empty for too few series."""
        # Duplicates would have infinite local density.
        train = np.unique(self._real(label, "train"), axis=0)
        test = self._real(label, "test")
        if len(train) <= KNN_NEIGHBOURS or not len(test):
            return {}
        scores = _fit_scores(train, spawn(self.seed, f"isolation forest/{label}"))
        with preserve_warning_filters():
            found = {name: (score, float(score(test).mean())) for name, score in scores.items()}
        return {name: (score, mean) for name, (score, mean) in found.items() if mean > 0}

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
        return standard.blank().values.reshape(len(series), series.n_steps * series.n_features)


def _fit_scores(real: FloatArray, seed: int) -> dict[str, Score]:
    """Fit the four models to flattened series (batch, entries)."""
    with preserve_random_state():
        from sklearn.ensemble import IsolationForest
        from sklearn.neighbors import LocalOutlierFactor
        from sklearn.svm import OneClassSVM

    with preserve_warning_filters():  # around all calls of scikit-learn, whose validation of input sets filters too
        lof = LocalOutlierFactor(n_neighbors=min(20, len(real) - 1), novelty=True).fit(real)
        forest = IsolationForest(random_state=seed).fit(real)
        svm = OneClassSVM(kernel="rbf", gamma="scale", nu=0.1)
        svm.random_state = seed  # not a parameter; None would draw from NumPy's global generator
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
        "knn_ratio": lambda x: lof.kneighbors(x, KNN_NEIGHBOURS)[0].mean(1),
    }


def c2st(e: Explanation, dataset: Dataset, rows: IntArray) -> tuple[float, int]:
    """Return the area under the ROC curve of changed valid answers against recordings, and their number.

    At most 400 of either are compared. The area is 0.5 if they cannot be distinguished, 1 if all can; NaN for fewer
    than 20 such answers, and if the series cannot be divided into folds. It is the larger area of two classifiers:
    MiniRocket with a ridge, if aeon is installed, and extra trees on the differences of neighbouring steps. Series are
    standardised, and immutable features of the data set are ignored. A query, all answers to it, and all answers that
    are nearest to the same training series are on one side of each fold; otherwise, series would be recognised by their
    similarity to each other.

    The answers are of classes, none with the status ``unchanged``; ``rows`` are the indices of their queries in
    ``X_test``, -1 if unknown.
    """
    free = slice(None) if dataset.mutable is None else dataset.mutable

    def inputs(X: FloatArray, lengths: IntArray | None, some: IntArray) -> FloatArray:
        return judge_inputs("convolutions", e.info.scaler, Series(X, lengths)[some])[:, free]  # (batch, features, time)

    chosen = np.flatnonzero(e.valid & e.changed.any((1, 2)))
    recorded = np.flatnonzero(np.isin(dataset.y_test, e.target[chosen]))
    if len(chosen) < MIN_COMPARED or not len(recorded):
        return np.nan, len(chosen)
    chosen = chosen[choose_rows(e.target[chosen], MAX_COMPARED)]
    recorded = recorded[choose_rows(dataset.y_test[recorded], MAX_COMPARED)]
    donors = inputs(dataset.X_train, dataset.lengths_train, choose_rows(dataset.y_train, DONORS))
    made = inputs(e.counterfactual, e.lengths, chosen)
    X = np.concatenate([inputs(dataset.X_test, dataset.lengths_test, recorded), made])
    is_made = np.arange(len(X)) >= len(recorded)
    query = np.concatenate([recorded, np.where(rows >= 0, rows, -1 - e.query_index)[chosen]])
    group = _components(query, _nearest(made, donors))
    with preserve_global_state():
        return _largest_area(X, is_made, group), len(chosen)


def _nearest(made: FloatArray, donors: FloatArray) -> IntArray:
    """Return the index of the donor with the least squared distance to each answer."""
    x, y = (series.reshape(len(series), -1) for series in (made, donors))
    return np.asarray(((y * y).sum(1) - 2 * x @ y.T).argmin(1))


def _components(query: IntArray, donor: IntArray) -> IntArray:
    """Return a number for each series: equal where a chain of answers with the same query or donor connects them.

    ``query`` are the recordings, followed by the query of each answer; ``donor`` is the donor of each answer.

    >>> _components(np.array([7, 6, 7, 7, 8, 9]), np.array([0, 1, 1, 2])).tolist()
    [1, 0, 1, 1, 1, 2]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, node = np.unique(query, return_inverse=True)
    edges = node[-len(donor) :], donor + node.max() + 1
    size = int(edges[1].max()) + 1
    label = connected_components(coo_array((np.ones(len(donor)), edges), shape=(size, size)), directed=False)[1]
    return np.asarray(label[node])


def _largest_area(X: FloatArray, is_made: BoolArray, group: IntArray) -> float:
    """Return the larger area of the two classifiers; NaN if the groups of series cannot be divided into folds."""
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import GroupKFold

    n_folds = min(FOLDS, len(np.unique(group[is_made])))
    folds = list(GroupKFold(n_folds).split(X, is_made, group)) if n_folds > 1 else []
    if not folds or any(np.ptp(is_made[learn].astype(int)) == 0 for learn, _ in folds):
        return np.nan
    said = np.empty((1 if missing_families() else 2, len(X)))
    for learn, ask in folds:
        said[:, ask] = _scores(X[learn], is_made[learn], X[ask])
    return max(float(roc_auc_score(is_made, one)) for one in said)


def _scores(X: FloatArray, is_made: BoolArray, asked: FloatArray) -> list[FloatArray]:
    """Return each classifier's scores for other series (batch, features, time): higher for answers."""
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def moves(X: FloatArray) -> FloatArray:
        sizes = [np.abs(np.diff(X, order, axis=2)) for order in (1, 2, 3)]
        return np.concatenate([of(size, axis=2) for size in sizes for of in (np.max, np.mean)], axis=1)

    trees = ExtraTreesClassifier(300, class_weight="balanced", random_state=0).fit(moves(X), is_made)
    scores = [trees.predict_proba(moves(asked))[:, 1]]
    if not missing_families():
        from aeon.transformations.collection.convolution_based import MiniRocket

        ridge = RidgeClassifierCV(np.logspace(-3, 5, 12), class_weight="balanced")
        model = make_pipeline(MiniRocket(n_kernels=2000, random_state=0), StandardScaler(), ridge).fit(X, is_made)
        scores.append(model.decision_function(asked))
    return scores
