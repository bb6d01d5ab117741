"""Mixer: a backbone with one state per entry, whose convolutions over time are shared by all features.

A recurrent backbone has separate weights for every feature, and needs more series. Here all features share the
convolutions, and exchange information at every step.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.networks import fused

KERNEL = 5
DILATIONS = (1, 2, 4, 8)  # of the blocks in turn; the pooled states see all steps


class Mixer(nn.Module):
    """From series and a condition to one state vector per entry.

    Parameters
    ----------
    n_series
        Number of input series: the query, and the prototype if there is one.
    n_features
        Features of each.
    condition_size
        Size of the condition (embedded target class and sparsity weight).
    channels
        Size of the state vectors.
    blocks
        Number of blocks.
    """

    def __init__(self, *, n_features: int, condition_size: int, channels: int, blocks: int, n_series: int = 1) -> None:
        super().__init__()
        self.first = nn.Conv2d(n_series, channels, (KERNEL, 1), padding=(KERNEL // 2, 0))
        self.feature_embedding = nn.Parameter(0.5 * torch.randn(n_features, channels))
        self.blocks = nn.ModuleList(
            MixerBlock(n_features, condition_size, channels, DILATIONS[i % len(DILATIONS)]) for i in range(blocks)
        )

    def forward(self, series: Tensor, condition: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return states (batch, time, features, channels) of series (batch, n_series, time, features).

        Beyond the true ``lengths`` (batch,) of padded series, all states are 0, as beyond the end of a series.
        """
        if lengths is None and self._can_fuse(series):
            from sparcets.explainers.sparcets.fused_mixer import mix

            return mix(self, series, condition)
        h = _along_time(self.first, series)
        h = blank_padding(h + self.feature_embedding.to(h.dtype), lengths)
        for block in self.blocks:
            h = blank_padding(block(h, condition, lengths), lengths)
        return h

    def _can_fuse(self, series: Tensor) -> bool:
        """Return whether the Triton kernels apply: on a GPU, in bfloat16, without gradients."""
        kind, channels = series.device.type, self.first.out_channels
        return (
            not torch.is_grad_enabled()
            and (torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind) == torch.bfloat16)
            and (channels >= 16 and channels & (channels - 1) == 0)
            and fused.available(series.device)
        )


class MixerBlock(nn.Module):
    """Residual block: a convolution over time, exchange between features, pooled states and the condition.

    States keep the layout (batch, time, features, channels) throughout, so that the exchange between the features of a
    step is one matrix product and nothing has to be copied into another layout.
    """

    def __init__(self, n_features: int, condition_size: int, channels: int, dilation: int) -> None:
        super().__init__()
        reach, steps = KERNEL // 2 * dilation, (KERNEL, 1)
        self.temporal = nn.Conv2d(channels, channels, steps, padding=(reach, 0), dilation=(dilation, 1), bias=False)
        self.gather = nn.Linear(n_features * channels, 2 * channels)  # all features of a step to one summary
        self.scatter = nn.Linear(2 * channels, n_features * channels, bias=False)  # the summary to every feature
        self.pooled = nn.Linear(2 * channels, channels)
        self.condition = nn.Linear(condition_size, channels)
        self.out = nn.Linear(channels, channels, bias=False)
        nn.init.normal_(self.out.weight, std=0.1 / channels**0.5)  # each block starts as a small correction

    def forward(self, h: Tensor, condition: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return updated states (batch, time, features, channels)."""
        pooled = self.pooled(pool_over_time(h, lengths)) + self.condition(condition)[:, None]  # (B, F, C)
        summary = F.relu(self.gather(h.flatten(2)))  # (B, T, 2C)
        update = _along_time(self.temporal, h.permute(0, 3, 1, 2))
        update = _add_linear(update.flatten(2), summary, self.scatter).reshape(h.shape)
        update += pooled[:, None]  # in place: memory traffic dominates the run time
        return _add_linear(h, F.relu_(update), self.out)


def pool_over_time(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Return mean and largest state over the steps of each series (batch, features, 2 * channels)."""
    if lengths is None:
        return torch.cat([h.mean(1), h.amax(1)], dim=2)
    largest = h.masked_fill(~_mask(h, lengths), -torch.inf).amax(1)
    return torch.cat([h.sum(1) / lengths[:, None, None], largest], dim=2)  # states are 0 where there is padding


def blank_padding(h: Tensor, lengths: Tensor | None) -> Tensor:
    """Set states (batch, time, features, channels) beyond the lengths to zero."""
    return h if lengths is None else h.masked_fill(~_mask(h, lengths), 0.0)


def _mask(h: Tensor, lengths: Tensor) -> Tensor:
    return (torch.arange(h.shape[1], device=h.device) < lengths[:, None])[..., None, None]  # (B, T, 1, 1)


def _add_linear(base: Tensor, x: Tensor, layer: nn.Linear) -> Tensor:
    """Return ``base + layer(x)`` for a layer without bias, as one fused product."""
    size = base.shape[-1]
    total = torch.addmm(base.reshape(-1, size), x.reshape(-1, x.shape[-1]), layer.weight.t())
    return total.reshape(base.shape)


def _along_time(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Return (batch, time, features, channels) of (batch, channels, time, features)."""
    states: Tensor = layer(x.contiguous(memory_format=torch.channels_last))
    return states.permute(0, 2, 3, 1).contiguous()  # a copy only for a first layer with one channel


class PerStep(nn.Module):
    """A backbone with one state per step, and a dense layer that turns it into one per entry; same call as a mixer.

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

    def forward(self, series: Tensor, condition: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return states (batch, time, features, channels) of series (batch, n_series, time, features)."""
        B, _, T, _ = series.shape
        steps = series.transpose(1, 2).flatten(2)  # (B, T, S * F)
        h = self.backbone(torch.cat([steps, condition[:, None].expand(B, T, -1)], dim=2), lengths)
        entries: Tensor = self.entries(h).reshape(B, T, -1, self.channels)
        return blank_padding(entries, lengths)
