"""A classifier of padded series, seen from series that were cut to one true length."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.padding import blank


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
    >>> from sparcets.classifiers.wrap import wrap
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
