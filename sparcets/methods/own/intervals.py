"""Interval statistics: mean, spread and slope of random intervals, by products with weights."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray

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


PARTS = (1, 2, 4, 8)  # a series is cut into so many parts, and again shifted by half a part
SHORTEST_PART = 3  # steps
FEWEST = 3  # steps of a series that has second differences
VALUES = 6  # sorted values kept per interval, at most
MAX_FEATURES = 8000
PLACE = 2**29 - 1  # the low bits of a double, which are zero if it was a single
# Intervals of equal length are sorted together: the places of their values (intervals * channels, length) in the
# flattened views, and the ranks to keep, for each length; and the order of the columns by interval, None if they are
# in that order.
Groups = list[tuple[Tensor, Tensor]]
Layout = tuple[Groups, Tensor | None]


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
    n_values
        Number of quantiles of each interval (intervals,); by its length if None.
    """

    view: Tensor
    start: Tensor
    end: Tensor
    channels: Tensor

    def __init__(
        self, *, view: Tensor, start: Tensor, end: Tensor, channels: Tensor, n_values: IntArray | None = None
    ) -> None:
        super().__init__()
        for name, tensor in {"view": view, "start": start, "end": end, "channels": channels}.items():
            self.register_buffer(name, tensor)
        self.n_views = int(view.max()) + 1
        self.n_values = _number_of_values((end - start).cpu().numpy()) if n_values is None else n_values
        self._laid_out: tuple[tuple[int, torch.device], Layout] | None = None

    @classmethod
    def draw(
        cls,
        X: Tensor,
        seed: int,
        *,
        scale: FloatArray | None = None,
        sharp: bool = False,
        lengths: IntArray | None = None,
    ) -> IntervalQuantiles:
        """Lay out the intervals; ``X`` (batch, time, features) are training series.

        With many channels, each interval is taken of a random subset of them, which bounds the number of features.
        The sharp ones include the spectrum; ``lengths`` make no difference.

        Examples
        --------
        >>> X = torch.randn(5, 40, 2, generator=torch.Generator().manual_seed(0))
        >>> IntervalQuantiles.draw(X, seed=0)(X).shape
        torch.Size([5, 534])
        """
        rng = generator(seed, "interval quantiles")
        T, n_features = X.shape[1:]
        # Parts of one length in all views, so that few lengths have to be sorted; the spectrum is half as long.
        shortest = max(1, T - 2)
        found = [(view, *span) for view, n in enumerate([T, T - 1, T - 2]) if n > 0 for span in _spans(n, shortest)]
        if sharp:
            found += [(3, *span) for span in _spans(T // 2 + 1, (shortest + 1) // 2)]
        found.sort(key=lambda interval: interval[2] - interval[1])  # in the order of the groups, see _layout
        n_values = int(_number_of_values(np.array([end - start for _, start, end in found])).sum())
        n_channels = max(1, min(n_features, MAX_FEATURES // max(1, n_values)))
        channels = [np.sort(rng.permutation(n_features)[:n_channels]) for _ in found]
        view, start, end = (torch.tensor(column) for column in zip(*found, strict=True))
        return cls(view=view, start=start, end=end, channels=torch.as_tensor(np.array(channels))).to(X.device)

    def at_length(self, n_steps: int, of: int) -> IntervalQuantiles | nn.Sequential:
        """Return the quantiles of the same parts of shorter series, of ``n_steps`` instead of ``of`` steps."""
        if n_steps < FEWEST:
            return nn.Sequential(Prolonged(FEWEST), self.at_length(FEWEST, max(of, FEWEST)))
        start, end = torch.empty_like(self.start), torch.empty_like(self.end)
        for view, (new, old) in enumerate(zip(_view_lengths(n_steps), _view_lengths(of), strict=True)):
            own = self.view == view
            start[own], end[own] = stretch(self.start[own], self.end[own], new, old, shortest=SHORTEST_PART)
        return IntervalQuantiles(view=self.view, start=start, end=end, channels=self.channels, n_values=self.n_values)

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
        values = torch.cat(views, dim=2).flatten(1)
        groups, columns = self._layout(x.shape[1], x.device)
        if not (torch.is_grad_enabled() and values.requires_grad):
            found = torch.cat(_kept(values.detach(), groups), dim=1)
            return found if columns is None else found[:, columns]
        # A sorted value is one of the values: sorting finds its place, and its gradient needs no more than that. The
        # place travels in the low bits of the value, because sorting is several times faster than finding an order.
        with torch.no_grad():
            number = torch.arange(values.numel(), device=x.device).view_as(values)
            marked = values.float().double().view(torch.int64) | number
            kept = _kept(marked.view(torch.float64), groups)
            places = torch.cat(kept, dim=1).view(torch.int64) & PLACE
        flat = values.flatten()
        if x.is_cuda:
            # A value occurs once in each group, so that no two threads add to one gradient in an order of their own.
            parts = torch.split(places, [part.shape[1] for part in kept], dim=1)
            found = torch.cat([flat.index_select(0, part.flatten()).view_as(part) for part in parts], dim=1)
            return found if columns is None else found.index_select(1, columns)
        if columns is not None:
            places = places[:, columns]
        return flat.index_select(0, places.flatten()).view_as(places)

    def _layout(self, T: int, device: torch.device) -> Layout:
        """Return where the values of the intervals lie, kept from pass to pass."""
        kept = self._laid_out  # another thread may replace it meanwhile
        if kept is None or kept[0] != (T, device):
            lengths = np.array(_view_lengths(T)[: self.n_views])
            offset = np.concatenate([[0], np.cumsum(lengths)])
            start = self.start.cpu().numpy() + offset[self.view.cpu().numpy()]
            length, channels = (self.end - self.start).cpu().numpy(), self.channels.cpu().numpy()
            groups, interval = [], []
            for n, k, own in self._groups_of_equals(start, length, disjoint=device.type == "cuda"):
                first = (channels[own] * offset[-1] + start[own, None]).reshape(-1, 1)
                rank = ((np.arange(k) + 0.5) / k * (n - 1)).round().astype(np.int64)
                groups.append((torch.as_tensor(first + np.arange(n)).to(device), torch.as_tensor(rank).to(device)))
                interval.append(np.repeat(own, channels.shape[1] * k))
            columns = np.argsort(np.concatenate(interval), kind="stable")
            in_order = bool((np.diff(columns) == 1).all())
            kept = (T, device), (groups, None if in_order else torch.as_tensor(columns).to(device))
            self._laid_out = kept
        return kept[1]

    def _groups_of_equals(
        self, start: IntArray, length: IntArray, *, disjoint: bool
    ) -> Iterator[tuple[int, int, IntArray]]:
        """Yield each length and number of quantiles, and the intervals that have them; see :func:`_groups`."""
        for n, own in _groups(start, length, disjoint=disjoint):
            for k in np.unique(self.n_values[own]):
                yield n, int(k), own[self.n_values[own] == k]


class Prolonged(nn.Module):
    """Series of few steps (batch, time, features) as if their last step went on, until there are ``n_steps``."""

    def __init__(self, n_steps: int) -> None:
        super().__init__()
        self.n_steps = n_steps

    def forward(self, x: Tensor) -> Tensor:
        """Return series (batch, n_steps, features)."""
        return torch.cat([x, x[:, -1:].expand(-1, self.n_steps - x.shape[1], -1)], dim=1)


def _view_lengths(n_steps: int) -> list[int]:
    """Return the lengths of a series, its first and second differences, and its spectrum."""
    return [n_steps, max(0, n_steps - 1), max(0, n_steps - 2), n_steps // 2 + 1]


def _number_of_values(length: IntArray) -> IntArray:
    """Return how many quantiles are taken of intervals by their lengths (intervals,)."""
    return np.asarray(np.minimum(VALUES, np.maximum(1, length // 2)), dtype=np.int64)


def _kept(values: Tensor, groups: Groups) -> list[Tensor]:
    """Return the values of the kept ranks of each group of intervals (batch, intervals * channels * ranks)."""
    if values.is_cuda:
        return [values[:, spans].sort(dim=2).values[:, :, ranks].flatten(1) for spans, ranks in groups]
    own = values.numpy()  # NumPy takes and sorts short rows several times faster
    return [
        torch.from_numpy(np.sort(own.take(spans.numpy(), axis=1), axis=2).take(ranks.numpy(), axis=2)).flatten(1)
        for spans, ranks in groups
    ]


def _groups(start: IntArray, length: IntArray, *, disjoint: bool) -> Iterator[tuple[int, IntArray]]:
    """Yield each length and the intervals of it; if ``disjoint``, in groups that do not overlap.

    >>> start, length = np.array([0, 4, 2, 0]), np.array([4, 4, 4, 8])
    >>> [(n, own.tolist()) for n, own in _groups(start, length, disjoint=True)]
    [(4, [0, 1]), (4, [2]), (8, [3])]
    """
    for n in np.unique(length):
        left = np.flatnonzero(length == n)
        while len(left):
            taken: list[int] = []
            for i in left[np.argsort(start[left], kind="stable")]:
                if not disjoint or not taken or start[i] >= start[taken[-1]] + n:
                    taken.append(int(i))
            yield int(n), np.sort(taken)
            left = np.setdiff1d(left, taken)


def _spans(length: int, longest: int) -> list[tuple[int, int]]:
    """Return parts of a series of some length, each overlapping half of the next; the first is ``longest`` steps.

    >>> _spans(8, 8)
    [(0, 8), (0, 4), (2, 6), (4, 8)]
    >>> _spans(9, 7)
    [(1, 8), (0, 4), (2, 6), (5, 9)]
    """
    spans: list[tuple[int, int]] = []
    for parts in PARTS:
        size, number = -(-longest // parts), 2 * parts - 1
        if size < min(SHORTEST_PART, longest):
            break
        starts = (length - size) * (np.arange(number) + 0.5 * (number == 1)) / max(1, number - 1)
        spans += [(start, start + size) for start in starts.astype(int).tolist()]
    return spans
