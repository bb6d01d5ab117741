"""The classifier as the peers want it: an nn.Module over standardised series with features first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.peers.algorithms import Output
from sparcets.series_info import SeriesInfo

LEAST = 1e-30  # a black box may say exactly 0, which has no logarithm
LIFT = 100.0  # brings log-probabilities above 0; neither softmax nor cross-entropy sees it


def to_peer(X: FloatArray, info: SeriesInfo, *, longest_is_time: bool) -> FloatArray:
    """Return series (batch, time, features) as peers take them: float32 (batch, features, steps), standardised.

    Most peers take the longer axis for time. For them, where there are more features than steps, steps of zeros follow
    the series; all series have them, so no distance changes, and the classifier never sees them.

    Examples
    --------
    >>> X = np.array([[[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]])  # 2 steps, 3 features
    >>> to_peer(X, SeriesInfo.measure(X, ("a", "b")), longest_is_time=True)[0].tolist()
    [[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]]
    """
    standard = info.scaler.transform(X).astype(np.float32).transpose(0, 2, 1)
    missing = max(0, info.n_features - info.n_steps) if longest_is_time else 0
    return np.ascontiguousarray(np.pad(standard, ((0, 0), (0, 0), (0, missing))))


def from_peer(found: FloatArray, given: FloatArray, query: FloatArray, info: SeriesInfo) -> FloatArray:
    """Return what a peer found in the data's own units; what it left alone is the query's own bits.

    Parameters
    ----------
    found, given
        What the peer returned, and what it had been given (features, steps), standardised.
    query
        The query itself (time, features).
    """
    moved = (found != given)[:, : info.n_steps].T
    own_units = info.scaler.inverse(found[:, : info.n_steps].T.astype(np.float64))
    return np.where(moved, own_units, query)


class PeerModule(nn.Module):
    """A classifier of ours that takes what :func:`to_peer` gives and can be refused after a while.

    Parameters
    ----------
    classifier
        The model to explain. It is no part of this module: what a peer does to modes and gradients does not reach it.
    info
        Names and scale of the series.
    dtype
        Type of the series that the classifier was made for.
    output
        What to return: see :class:`~sparcets.peers.algorithms.Algorithm`.
    """

    def __init__(self, classifier: Classifier, info: SeriesInfo, dtype: np.dtype[Any], output: Output) -> None:
        super().__init__()
        device = classifier.device if isinstance(classifier, DifferentiableClassifier) else torch.device("cpu")
        self.anchor = nn.Parameter(torch.zeros((), device=device))  # peers ask the first parameter where the model is
        self.classifier, self.output, self.n_steps = classifier, output, info.n_steps
        self.center = torch.tensor(info.scaler.center.astype(dtype), device=device)
        self.scale = torch.tensor(info.scaler.scale.astype(dtype), device=device)
        self.check: Callable[[], None] = lambda: None  # raises once the time is up

    @property
    def device(self) -> torch.device:
        """Where the series have to be."""
        return self.anchor.device

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, classes) for standardised series (batch, features, steps)."""
        self.check()
        own_units = x[..., : self.n_steps].transpose(1, 2) * self.scale + self.center
        if isinstance(self.classifier, DifferentiableClassifier):
            log_proba = self.classifier.log_proba(own_units.contiguous()).float()
        else:
            proba = np.maximum(self.classifier.predict_proba(own_units.detach().numpy()), LEAST)
            log_proba = torch.tensor(np.log(proba), dtype=torch.float32)
        if self.output == "proba":
            return log_proba.exp()
        return log_proba + LIFT if self.output == "lifted_log_proba" else log_proba
