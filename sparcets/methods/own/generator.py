"""GatedGenerator: which features change, at which steps, and by how much; for any target class and sparsity weight."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from sparcets.core.settings import ExplainerConfig
from sparcets.training.device import has_triton
from sparcets.training.generator import SparsityLayer, build_backbone
from sparcets.training.networks import blank_padding, inside, pool_over_time

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
            from sparcets.methods.own.fused_mixer import mix

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
            and has_triton(series.device)
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


EMBEDDING = 8  # size of the embedding of the target class
PER_ENTRY = 8  # channels per entry that the states of a recurrent backbone are projected to
FINE_FROM = 4.0  # sparsity weight above which gates may open for short windows: fewer but more fragmented changes
INITIAL_LOGIT = 1.0  # of the gates: gates that start shut learn slowly
TEMPERATURE = 0.5  # of the hard-concrete distribution (Louizos et al. 2018), whose gates can be exactly 0 or 1
LOW, HIGH = -0.1, 1.1  # its sigmoid is stretched to this range and clipped to [0, 1], which gives exact zeros
WINDOW_DIVISOR = 5  # a window has 1/5 of the length of a series
SHORT_WINDOW_DIVISOR = 40  # and 1/40 where few entries may change


class GatedGenerator(nn.Module):
    """Many-to-many: query, target class and sparsity weight to residuals of the mutable features.

    A gate per feature, computed from the states of all steps, decides which features may change at all, so that few
    features change. A gate per entry decides at which steps. Its logits are averaged over neighbouring steps, so that
    whole windows open and shut rather than single points.

    Parameters
    ----------
    n_features
        Features of the query.
    mutable
        Indices of the features it may change; the rest of the residual is exactly 0.
    n_targets
        Number of classes.
    backbone
        ``"mixer"``, or one of :func:`~sparcets.training.generator.build_backbone`.
    hidden, layers
        Its size.
    gate
        ``"window"``: gates per feature and entry; ``"feature"``: the paper's sparsity layer behind gates per feature;
        ``"none"``: the sparsity layer alone.
    """

    mutable: Tensor

    def __init__(
        self,
        *,
        n_features: int,
        mutable: list[int],
        n_targets: int,
        backbone: str,
        hidden: int,
        layers: int,
        gate: str,
    ) -> None:
        super().__init__()
        self.hidden, self.layers = hidden, layers
        self.target_embedding = nn.Embedding(n_targets, EMBEDDING)
        condition_size = EMBEDDING + 1
        self.backbone: nn.Module
        if backbone == "mixer":
            C = hidden
            self.backbone = Mixer(n_features=n_features, condition_size=condition_size, channels=C, blocks=layers)
        else:
            C = PER_ENTRY
            steps = build_backbone(backbone, n_features + condition_size, hidden, layers, dropout=0.0)
            self.backbone = PerStep(steps, states=2 * hidden, channels=C, n_features=n_features)
        self.residual_head: nn.Module = nn.Linear(C, 1) if gate == "window" else SparsityLayer(C, 1)
        self.entry_gate = _initially_open(nn.Linear(C, 1)) if gate == "window" else None
        self.feature_gate = None
        if gate != "none":
            self.feature_gate = nn.Sequential(nn.Linear(2 * C, C), nn.ReLU(), _initially_open(nn.Linear(C, 1)))
        may_change = torch.zeros(n_features)
        may_change[mutable] = 1.0
        self.register_buffer("mutable", may_change)

    def forward(self, x: Tensor, target: Tensor, log_weight: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return residuals (batch, time, features), standardised.

        Parameters
        ----------
        x
            Queries (batch, time, features).
        target
            Target classes (batch,).
        log_weight
            Logarithm of the weight of the sparsity term (batch,).
        lengths
            True lengths (batch,) of padded queries, with zeros as padding; the residuals there mean nothing.
        """
        condition = torch.cat([self.target_embedding(target), log_weight[:, None]], dim=1)
        h = self.backbone(x[:, None], condition, lengths)  # (B, T, F, C)
        out: Tensor = self.residual_head(h)[..., 0].to(x.dtype)
        logits = []
        if self.feature_gate is not None:
            logits.append(self.feature_gate(pool_over_time(h, lengths)).transpose(1, 2))  # (B, 1, F)
        if self.entry_gate is not None:
            logits.append(_smooth_logits(self.entry_gate(h)[..., 0], log_weight, lengths))  # (B, T, F)
        if not logits:
            return out * self.mutable
        summed = sum(logits[1:], logits[0]).to(x.dtype)  # (B, T or 1, F)
        return out * hard_concrete(summed, self.training) * self.mutable


def _smooth_logits(logits: Tensor, log_weight: Tensor, lengths: Tensor | None) -> Tensor:
    """Return logits (batch, time, features) averaged over windows; the larger the sparsity weight, the shorter."""
    fine = torch.sigmoid(4 * (log_weight - math.log(FINE_FROM)))[:, None, None]
    short = window_mean(logits, SHORT_WINDOW_DIVISOR, lengths)
    return torch.lerp(window_mean(logits, lengths=lengths), short, fine.to(logits.dtype))


def _initially_open(layer: nn.Linear) -> nn.Linear:
    nn.init.constant_(layer.bias, INITIAL_LOGIT)
    return layer


def hard_concrete(logits: Tensor, training: bool) -> Tensor:
    """Return gates in [0, 1], shaped as their logits; with noise in training, without afterwards.

    >>> hard_concrete(torch.tensor([-9.0, 0.0, 9.0]), training=False)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return stretch(hard_concrete_noise(logits, torch.rand_like(logits)) if training else torch.sigmoid(logits))


def hard_concrete_noise(logits: Tensor, uniform: Tensor) -> Tensor:
    """Return sigmoids of noisy logits, by noise between 0 and 1 that can be broadcast to them."""
    u = uniform.clamp(1e-6, 1 - 1e-6)
    return torch.sigmoid((torch.log(u) - torch.log1p(-u) + logits) / TEMPERATURE)


def stretch(sigmoids: Tensor) -> Tensor:
    """Return gates in [0, 1] with exact zeros and ones.

    >>> stretch(torch.tensor([0.05, 0.5, 0.95]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return (sigmoids * (HIGH - LOW) + LOW).clamp(0, 1)


def window_mean(values: Tensor, divisor: int = WINDOW_DIVISOR, lengths: Tensor | None = None) -> Tensor:
    """Return values (batch, time, features) averaged over a window around each step, of 1/divisor of the series.

    Of padded series, ``lengths`` are the true lengths (batch,).

    >>> window_mean(torch.tensor([0.0, 0.0, 3.0, 0.0, 0.0]).reshape(1, 5, 1)).flatten()
    tensor([0., 1., 1., 1., 0.])
    """
    if lengths is not None:
        return _window_mean_within(values, divisor, lengths)
    width = max(3, values.shape[1] // divisor) | 1  # odd
    pad = (width // 2, 0)
    return F.avg_pool2d(values[:, None], (width, 1), stride=1, padding=pad, count_include_pad=False)[:, 0]


def _window_mean_within(values: Tensor, divisor: int, lengths: Tensor) -> Tensor:
    """Do the same for padded series, by differences of cumulative sums, since each has a window of its own."""
    reach = ((lengths // divisor).clamp(min=3) // 2)[:, None]  # (B, 1); half of an odd width
    steps = torch.arange(values.shape[1], device=values.device)
    end = lengths[:, None]
    first, last = (steps - reach).clamp(min=0), torch.minimum(steps + reach + 1, end)  # (B, T)
    last = torch.maximum(last, first + 1).clamp(max=values.shape[1])  # windows in the padding mean nothing
    first = torch.minimum(first, last - 1)
    sums = F.pad(values.cumsum(1), (0, 0, 1, 0))  # (B, T + 1, F)
    total = _at(sums, last) - _at(sums, first)
    return total / (last - first)[..., None]


def _at(values: Tensor, steps: Tensor) -> Tensor:
    """Return values (batch, time, features) at some steps (batch, steps)."""
    return values.gather(1, steps[..., None].expand(-1, -1, values.shape[2]))


CRITIC_KERNEL = 5
SLOPE = 0.2


class Critic(nn.Module):
    """Many-to-one: dilated convolutions, mean over time, and a projection on the class, to one logit.

    The projection is that of Miyato and Koyama (2018).

    Parameters
    ----------
    n_features
        Features of the series.
    n_targets
        Number of classes.
    hidden
        Channels.
    layers
        Number of convolutions; the dilation doubles from one to the next.
    """

    def __init__(self, *, n_features: int, n_targets: int, hidden: int, layers: int) -> None:
        super().__init__()
        sizes = [n_features] + [hidden] * layers
        self.layers = nn.ModuleList(
            spectral_norm(nn.Conv1d(a, b, CRITIC_KERNEL, padding=(CRITIC_KERNEL // 2) * 2**i, dilation=2**i))
            for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
        )
        self.head = spectral_norm(nn.Linear(hidden, 1))
        self.class_embedding = spectral_norm(nn.Embedding(n_targets, hidden))

    def forward(self, x: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch,) of "real" for series (batch, time, features) and their classes (batch,).

        Beyond the true ``lengths`` (batch,) of padded series, all states are 0, as beyond the end of a series.
        """
        mask = inside(lengths, x)
        h = blank_padding(x, lengths).transpose(1, 2)  # (B, F, T)
        for i, layer in enumerate(self.layers):
            y = F.leaky_relu(layer(h), SLOPE)
            y = y if mask is None else y.masked_fill(~mask.transpose(1, 2), 0.0)
            h = y if i == 0 else h + y  # (B, H, T)
        pooled = h.mean(2) if lengths is None else h.sum(2) / lengths[:, None]  # (B, H)
        logit: Tensor = self.head(pooled)[:, 0] + (self.class_embedding(target) * pooled).sum(1)
        return logit


MIN_BATCHES = 25  # batches of an epoch, at least
MANY_SERIES = 1000  # with fewer, a larger network and a longer training gain nothing
MANY_FEATURES = 32  # with more, a small network has enough states


@dataclass(frozen=True)
class ModelSizes:
    """Sizes of the networks and lengths of their trainings.

    Attributes
    ----------
    hidden, layers
        Of the generator.
    batch_size, steps
        Of its training.
    """

    hidden: int
    layers: int
    batch_size: int
    steps: int


def default_sizes(n_series: int, n_features: int, *, on_gpu: bool) -> ModelSizes:
    """Return the sizes for so much data.

    A GPU trains on four times as many queries per step and, for few features, a larger network, in less time than a
    CPU core needs for a small one.

    Examples
    --------
    >>> [default_sizes(n, 12, on_gpu=False).steps for n in (40, 1_580, 14_080)]
    [510, 895, 1100]
    >>> default_sizes(14_080, 12, on_gpu=True)
    ModelSizes(hidden=32, layers=6, batch_size=128, steps=1800)
    """
    if on_gpu and n_series >= MANY_SERIES:
        hidden, layers = (16, 4) if n_features > MANY_FEATURES else (32, 6)
        return ModelSizes(hidden, layers, batch_size=128, steps=1800)
    steps = min(1100, 500 + n_series // 4)
    return ModelSizes(hidden=16, layers=4, batch_size=32, steps=steps)


def configured_sizes(config: ExplainerConfig, n_series: int, n_features: int, *, on_gpu: bool) -> ModelSizes:
    """Return the sizes of the settings, and :func:`default_sizes` for those that are None there."""
    default = default_sizes(n_series, n_features, on_gpu=on_gpu)
    return ModelSizes(
        hidden=config.generator.hidden or default.hidden,
        layers=config.generator.layers or default.layers,
        batch_size=config.train.batch_size or default.batch_size,
        steps=default.steps,
    )


NEGLIGIBLE = 0.13  # standard deviations; a window whose mean change is smaller is not reported


def drop_negligible(delta: Tensor) -> Tensor:
    """Return standardised residuals (batch, time, features) with exact zeros where the change is negligible.

    A gate opens for a whole window, and where no change is needed the generator's residual is next to nothing.

    >>> delta = torch.tensor([0.01, -0.02, 0.01, 0.5, 0.9, 0.6, 0.0, 0.02]).reshape(1, 8, 1)
    >>> drop_negligible(delta).flatten()
    tensor([0.0000, 0.0000, 0.0100, 0.5000, 0.9000, 0.6000, 0.0000, 0.0000])
    """
    size = window_mean(delta.abs())  # over a window, so that a change that crosses zero stays in one piece
    return torch.where(size < NEGLIGIBLE, 0.0, delta)
