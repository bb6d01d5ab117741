"""Do other models than the explained one say that the counterfactual reaches the target? Higher is better.

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
from typing import Any, Protocol

import numpy as np

from sparcets.core.errors import DataError, ShapeError
from sparcets.core.explanation import Explanation, NumberPredictions
from sparcets.core.outcome import is_within
from sparcets.core.series import FloatArray
from sparcets.data.dataset import Dataset

DIRECTION = "direction"  # name of the measure


class Judge(Protocol):
    """A model of series (batch, time, features) with the same classes, or numbers, as the explained one."""

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return class indices (batch,) or numbers (batch, outputs); ``lengths`` as for :meth:`Classifier.predict`."""


def transfer(e: Explanation, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
    """Return whether held-out models agree that the target is reached.

    A judge of numbers may be off by more than the target is narrow, so whether its number moves towards the target at
    all is measured, too.

    Parameters
    ----------
    e
        The answers.
    judges
        Models by name, trained on the same task and not used by the method that made the answers.

    Returns
    -------
    dict
        Under each judge's name, 1 where it predicts the target, else 0, and their mean under ``"transfer"`` (answers,).
        For numbers also, under ``"direction_<name>"``, 1 where its number is nearer to the target for the
        counterfactual than for the query, or within it, else 0; and their mean under ``"direction"``.
    """
    if not judges or "transfer" in judges:
        raise DataError(
            f"transfer needs at least one judge, none of them named 'transfer' (that is the mean), got {list(judges)}. "
            "Pass held-out classifiers by name."
        )
    if not len(e):  # classifiers do not accept empty batches
        return {name: np.zeros(0) for name in (*judges, "transfer")}
    said = e.predictions
    after = {name: np.asarray(judge.predict(e.counterfactual, e.lengths)) for name, judge in judges.items()}
    if not isinstance(said, NumberPredictions):
        agrees = {name: np.asarray(found == e.target, dtype=np.float64) for name, found in after.items()}
        return {**agrees, "transfer": np.mean(list(agrees.values()), axis=0)}
    for name, found in after.items():
        if found.shape != said.after.shape:
            raise DataError(
                f"the judge {name!r} gives numbers of shape {found.shape}, the explained model {said.after.shape}."
            )
    low, high = np.moveaxis(said.numbers.bounds, -1, 0)

    def beyond(numbers: FloatArray) -> FloatArray:
        """Return how far numbers (answers, outputs) are from the target, in spreads of the labels (answers,)."""
        return np.asarray((np.maximum(np.maximum(low - numbers, numbers - high), 0) / said.outcome.scale).max(1))

    agrees = {name: is_within(found, said.numbers.bounds).astype(np.float64) for name, found in after.items()}
    moves = {}
    for name, judge in judges.items():
        nearer = beyond(after[name]) < beyond(np.asarray(judge.predict(e.query, e.lengths)))
        moves[f"{DIRECTION}_{name}"] = (nearer | (agrees[name] == 1)).astype(np.float64)
    means = {"transfer": agrees, DIRECTION: moves}
    return {**agrees, **moves, **{name: np.mean(list(of.values()), axis=0) for name, of in means.items()}}


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
