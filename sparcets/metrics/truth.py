"""Is the counterfactual of the target class for others than the explained classifier? Higher is better.

A change that convinces only the network it was made for is adversarial noise. Two witnesses know better: classifiers
that had no part in making it (*transfer*) and, for synthetic data, the generating process itself (*oracle*).

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y != 1][:3], target=1)
>>> transfer(e, {"blunt": sp.wrap(lambda X: mean_proba(X, sharpness=1.0))})["transfer"].tolist()
[1.0, 1.0, 1.0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.datasets.base import Dataset
from sparcets.errors import DataError, ShapeError
from sparcets.explanation import Explanation


class Judge(Protocol):
    """Anything that names the class of series (batch, time, features), by the same indices as the explained model."""

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return class indices (batch,); ``lengths`` are the true lengths of padded series, or None."""


def transfer(e: Explanation, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
    """Ask held-out classifiers.

    Parameters
    ----------
    e
        The answers.
    judges
        Classifiers by name, trained on the same classes and never seen by the method that made the answers.

    Returns
    -------
    dict
        Under each judge's name, 1 where it too says the target, else 0, and their mean under ``"transfer"`` (answers,).
    """
    if not judges or "transfer" in judges:
        raise DataError(
            f"transfer needs one judge or more, none of them called 'transfer' (that is the mean), got {list(judges)}. "
            "Pass classifiers that the explainer never saw, by name."
        )
    if not len(e):  # models refuse to be asked about nothing
        return {name: np.zeros(0) for name in (*judges, "transfer")}
    agrees = {
        name: np.asarray(np.asarray(judge.predict(e.counterfactual, e.lengths)) == e.target, dtype=np.float64)
        for name, judge in judges.items()
    }
    return {**agrees, "transfer": np.mean(list(agrees.values()), axis=0)}


def oracle(e: Explanation, dataset: Dataset, rows: Any) -> FloatArray:
    """Ask the generating process: 1 where it gives the counterfactual the target class, else 0.

    Parameters
    ----------
    e
        The answers.
    dataset
        Synthetic data, whose ``oracle`` knows the true class of changed test series.
    rows
        Place in ``X_test`` of each answer's query, whole numbers (answers,).

    Examples
    --------
    >>> import sparcets as sp
    >>> ds = sp.load_dataset("moving_box", kinds="Middle", processes="Gaussian", n_per_combination=60)
    >>> classifier = sp.wrap(lambda X: np.eye(2)[(X.mean((1, 2)) > 0).astype(int)])
    >>> rows = np.flatnonzero(ds.y_test == 0)
    >>> e = sp.Nearest(classifier).fit(ds).explain(ds.X_test[rows], target="1")
    >>> oracle(e, ds, rows).mean().item()  # a neighbour of the class, with its box in the same place
    1.0
    """
    if dataset.oracle is None:
        raise DataError(
            f"{dataset.name!r} has no oracle: only synthetic data knows the class of changed series. "
            "Ask held-out classifiers instead, with transfer(e, judges)."
        )
    if np.shape(rows) != (len(e),):
        raise ShapeError(
            f"rows must be {len(e)} places in X_test, one per answer, got shape {np.shape(rows)}. "
            "If you have one per query: rows[e.query_index]."
        )
    if not len(e):
        return np.zeros(0)
    return np.asarray(dataset.oracle(e.counterfactual, np.asarray(rows)) == e.target, dtype=np.float64)
