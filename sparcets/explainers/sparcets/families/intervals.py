"""Interval statistics: mean, spread and slope of random intervals, by products with weights."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray, IntArray
from sparcets.seeding import generator

INTERVALS = 400
SHORTEST = 3  # steps
SMALLEST_VARIANCE = 1e-6
# Weights of the steps in the means of the intervals of each channel (channels, time, intervals), in their means and
# rises (channels, time, 2 * intervals), and the column of each feature in what they make of a series.
Weights = tuple[Tensor, Tensor, Tensor]


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
        self._weighted: tuple[tuple[int, int, torch.dtype, torch.device], Weights] | None = None

    @classmethod
    def draw(
        cls,
        X: Tensor,
        seed: int,
        *,
        scale: FloatArray | None = None,
        sharp: bool = False,
        lengths: IntArray | None = None,
    ) -> IntervalStatistics:
        """Draw intervals, short ones as often as long ones; ``X`` (batch, time, features) are training series.

        ``sharp`` and ``lengths`` make no difference here; see :class:`RandomConvolutions`.

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

    def at_length(self, n_steps: int, of: int) -> IntervalStatistics:
        """Return the statistics of the same parts of shorter series, of ``n_steps`` instead of ``of`` steps."""
        start, end = stretch(self.start, self.end, n_steps, of, shortest=SHORTEST)
        return IntervalStatistics(start=start, end=end, channel=self.channel)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (batch, 3 * intervals): means, standard deviations, and rises over the interval."""
        in_mean, in_both, columns = self._weights(x)
        series = x.permute(2, 0, 1).contiguous()  # (F, B, T); batches of other strides are multiplied one by one
        linear = torch.bmm(series, in_both)
        mean = linear[:, :, : in_mean.shape[2]]
        square = torch.bmm(series * series, in_mean)
        spread = torch.addcmul(square, mean, mean, value=-1).clamp_min(SMALLEST_VARIANCE).sqrt()
        return torch.cat([linear, spread], dim=2).transpose(0, 1).flatten(1).index_select(1, columns)

    def _weights(self, x: Tensor) -> Weights:
        """Return the weights of the steps, kept from pass to pass; channels with fewer intervals have some of zero."""
        T, n_features = x.shape[1:]
        key = T, n_features, x.dtype, x.device
        kept = self._weighted  # another thread may replace it meanwhile
        if kept is None or kept[0] != key:
            start, end, channel = (v.cpu().numpy() for v in (self.start, self.end, self.channel))
            # The number of each interval among those of its channel.
            order, count = np.argsort(channel, kind="stable"), np.bincount(channel, minlength=n_features)
            number = np.empty(len(channel), dtype=np.int64)
            number[order] = np.arange(len(channel)) - np.repeat(np.cumsum(count) - count, count)
            n, size = (end - start)[:, None], int(count.max())
            time = np.arange(T)
            inside = (time >= start[:, None]) & (time < end[:, None])
            # The rise is n times the slope, by least squares; that of a single step is zero.
            rise = inside * (time - (start + end - 1)[:, None] / 2) * 12 / np.maximum(1, n * n - 1)
            weight = np.zeros((n_features, T, 2 * size))  # means, then rises
            weight[channel, :, number], weight[channel, :, size + number] = inside / n, rise
            first = channel * 3 * size + number
            columns = np.concatenate([first, first + 2 * size, first + size])
            both = torch.as_tensor(weight).to(x)
            kept = key, (both[:, :, :size].contiguous(), both, torch.as_tensor(columns).to(x.device))
            self._weighted = kept
        return kept[1]


def stretch(start: Tensor, end: Tensor, n_steps: int, of: Tensor | int, *, shortest: int) -> tuple[Tensor, Tensor]:
    """Return the same intervals (intervals,) of series of ``n_steps`` instead of ``of`` steps.

    They are at least ``shortest`` steps long if they were, and if there are as many steps.

    >>> stretch(torch.tensor([0, 4, 9]), torch.tensor([10, 8, 10]), 5, 10, shortest=1)
    (tensor([0, 2, 4]), tensor([5, 4, 5]))
    """
    least = (end - start).clamp(max=min(shortest, n_steps))
    factor = torch.as_tensor(n_steps / torch.as_tensor(of, dtype=torch.float64), device=start.device)
    first = (start * factor).round().long().clamp(0, n_steps - 1)
    last = torch.maximum((end * factor).round().long(), first + least).clamp(max=n_steps)
    return torch.minimum(first, last - least), last
