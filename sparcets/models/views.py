"""Views of models, which can be combined: at one length, and within the bounds of a goal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.models.base import Classifier, Model, Regressor, with_prediction

WITHIN, BEYOND = 0, 1  # the two classes; ties count as within, and so do the bounds themselves


def at_length(classifier: Classifier, length: int, n_steps: int) -> Classifier:
    """Return a classifier of series (batch, length, features), which are padded to ``n_steps`` for the given one.

    The wrapped model takes padded series and their true lengths. Longer series are passed unchanged.

    >>> from sparcets.models.wrap import wrap
    >>> model = wrap(lambda X, lengths: np.stack([X.sum((1, 2)) / lengths] * 2, 1))
    >>> at_length(model, 2, 5).predict_proba(np.full((1, 2, 1), 0.5))
    array([[0.5, 0.5]])
    """
    return classifier if length >= n_steps else AtLength(classifier, length, n_steps)


class View(Classifier):
    """A view of a model as a classifier; it delegates name, device and missing-value rule."""

    def __init__(self, model: Model) -> None:
        self.missing, self.differentiable = model.missing, model.differentiable
        self._model = model

    @property
    def name(self) -> str:
        """Name of the model."""
        return self._model.name

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return self._model.device


class AtLength(View):
    """A view of a classifier of padded series for series without padding, of one length; see :func:`at_length`."""

    def __init__(self, whole: Classifier, length: int, padded_to: int) -> None:
        super().__init__(whole)
        self.whole, self.length, self.padded_to = whole, length, padded_to
        self._class_names, self.named = whole._class_names, whole.named

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        padded = Series(X).blank(self.padded_to).values
        return self.whole.outputs_unchecked(Series(padded, np.full(len(X), self.length, dtype=np.int64)))

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series (batch, length, features), with gradients to ``x``."""
        padded = F.pad(x, (0, 0, 0, self.padded_to - self.length))
        return self.whole.log_proba(padded, torch.full((len(x),), self.length, device=x.device))


@dataclass(frozen=True, eq=False)
class Goal:
    """The numbers that count as reached."""

    bounds: FloatArray  # smallest and largest number of each output (outputs, 2), infinite where any counts
    names: tuple[str, str]  # names of the two classes: a description of the goal, and of its opposite

    def depth(self, numbers: Tensor, spread: FloatArray) -> Tensor:
        """Return the distance of numbers (…, outputs) to the bounds, in spreads (outputs,); negative outside.

        It is the smallest over the outputs.
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
        """Return the goal with finite bounds moved at least a spread away from their middle.

        A model with such an average error cannot be more precise.
        """
        narrow = np.isfinite(self.bounds).all(1) & (self.bounds[:, 1] - self.bounds[:, 0] < 2 * spread)
        bounds = self.bounds.copy()
        middle = bounds[narrow].mean(1)
        bounds[narrow] = np.stack([middle - spread[narrow], middle + spread[narrow]], axis=1)
        return Goal(bounds, self.names)


class Within(View):
    """A regressor as a classifier of two classes, within the bounds of a goal and beyond them.

    ``spread`` is the usual deviation of the numbers of each output (outputs,).
    """

    named = True

    def __init__(self, regressor: Regressor, goal: Goal, spread: FloatArray) -> None:
        super().__init__(regressor)
        self.regressor, self.goal, self.spread = regressor, goal, spread
        self._class_names = goal.names
        self.n_features, self.n_steps, self.unequal = regressor.n_features, regressor.n_steps, regressor.unequal
        self.side, self._knows_means = regressor.side, regressor._knows_means

    @torch.no_grad()
    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        numbers = torch.as_tensor(self.regressor.outputs_unchecked(Series(X, lengths)))
        return self.goal.log_proba(numbers, self.spread).exp().numpy()

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, 2) of series in the data's own units, with gradients to ``x``."""
        return self.goal.log_proba(self.regressor.numbers(x, lengths).double(), self.spread)
