"""A classifier of padded series, seen from series that were cut to one true length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.errors import ConfigError, quoted
from sparcets.core.series import blank
from sparcets.models.base import (
    Classifier,
    DifferentiableClassifier,
    DifferentiableRegressor,
    Regressor,
    with_prediction,
)


def at_length(classifier: Classifier, length: int, n_steps: int) -> Classifier:
    """Return a classifier of series (batch, length, features), which are padded to ``n_steps`` for the given one.

    Parameters
    ----------
    classifier
        Takes padded series and their true lengths.
    length
        True length of all series.
    n_steps
        Number of steps that the classifier is given; longer series are given as they are.

    Examples
    --------
    >>> from sparcets.models.wrap import wrap
    >>> model = wrap(lambda X, lengths: np.stack([X.sum((1, 2)) / lengths] * 2, 1))
    >>> at_length(model, 2, 5).predict_proba(np.full((1, 2, 1), 0.5))
    array([[0.5, 0.5]])
    """
    if length >= n_steps:
        return classifier
    if isinstance(classifier, DifferentiableClassifier):
        return ModuleAtLength(classifier, length, n_steps)
    return FunctionAtLength(classifier, length, n_steps)


class FunctionAtLength(Classifier):
    """A black box; see :func:`at_length`."""

    def __init__(self, whole: Classifier, length: int, padded_to: int) -> None:
        self.whole, self.length, self.padded_to = whole, length, padded_to
        self._class_names, self.named, self.missing = whole._class_names, whole.named, whole.missing

    @property
    def name(self) -> str:
        """Name of the classifier of padded series."""
        return self.whole.name

    def _hint(self, proba: FloatArray) -> str:
        return self.whole._hint(proba)

    def _predict_proba(self, X: FloatArray, lengths: IntArray | None) -> Any:
        padded = blank(X, None, self.padded_to)
        return self.whole._predict_proba(padded, np.full(len(X), self.length, dtype=np.int64))


class ModuleAtLength(FunctionAtLength, DifferentiableClassifier):
    """A model with gradients; see :func:`at_length`."""

    def __init__(self, whole: DifferentiableClassifier, length: int, padded_to: int) -> None:
        super().__init__(whole, length, padded_to)
        self.module = whole

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return self.module.device

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series (batch, length, features), with gradients to ``x``."""
        padded = F.pad(x, (0, 0, 0, self.padded_to - self.length))
        return self.module.log_proba(padded, torch.full((len(x),), self.length, device=x.device))


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


Batch = tuple[int, int]


def check_batch(batch: Any) -> Batch | None:
    """Return the smallest and the largest batch that a model accepts, or None for any.

    >>> check_batch([2, 64])
    (2, 64)
    """
    if batch is None:
        return None
    sizes = tuple(batch) if isinstance(batch, (tuple, list)) else ()
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in sizes)
    if len(sizes) != 2 or not whole or not 1 <= sizes[0] <= sizes[1]:
        raise ConfigError(
            f"batch must be the smallest and the largest number of series that the model accepts, such as (2, 64), "
            f"got {quoted(batch)}."
        )
    return int(sizes[0]), int(sizes[1])


def call_in_batches(call: Callable[[Any], Any], x: Any, batch: Batch) -> Any:
    """Call a model on series (batch, …) in batches it accepts, and return its outputs, one row per series.

    Parameters
    ----------
    call
        The model: series to outputs, arrays or tensors.
    x
        Series, an array or a tensor. A batch that is too small is padded by repeating its last series, whose further
        outputs are dropped.
    batch
        Smallest and largest number of series.
    """
    outputs = [call(padded(part, batch[0]))[: len(part)] for part in _parts(x, batch[1])]
    return torch.cat(outputs) if isinstance(x, Tensor) else np.concatenate(outputs)


def _parts(x: Any, largest: int) -> Iterator[Any]:
    return (x[start : start + largest] for start in range(0, len(x), largest))


def padded(x: Any, smallest: int) -> Any:
    """Return series, or anything else (batch, …), with the last one repeated until there are ``smallest`` of them.

    >>> padded(torch.tensor([1, 2]), 4)
    tensor([1, 2, 2, 2])
    """
    missing = smallest - len(x)
    if missing <= 0:
        return x
    if isinstance(x, Tensor):
        return torch.cat([x, x[-1:].expand(missing, *x.shape[1:])])
    return np.concatenate([x, np.repeat(x[-1:], missing, axis=0)])
