"""Do other models than the explained classifier put the counterfactual into the target class? Higher is better.

A change that only affects the network it was optimised against is adversarial noise. Two references detect this:
classifiers that were not used to make the change (*transfer*) and, for synthetic data, the generating process itself
(*oracle*).

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
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import DataError, ShapeError
from sparcets.core.explanation import Explanation
from sparcets.data.dataset import Dataset
from sparcets.evaluation.measures import changed_within, jaccard, n_entries, standardised_delta


class Judge(Protocol):
    """A classifier of series (batch, time, features) with the same class indices as the explained model."""

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return class indices (batch,); ``lengths`` are the true lengths of padded series, or None."""


def transfer(e: Explanation, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
    """Return whether held-out classifiers predict the target class.

    Parameters
    ----------
    e
        The answers.
    judges
        Classifiers by name, trained on the same classes and not used by the method that made the answers.

    Returns
    -------
    dict
        Under each judge's name, 1 where it predicts the target, else 0, and their mean under ``"transfer"`` (answers,).
    """
    if not judges or "transfer" in judges:
        raise DataError(
            f"transfer needs at least one judge, none of them named 'transfer' (that is the mean), got {list(judges)}. "
            "Pass held-out classifiers by name."
        )
    if not len(e):  # classifiers do not accept empty batches
        return {name: np.zeros(0) for name in (*judges, "transfer")}
    agrees = {
        name: np.asarray(np.asarray(judge.predict(e.counterfactual, e.lengths)) == e.target, dtype=np.float64)
        for name, judge in judges.items()
    }
    return {**agrees, "transfer": np.mean(list(agrees.values()), axis=0)}


def oracle(e: Explanation, dataset: Dataset, rows: Any) -> FloatArray:
    """Return 1 where the generating process puts the counterfactual into the target class, else 0.

    Parameters
    ----------
    e
        The answers.
    dataset
        Synthetic data, whose ``oracle`` returns the true class of changed test series.
    rows
        Index in ``X_test`` of each answer's query, integers (answers,).

    Examples
    --------
    >>> import sparcets as sp
    >>> ds = sp.load_dataset("moving_box", kinds="Middle", processes="Gaussian", n_per_combination=60)
    >>> classifier = sp.wrap(lambda X: np.eye(2)[(X.mean((1, 2)) > 0).astype(int)])
    >>> rows = np.flatnonzero(ds.y_test == 0)
    >>> e = sp.Nearest(classifier).fit(ds).explain(ds.X_test[rows], target="1")
    >>> oracle(e, ds, rows).mean().item()  # a real series of the target class, with its box at the same position
    1.0
    """
    if dataset.oracle is None:
        raise DataError(
            f"{dataset.name!r} has no oracle: the true class of changed series is known for synthetic data only. "
            "Use held-out classifiers instead, with transfer(e, judges)."
        )
    if np.shape(rows) != (len(e),):
        raise ShapeError(
            f"rows must be {len(e)} indices into X_test, one per answer, got shape {np.shape(rows)}. "
            "If you have one per query: rows[e.query_index]."
        )
    if not len(e):
        return np.zeros(0)
    return np.asarray(dataset.oracle(e.counterfactual, np.asarray(rows)) == e.target, dtype=np.float64)


def stays_valid(e: Explanation, other: Explanation) -> FloatArray:
    """Return 1 where both answers are valid, 0 where only the first is; NaN where the first is not."""
    _check_same_queries(e, other)
    return np.where(e.valid, other.valid.astype(np.float64), np.nan)


def stays_in_place(e: Explanation, other: Explanation) -> FloatArray:
    """Return the Jaccard index |A ∩ B| / |A ∪ B| of the changed entries; NaN unless both answers are valid."""
    _check_same_queries(e, other)
    return np.where(e.valid & other.valid, jaccard(changed_within(e), changed_within(other)), np.nan)


def residual_distance(e: Explanation, other: Explanation) -> FloatArray:
    """Return ‖δ − δ'‖₁ / (T·F), both standardised by the scaler of ``e``; NaN unless both answers are valid."""
    _check_same_queries(e, other)
    difference = standardised_delta(e)
    difference -= standardised_delta(replace(other, info=e.info))
    distance = np.abs(difference, out=difference).sum((1, 2)) / n_entries(e)
    return np.where(e.valid & other.valid, distance, np.nan)


def _check_same_queries(e: Explanation, other: Explanation) -> None:
    if e.query.shape != other.query.shape:
        raise ShapeError(
            f"stability compares explanations of the same queries, got answers of shape {e.query.shape} and "
            f"{other.query.shape}. Explain the same queries twice, with the same n."
        )
    for name in ("query_index", "target", "lengths"):
        if not np.array_equal(getattr(e, name), getattr(other, name)):
            raise ShapeError(
                f"stability compares explanations of the same queries in the same order for the same targets, but the "
                f"two differ in {name}. Explain the same queries twice, with the same target=, and slice both alike."
            )
