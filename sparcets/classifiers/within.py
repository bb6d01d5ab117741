"""A regressor seen as a classifier of two classes: numbers within some bounds, and all others.

So a method that searches for a class answers questions about numbers, too. The probability of the first class is the
logistic function of how deep the numbers lie within the bounds, in units of a spread; it is the larger one if and only
if all numbers are within the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier, with_prediction
from sparcets.classifiers.regressor import DifferentiableRegressor, Regressor

WITHIN, BEYOND = 0, 1  # the two classes; of equal probabilities the first counts, and so do the bounds themselves


@dataclass(frozen=True, eq=False)
class Goal:
    """The numbers that count as reached.

    Attributes
    ----------
    bounds
        Smallest and largest number of each output (outputs, 2), infinite where any counts.
    names
        Of the two classes: the goal in words, and what is not the goal.
    """

    bounds: FloatArray
    names: tuple[str, str]

    def depth(self, numbers: Tensor, spread: FloatArray) -> Tensor:
        """Return how deep numbers (…, outputs) lie within the bounds, in spreads (outputs,); negative beyond them.

        The least deep output counts.
        """
        low, high, unit = (
            torch.as_tensor(values, dtype=numbers.dtype, device=numbers.device)
            for values in (self.bounds[:, 0], self.bounds[:, 1], spread)
        )
        asked = torch.as_tensor(np.isfinite(self.bounds).any(1), device=numbers.device)
        return (torch.minimum(numbers - low, high - numbers) / unit)[..., asked].amin(-1)

    def log_proba(self, numbers: Tensor, spread: FloatArray) -> Tensor:
        """Return log-probabilities (batch, 2) of the two classes for numbers (batch, outputs), with gradients."""
        depth = self.depth(numbers, spread)
        both = torch.stack([F.logsigmoid(depth), F.logsigmoid(-depth)], dim=-1)
        return with_prediction(both, torch.where(depth >= 0, WITHIN, BEYOND))

    def widened(self, spread: FloatArray) -> Goal:
        """Return the goal with bounds that are at least a spread away from their middle, where both are finite.

        A model that is off by so much on average cannot be asked for more.
        """
        narrow = np.isfinite(self.bounds).all(1) & (self.bounds[:, 1] - self.bounds[:, 0] < 2 * spread)
        bounds = self.bounds.copy()
        middle = bounds[narrow].mean(1)
        bounds[narrow] = np.stack([middle - spread[narrow], middle + spread[narrow]], axis=1)
        return Goal(bounds, self.names)


class _View(Classifier):
    """What both kinds of views of a regressor have in common."""

    named = True

    def __init__(self, regressor: Regressor, goal: Goal, spread: FloatArray) -> None:
        self.regressor, self.goal, self.spread = regressor, goal, spread
        self._class_names = goal.names
        self.n_features, self.n_steps = regressor.n_features, regressor.n_steps
        self.unequal, self.missing, self.side = regressor.unequal, regressor.missing, regressor.side
        self._knows_means = regressor._knows_means

    @property
    def name(self) -> str:
        """That of the regressor."""
        return self.regressor.name


class Within(_View):
    """A regressor as a classifier of two classes, within the bounds of a goal and beyond them.

    Parameters
    ----------
    regressor
        The model.
    goal
        The numbers that count.
    spread
        By how much the numbers of each output usually differ (outputs,).
    """

    @torch.no_grad()
    def _predict_proba(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        numbers = self.regressor.predict_unchecked(X, lengths)
        proba: FloatArray = self.goal.log_proba(torch.as_tensor(numbers), self.spread).exp().numpy()
        return proba


class DifferentiableWithin(_View, DifferentiableClassifier):
    """A differentiable regressor as a classifier of two classes; see :class:`Within`."""

    regressor: DifferentiableRegressor

    @property
    def device(self) -> torch.device:
        """That of the regressor."""
        return self.regressor.device

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, 2) of series in the data's own units, with gradients to ``x``."""
        return self.goal.log_proba(self.regressor.numbers(x, lengths).double(), self.spread)


def as_classifier(regressor: Regressor, goal: Goal, spread: FloatArray) -> Classifier:
    """Return a regressor as a classifier of two classes, with gradients if it has them."""
    if isinstance(regressor, DifferentiableRegressor):
        return DifferentiableWithin(regressor, goal, spread)
    return Within(regressor, goal, spread)
