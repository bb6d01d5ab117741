"""Interval quantiles: sorted values of parts of a series, of its differences and of its spectrum, as in QUANT."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.seeding import generator

PARTS = (1, 2, 4, 8)  # a series is cut into so many parts, and again shifted by half a part
SHORTEST = 3  # steps
VALUES = 6  # sorted values kept per interval, at most
MAX_FEATURES = 8000


class IntervalQuantiles(nn.Module):
    """Series (batch, time, features) to evenly spaced quantiles of intervals.

    Parameters
    ----------
    view
        Of each interval (intervals,): 0 for the series, 1 and 2 for its first and second differences, 3 for the
        magnitudes of its spectrum.
    start, end
        Steps of each interval (intervals,), ``end`` exclusive.
    channels
        Channels that each interval is taken of (intervals, channels).
    """

    view: Tensor
    start: Tensor
    end: Tensor
    channels: Tensor

    def __init__(self, *, view: Tensor, start: Tensor, end: Tensor, channels: Tensor) -> None:
        super().__init__()
        for name, tensor in {"view": view, "start": start, "end": end, "channels": channels}.items():
            self.register_buffer(name, tensor)
        self.intervals = list(zip(view.tolist(), start.tolist(), end.tolist(), strict=True))
        self.n_views = int(view.max()) + 1
        for i, (_, first, last) in enumerate(self.intervals):
            length = last - first
            k = min(VALUES, max(1, length // 2))
            kept = ((np.arange(k) + 0.5) / k * (length - 1)).round().astype(np.int64)
            self.register_buffer(f"kept_{i}", torch.as_tensor(kept), persistent=False)

    @classmethod
    def draw(cls, X: Tensor, seed: int, *, spectrum: bool = False) -> IntervalQuantiles:
        """Lay out the intervals; ``X`` (batch, time, features) are training series.

        With many channels, each interval is taken of a random subset of them, which bounds the number of features.

        Examples
        --------
        >>> X = torch.randn(5, 40, 2, generator=torch.Generator().manual_seed(0))
        >>> IntervalQuantiles.draw(X, seed=0)(X).shape
        torch.Size([5, 522])
        """
        rng = generator(seed, "interval quantiles")
        T, n_features = X.shape[1:]
        lengths = [T, T - 1, T - 2] + ([T // 2 + 1] if spectrum else [])
        found = [(view, *span) for view, length in enumerate(lengths) if length > 0 for span in _spans(length)]
        n_values = sum(min(VALUES, max(1, (end - start) // 2)) for _, start, end in found)
        n_channels = max(1, min(n_features, MAX_FEATURES // max(1, n_values)))
        channels = [np.sort(rng.permutation(n_features)[:n_channels]) for _ in found]
        view, start, end = (torch.tensor(column) for column in zip(*found, strict=True))
        return cls(view=view, start=start, end=end, channels=torch.as_tensor(np.array(channels))).to(X.device)

    def forward(self, x: Tensor) -> Tensor:
        """Return features (batch, values)."""
        series = x.transpose(1, 2).contiguous()  # (B, F, T)
        views = [series]
        if self.n_views > 1:
            views.append(views[-1].diff(dim=2))
        if self.n_views > 2:
            views.append(views[-1].diff(dim=2))
        if self.n_views > 3:
            views.append(torch.fft.rfft(series, dim=2, norm="ortho").abs())
        every = self.channels.shape[1] == x.shape[2]
        values = []
        for i, (view, start, end) in enumerate(self.intervals):
            part = views[view] if every else views[view][:, self.channels[i]]
            ordered = part[:, :, start:end].sort(dim=2).values
            values.append(ordered[:, :, self.get_buffer(f"kept_{i}")].flatten(1))
        return torch.cat(values, dim=1)


def _spans(length: int) -> list[tuple[int, int]]:
    """Return the parts of a series of some length, and the same shifted by half a part.

    >>> _spans(8)
    [(0, 8), (0, 4), (4, 8), (2, 6)]
    """
    spans: list[tuple[int, int]] = []
    for parts in PARTS:
        edges = np.linspace(0, length, parts + 1).round().astype(int)
        middles = (edges[:-1] + edges[1:]) // 2
        spans += [*zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
        spans += [*zip(middles[:-1].tolist(), middles[1:].tolist(), strict=True)]
    long_enough = [span for span in spans if span[1] - span[0] >= min(SHORTEST, max(1, length))]
    return long_enough or [(0, length)]
