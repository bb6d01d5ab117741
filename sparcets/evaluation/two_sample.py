"""Can answers be told from recordings? A classifier two-sample test of all of them together; lower is better.

Two classifiers learn to tell answers from recorded test series of the target classes, and are asked about others than
they learned from. If neither can tell, answers look like recordings.
"""

from __future__ import annotations

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series
from sparcets.data.dataset import Dataset
from sparcets.evaluation.families import choose_rows, judge_inputs, left_as_found, missing_families

FEWEST = 20  # answers; with fewer, the result says little
MOST = 400  # answers, and as many recordings; more take long and say little more
DONORS = 4000  # training series, at most, of which the nearest one to an answer is found
FOLDS = 5


def c2st(e: Explanation, dataset: Dataset, rows: IntArray) -> tuple[float, int]:
    """Return the area under the ROC curve of telling changed valid answers from recordings, and their number.

    At most 400 of either are compared. 0.5 where they cannot be told apart, 1 where all can; NaN for fewer than 20 such
    answers, and where the series cannot be divided into folds. It is the larger one of two classifiers: MiniRocket with
    a ridge, if aeon is installed, and extra trees on the differences of neighbouring steps. Series are standardised,
    and features that the data set does not let change are left out. A query, all answers to it, and all answers that
    are nearest to the same training series are on one side of each fold; otherwise, series would be recognised by what
    they have in common with each other.

    The answers are of classes, none of them to a query that is in its target already; ``rows`` are the indices of their
    queries in ``X_test``, -1 where not known.
    """
    free = slice(None) if dataset.mutable is None else dataset.mutable

    def inputs(X: FloatArray, lengths: IntArray | None, some: IntArray) -> FloatArray:
        return judge_inputs("convolutions", e.info.scaler, Series(X, lengths)[some])[:, free]  # (batch, features, time)

    chosen = np.flatnonzero(e.valid & e.changed.any((1, 2)))
    recorded = np.flatnonzero(np.isin(dataset.y_test, e.target[chosen]))
    if len(chosen) < FEWEST or not len(recorded):
        return np.nan, len(chosen)
    chosen = chosen[choose_rows(e.target[chosen], MOST)]
    recorded = recorded[choose_rows(dataset.y_test[recorded], MOST)]
    donors = inputs(dataset.X_train, dataset.lengths_train, choose_rows(dataset.y_train, DONORS))
    made = inputs(e.counterfactual, e.lengths, chosen)
    X = np.concatenate([inputs(dataset.X_test, dataset.lengths_test, recorded), made])
    is_made = np.arange(len(X)) >= len(recorded)
    query = np.concatenate([recorded, np.where(rows >= 0, rows, -1 - e.query_index)[chosen]])
    group = _components(query, _nearest(made, donors))
    with left_as_found():
        return _largest_area(X, is_made, group), len(chosen)


def _nearest(made: FloatArray, donors: FloatArray) -> IntArray:
    """Return the index of the donor with the least squared distance to each answer."""
    x, y = (series.reshape(len(series), -1) for series in (made, donors))
    return np.asarray(((y * y).sum(1) - 2 * x @ y.T).argmin(1))


def _components(query: IntArray, donor: IntArray) -> IntArray:
    """Return a number for each series: equal where a chain of answers with the same query or donor connects them.

    ``query`` are the recordings themselves, followed by the query of each answer; ``donor`` is that of each answer.

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
    """Return the larger area of the two classifiers; NaN where the groups of series cannot be divided into folds."""
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
    """Return how much each classifier takes other series (batch, features, time) for answers."""
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
