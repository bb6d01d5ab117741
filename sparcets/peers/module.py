"""The classifier as peers expect it: an nn.Module on standardised series (batch, features, steps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.explanation.series_info import SeriesInfo
from sparcets.peers.algorithms import Output

MIN_PROBA = 1e-30  # a black box may return exactly 0, which has no logarithm
SHIFT = 100.0  # makes log-probabilities positive; softmax and cross-entropy do not change


def to_peer(X: FloatArray, info: SeriesInfo, *, longest_is_time: bool) -> FloatArray:
    """Convert series (batch, time, features) to the form of the peers: float32 (batch, features, steps), standardised.

    Most peers take the longer axis as time. If there are more features than steps, their series are padded with steps
    of zeros. All series have this padding, so distances do not change, and the classifier does not receive it.

    Examples
    --------
    >>> X = np.array([[[1.0, 2.0, 3.0], [3.0, 2.0, 5.0]]])  # 2 steps, 3 features
    >>> to_peer(X, SeriesInfo.from_series(X, ("a", "b")), longest_is_time=True)[0].tolist()
    [[-1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]]
    """
    standard = info.scaler.transform(X).astype(np.float32).transpose(0, 2, 1)
    missing = max(0, info.n_features - info.n_steps) if longest_is_time else 0
    return np.ascontiguousarray(np.pad(standard, ((0, 0), (0, 0), (0, missing))))


def from_peer(found: FloatArray, given: FloatArray, query: FloatArray, info: SeriesInfo) -> FloatArray:
    """Convert the answer of a peer to the units of the data (time, features); unchanged entries equal the query.

    Parameters
    ----------
    found, given
        Series that the peer returned, and that it was given (features, steps), standardised.
    query
        The query (time, features).
    """
    moved = (found != given)[:, : info.n_steps].T
    own_units = info.scaler.inverse(found[:, : info.n_steps].T.astype(np.float64))
    return np.where(moved, own_units, query)


class PeerModule(nn.Module):
    """A classifier as a module that takes the output of :func:`to_peer`, with a check of the time limit.

    Parameters
    ----------
    classifier
        The model to explain. It is not a submodule, so a peer cannot change its mode or gradients.
    info
        Names and scale of the series.
    dtype
        Data type of the series that the classifier takes.
    output
        Form of the output: see :class:`~sparcets.peers.algorithms.Algorithm`.
    """

    def __init__(self, classifier: Classifier, info: SeriesInfo, dtype: np.dtype[Any], output: Output) -> None:
        super().__init__()
        device = classifier.device if isinstance(classifier, DifferentiableClassifier) else torch.device("cpu")
        self.anchor = nn.Parameter(torch.zeros((), device=device))  # peers read the device from the first parameter
        self.classifier, self.output, self.n_steps = classifier, output, info.n_steps
        self.center = torch.tensor(info.scaler.center.astype(dtype), device=device)
        self.scale = torch.tensor(info.scaler.scale.astype(dtype), device=device)
        self.check: Callable[[], None] = lambda: None  # raises after the time limit

    @property
    def device(self) -> torch.device:
        """Device of the series."""
        return self.anchor.device

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, classes) for standardised series (batch, features, steps)."""
        self.check()
        own_units = x[..., : self.n_steps].transpose(1, 2) * self.scale + self.center
        if isinstance(self.classifier, DifferentiableClassifier):
            log_proba = self.classifier.log_proba(own_units.contiguous()).float()
        else:
            proba = np.maximum(self.classifier.proba_unchecked(own_units.detach().numpy()), MIN_PROBA)
            log_proba = torch.tensor(np.log(proba), dtype=torch.float32)
        if self.output == "proba":
            return log_proba.exp()
        return log_proba + SHIFT if self.output == "lifted_log_proba" else log_proba
