"""Models whose answers can be computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.series import FloatArray
from sparcets.training.networks import mean_over_time


class MeanModule(nn.Module):
    """Logits are the time means of the first ``n_classes`` features: the class is the highest feature.

    It matches :func:`sparcets.testing.data.make_series`, where class k lifts feature k.
    """

    def __init__(self, n_classes: int = 3, sharpness: float = 10.0) -> None:
        super().__init__()
        self.n_classes = n_classes
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (batch, classes) of series (batch, time, features)."""
        return self.sharpness * x[..., : self.n_classes].mean(1)


class MaskedMeanModule(MeanModule):
    """The same for series of unequal length: the mean over the steps of each."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:  # type: ignore[override]
        """Return logits (batch, classes) of padded series (batch, time, features) and their lengths (batch,)."""
        logits: Tensor = self.sharpness * mean_over_time(x[..., : self.n_classes], lengths)
        return logits


def mean_proba(X: Any, n_classes: int = 3, sharpness: float = 10.0) -> FloatArray:
    """Return the probabilities of :class:`MeanModule` as a plain function: a black box."""
    logits = sharpness * np.asarray(X, dtype=np.float64)[..., :n_classes].mean(1)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True))
