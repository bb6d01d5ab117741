"""Do other models than the explained one say that the counterfactual reaches the target? Higher is better.

A change that only affects the network it was optimised against is adversarial noise. Classifiers that were not used to
make the change detect it (*transfer*); so does, for synthetic data, the generating process itself (*oracle*).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from sparcets.core.errors import DataError
from sparcets.core.explanation import Explanation
from sparcets.core.outcome import is_within
from sparcets.core.series import FloatArray

DIRECTION = "direction"  # name of the measure


class Judge(Protocol):
    """A model of series (batch, time, features) with the same classes, or numbers, as the explained one."""

    def predict(self, X: Any, lengths: Any = None) -> Any:
        """Return class indices (batch,) or numbers (batch, outputs); ``lengths`` as for :meth:`Classifier.predict`."""


def transfer(e: Explanation, judges: Mapping[str, Judge]) -> dict[str, FloatArray]:
    """Return whether held-out models, by name, agree that the target is reached.

    Under each judge's name, 1 where it predicts the target, else 0, and their mean under ``"transfer"`` (answers,). A
    judge of numbers may be off by more than the target is narrow; so there is also, under ``"direction_<name>"``, 1
    where its number is nearer to the target for the counterfactual than for the query, or within it, and the mean under
    ``"direction"``.
    """
    after = {name: np.asarray(judge.predict(e.counterfactual, e.lengths)) for name, judge in judges.items()}
    if e.numbers is None:
        agrees = {name: np.asarray(found == e.target, dtype=np.float64) for name, found in after.items()}
        return {**agrees, "transfer": np.mean(list(agrees.values()), axis=0)}
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
        moves[f"{DIRECTION}_{name}"] = (nearer | (agrees[name] == 1)).astype(np.float64)
    means = {"transfer": agrees, DIRECTION: moves}
    return {**agrees, **moves, **{name: np.mean(list(of.values()), axis=0) for name, of in means.items()}}
