"""Mixer: one small network for all features, which tell each other at every step what they saw.

A recurrent generator learns anew for every feature what a change looks like there, and needs many more series for
it. Here all features share the convolutions over time; what they cannot know alone, they hear from others.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.networks import fused

KERNEL = 5
DILATIONS = (1, 2, 4, 8)  # of the blocks in turn: together they look 60 steps far; the pooled states see all


class Mixer(nn.Module):
    """Series and what is asked to one vector per entry.

    Parameters
    ----------
    n_series
        Series that come together: the query, perhaps a guide.
    n_features
        Features of each.
    told
        Numbers that say what is asked.
    channels
        Size of the vectors.
    blocks
        How often features look around and exchange what they saw.
    """

    def __init__(self, *, n_series: int, n_features: int, told: int, channels: int, blocks: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(n_series, channels, (KERNEL, 1), padding=(KERNEL // 2, 0))
        self.which = nn.Parameter(0.5 * torch.randn(n_features, channels))  # features are not alike
        self.blocks = nn.ModuleList(
            Exchange(n_features, told, channels, DILATIONS[i % len(DILATIONS)]) for i in range(blocks)
        )

    def forward(self, series: Tensor, told: Tensor) -> Tensor:
        """Return states (batch, time, features, channels) of series (batch, n_series, time, features)."""
        if self._in_one_go(series):
            from sparcets.networks.fused.mixer import mix

            return mix(self, series, told)
        h = _along_time(self.first, series)
        h = h + self.which.to(h.dtype)
        for block in self.blocks:
            h = block(h, told)
        return h

    def _in_one_go(self, series: Tensor) -> bool:
        """Whether kernels of our own do it: on a GPU, in bfloat16, where nobody asks for gradients."""
        kind, channels = series.device.type, self.first.out_channels
        return (
            not torch.is_grad_enabled()
            and (torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.bfloat16)
            and (channels >= 16 and channels & (channels - 1) == 0)
            and fused.available(series.device)
        )


class Exchange(nn.Module):
    """Look along time, ask the other features, remember the whole, hear what is asked; and add the outcome.

    States lie as (batch, time, features, channels) all the way: what all features say of a step stands together, so
    that asking them is one matrix product, and nothing is ever copied into another order.
    """

    def __init__(self, n_features: int, told: int, channels: int, dilation: int) -> None:
        super().__init__()
        reach, steps = KERNEL // 2 * dilation, (KERNEL, 1)
        self.around = nn.Conv2d(channels, channels, steps, padding=(reach, 0), dilation=(dilation, 1), bias=False)
        self.gather = nn.Linear(n_features * channels, 2 * channels)  # what all features say of a step
        self.spread = nn.Linear(2 * channels, n_features * channels, bias=False)  # and what each makes of it
        self.whole = nn.Linear(2 * channels, channels)
        self.asked = nn.Linear(told, channels)
        self.out = nn.Linear(channels, channels, bias=False)
        nn.init.normal_(self.out.weight, std=0.1 / channels**0.5)  # each block starts as a small correction

    def forward(self, h: Tensor, told: Tensor) -> Tensor:
        """Return states like those that came (batch, time, features, channels)."""
        pooled = self.whole(torch.cat([h.mean(1), h.amax(1)], dim=2)) + self.asked(told)[:, None]  # (B, F, C)
        said = F.relu(self.gather(h.flatten(2)))  # (B, T, 2C)
        found = _along_time(self.around, h.permute(0, 3, 1, 2))
        found = _plus(found.flatten(2), said, self.spread).reshape(h.shape)
        found += pooled[:, None]  # in place, as nobody needs it without: moving states about is what takes the time
        return _plus(h, F.relu_(found), self.out)


def _plus(base: Tensor, x: Tensor, layer: nn.Linear) -> Tensor:
    """Return ``base`` plus what a layer without bias makes of ``x``: the sum costs nothing within the product."""
    size = base.shape[-1]
    total = torch.addmm(base.reshape(-1, size), x.reshape(-1, x.shape[-1]), layer.weight.t())
    return total.reshape(base.shape)


def _along_time(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Return (batch, time, features, channels) of (batch, channels, time, features)."""
    seen: Tensor = layer(x.contiguous(memory_format=torch.channels_last))
    return seen.permute(0, 2, 3, 1).contiguous()  # as it lies already, but for a first layer of one channel


class PerStep(nn.Module):
    """A backbone with one vector per step, and a dense layer that makes one per entry of it; same calls as a mixer.

    Parameters
    ----------
    backbone
        (batch, time, inputs) to (batch, time, states).
    states, channels, n_features
        Sizes.
    """

    def __init__(self, backbone: nn.Module, *, states: int, channels: int, n_features: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.entries = nn.Linear(states, channels * n_features)
        self.channels = channels

    def forward(self, series: Tensor, told: Tensor) -> Tensor:
        """Return states (batch, time, features, channels) of series (batch, n_series, time, features)."""
        B, _, T, _ = series.shape
        steps = series.transpose(1, 2).flatten(2)  # (B, T, S * F)
        h = self.backbone(torch.cat([steps, told[:, None].expand(B, T, -1)], dim=2))
        entries: Tensor = self.entries(h).reshape(B, T, -1, self.channels)
        return entries
