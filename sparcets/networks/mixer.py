"""Mixer: one small network for all features, which tell each other at every step what they saw.

A recurrent generator learns anew for every feature what a change looks like there, and needs many more series for
it. Here all features share the convolutions over time; what they cannot know alone, they hear from others.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
        self.first = nn.Conv2d(n_series, channels, (1, KERNEL), padding=(0, KERNEL // 2))
        self.which = nn.Parameter(0.5 * torch.randn(channels, n_features, 1))  # features are not alike
        self.blocks = nn.ModuleList(
            Exchange(n_features, told, channels, DILATIONS[i % len(DILATIONS)]) for i in range(blocks)
        )

    def forward(self, series: Tensor, told: Tensor) -> Tensor:
        """Return states (batch, channels, features, time) of series (batch, n_series, time, features)."""
        h: Tensor = self.first(series.transpose(2, 3)) + self.which  # (B, C, F, T)
        for block in self.blocks:
            h = block(h, told)
        return h


class Pointwise(nn.Module):
    """A dense layer along the second axis: (batch, inputs, ...) to (batch, outputs, ...).

    As one matrix product per series, so that its answer is the same to the last bit whatever stands beside it in a
    batch; a convolution of width 1 chooses its way by the size of the batch.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs, 1))
        bound = inputs**-0.5
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        """Return what each place makes of its own inputs."""
        places = x.flatten(2)
        if torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]  # the size of the batch stays free
            made = self.weight @ places + self.bias
        else:
            made = torch.baddbmm(self.bias, self.weight.expand(len(x), -1, -1), places)
        return made.reshape(x.shape[0], -1, *x.shape[2:])


class Exchange(nn.Module):
    """Look along time, ask the other features, remember the whole, hear what is asked; and add the outcome."""

    def __init__(self, n_features: int, told: int, channels: int, dilation: int) -> None:
        super().__init__()
        reach = KERNEL // 2 * dilation
        self.around = nn.Conv2d(channels, channels, (1, KERNEL), padding=(0, reach), dilation=(1, dilation))
        self.gather = Pointwise(channels * n_features, 2 * channels)  # what all features say of a step
        self.spread = Pointwise(2 * channels, channels * n_features)  # and what each makes of it
        self.whole = Pointwise(2 * channels, channels)
        self.asked = Pointwise(told, channels)
        self.out = Pointwise(channels, channels)
        nn.init.normal_(self.out.weight, std=0.1 / channels**0.5)  # each block starts as a small correction

    def forward(self, h: Tensor, told: Tensor) -> Tensor:
        """Return states like those that came (batch, channels, features, time)."""
        heard = self.spread(F.relu(self.gather(h.flatten(1, 2)))).reshape(h.shape)
        pooled = self.whole(torch.cat([h.mean(3), h.amax(3)], dim=1)) + self.asked(told[:, :, None])  # (B, C, F)
        changed: Tensor = self.out(F.relu(self.around(h) + heard + pooled[..., None]))
        return h + changed


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
        """Return states (batch, channels, features, time) of series (batch, n_series, time, features)."""
        B, _, T, _ = series.shape
        steps = series.transpose(1, 2).flatten(2)  # (B, T, S * F)
        h = self.backbone(torch.cat([steps, told[:, None].expand(B, T, -1)], dim=2))
        entries: Tensor = self.entries(h).reshape(B, T, self.channels, -1)  # (B, T, C, F)
        return entries.permute(0, 2, 3, 1)
