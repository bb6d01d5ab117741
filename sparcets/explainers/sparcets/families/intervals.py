"""Interval statistics: mean, spread and slope of random intervals, by cumulative sums."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.seeding import generator

INTERVALS = 400
SHORTEST = 3  # steps
SMALLEST_VARIANCE = 1e-6


class IntervalStatistics(nn.Module):
    """Series (batch, time, features) to the mean, standard deviation and slope of intervals of single channels.

    Parameters
    ----------
    start, end, channel
        Of each interval (intervals,); ``end`` is exclusive.
    """

    start: Tensor
    end: Tensor
    channel: Tensor

    def __init__(self, *, start: Tensor, end: Tensor, channel: Tensor) -> None:
        super().__init__()
        for name, tensor in {"start": start, "end": end, "channel": channel}.items():
            self.register_buffer(name, tensor)

    @classmethod
    def draw(cls, X: Tensor, seed: int, *, sharp: bool = False) -> IntervalStatistics:
        """Draw intervals, short ones as often as long ones; ``X`` (batch, time, features) are training series.

        ``sharp`` makes no difference here; see :class:`RandomConvolutions` and :class:`IntervalQuantiles`.

        Examples
        --------
        >>> X = torch.arange(12.0).reshape(1, 12, 1)
        >>> IntervalStatistics(start=torch.tensor([2]), end=torch.tensor([6]), channel=torch.tensor([0]))(X).round(
        ...     decimals=2
        ... )
        tensor([[3.5000, 1.1200, 4.0000]])
        """
        rng = generator(seed, "intervals")
        T, n_features = X.shape[1:]
        length = (T * 2.0 ** -rng.uniform(0, 4, INTERVALS)).astype(np.int64).clip(min(SHORTEST, T), T)
        start = (rng.uniform(size=INTERVALS) * (T - length + 1)).astype(np.int64)
        # Every channel about equally often.
        channel = rng.permutation(np.arange(INTERVALS) % n_features)
        if n_features > INTERVALS:
            channel = rng.permutation(n_features)[:INTERVALS]
        columns = {"start": start, "end": start + length, "channel": channel}
        return cls(**{name: torch.as_tensor(column, device=X.device) for name, column in columns.items()})

    def forward(self, x: Tensor) -> Tensor:
        """Return features (batch, 3 * intervals): means, standard deviations, and rises over the interval."""
        T = x.shape[1]
        time = torch.linspace(-0.5, 0.5, T, dtype=x.dtype, device=x.device)[None, :, None]
        n = (self.end - self.start).to(x.dtype)
        mean, square, product = (self._mean(v, n) for v in (x, x * x, x * time))
        # Mean and variance of equally spaced times between start and end.
        middle = (self.start + self.end - 1).to(x.dtype) / 2 / max(1, T - 1) - 0.5
        variance = (n * n - 1) / 12 / max(1, T - 1) ** 2
        spread = (square - mean * mean).clamp_min(SMALLEST_VARIANCE).sqrt()
        slope = (product - mean * middle) / variance.clamp_min(1e-12)
        return torch.cat([mean, spread, slope * n / max(1, T - 1)], dim=1)

    def _mean(self, values: Tensor, n: Tensor) -> Tensor:
        total = F.pad(values.cumsum(1), (0, 0, 1, 0))  # (B, T + 1, F)
        return (total[:, self.end, self.channel] - total[:, self.start, self.channel]) / n
