"""GatedGenerator: which features change, at which steps, and by how much; for any target class and sparsity weight.

It proposes starts of the search, see :mod:`~sparcets.methods.own.proposals`. The critic it is trained against is here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from sparcets.training.device import seeded, single_precision

KERNEL = 5
HIDDEN, LAYERS = 16, 4  # size of the states, and number of blocks
DILATIONS = (1, 2, 4, 8)  # of the blocks in turn; the pooled states see all steps
EMBEDDING = 8  # size of the embedding of the target class


class MixerBlock(nn.Module):
    """Residual block: a convolution over time, exchange between features, pooled states and the condition.

    States keep the layout (batch, time, features, channels) throughout, so that the exchange between the features of a
    step is one matrix product and nothing has to be copied into another layout.
    """

    def __init__(self, n_features: int, channels: int, dilation: int) -> None:
        super().__init__()
        reach, steps = KERNEL // 2 * dilation, (KERNEL, 1)
        self.temporal = nn.Conv2d(channels, channels, steps, padding=(reach, 0), dilation=(dilation, 1), bias=False)
        self.gather = nn.Linear(n_features * channels, 2 * channels)  # all features of a step to one summary
        self.scatter = nn.Linear(2 * channels, n_features * channels, bias=False)  # the summary to every feature
        self.pooled = nn.Linear(2 * channels, channels)
        self.condition = nn.Linear(EMBEDDING + 1, channels)
        self.out = nn.Linear(channels, channels, bias=False)
        nn.init.normal_(self.out.weight, std=0.1 / channels**0.5)  # each block starts as a small correction

    def forward(self, h: Tensor, condition: Tensor) -> Tensor:
        """Return updated states (batch, time, features, channels)."""
        pooled = self.pooled(_pool_over_time(h)) + self.condition(condition)[:, None]  # (B, F, C)
        summary = F.relu(self.gather(h.flatten(2)))  # (B, T, 2C)
        update = _along_time(self.temporal, h.permute(0, 3, 1, 2)) + self.scatter(summary).reshape(h.shape)
        states: Tensor = h + self.out(F.relu(update + pooled[:, None]))
        return states


def _along_time(layer: nn.Conv2d, x: Tensor) -> Tensor:
    """Return (batch, time, features, channels) of (batch, channels, time, features)."""
    states: Tensor = layer(x.contiguous(memory_format=torch.channels_last))
    return states.permute(0, 2, 3, 1).contiguous()  # a copy only for a first layer with one channel


def _pool_over_time(h: Tensor) -> Tensor:
    """Return mean and largest state over the steps (batch, features, 2 * channels)."""
    return torch.cat([h.mean(1), h.amax(1)], dim=2)


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
    hidden, layers
        Size of the states, and number of blocks.
    """

    mutable: Tensor

    def __init__(
        self, *, n_features: int, mutable: Sequence[int], n_targets: int, hidden: int = HIDDEN, layers: int = LAYERS
    ) -> None:
        super().__init__()
        self.target_embedding = nn.Embedding(n_targets, EMBEDDING)
        self.first = nn.Conv2d(1, hidden, (KERNEL, 1), padding=(KERNEL // 2, 0))
        self.feature_embedding = nn.Parameter(0.5 * torch.randn(n_features, hidden))
        self.blocks = nn.ModuleList(
            MixerBlock(n_features, hidden, DILATIONS[i % len(DILATIONS)]) for i in range(layers)
        )
        self.residual_head = nn.Linear(hidden, 1)
        self.entry_gate = _initially_open(nn.Linear(hidden, 1))
        self.feature_gate = nn.Sequential(
            nn.Linear(2 * hidden, hidden), nn.ReLU(), _initially_open(nn.Linear(hidden, 1))
        )
        may_change = torch.zeros(n_features)
        may_change[list(mutable)] = 1.0
        self.register_buffer("mutable", may_change)

    @classmethod
    @single_precision()
    def from_weights(cls, weights: Mapping[str, Tensor]) -> GatedGenerator:
        """Return the generator of these weights, whose shapes are those of the network."""
        n_features, hidden = weights["feature_embedding"].shape
        n_targets, layers = len(weights["target_embedding.weight"]), sum(".temporal." in name for name in weights)
        with seeded(0, torch.device("cpu")):  # nothing is drawn from the user's random numbers
            generator = cls(n_features=n_features, mutable=(), n_targets=n_targets, hidden=hidden, layers=layers)
        generator.load_state_dict(dict(weights))
        return generator.eval().requires_grad_(False)

    def forward(self, x: Tensor, target: Tensor, log_weight: Tensor) -> Tensor:
        """Return residuals (batch, time, features), standardised, of queries towards their target classes (batch,).

        ``log_weight`` is the logarithm of the weight of the sparsity term (batch,).
        """
        condition = torch.cat([self.target_embedding(target), log_weight[:, None]], dim=1)
        h = _along_time(self.first, x[:, None]) + self.feature_embedding  # (B, T, F, C)
        for block in self.blocks:
            h = block(h, condition)
        of_features = self.feature_gate(_pool_over_time(h)).transpose(1, 2)  # (B, 1, F)
        of_entries = _smooth_logits(self.entry_gate(h)[..., 0], log_weight)  # (B, T, F)
        residual: Tensor = self.residual_head(h)[..., 0]
        return residual * hard_concrete(of_features + of_entries, self.training) * self.mutable


def _smooth_logits(logits: Tensor, log_weight: Tensor) -> Tensor:
    """Return logits (batch, time, features) averaged over windows; the larger the sparsity weight, the shorter."""
    fine = torch.sigmoid(4 * (log_weight - math.log(FINE_FROM)))[:, None, None]
    return torch.lerp(window_mean(logits), window_mean(logits, SHORT_WINDOW_DIVISOR), fine)


def _initially_open(layer: nn.Linear) -> nn.Linear:
    nn.init.constant_(layer.bias, INITIAL_LOGIT)
    return layer


def hard_concrete(logits: Tensor, training: bool) -> Tensor:
    """Return gates in [0, 1], shaped as their logits; with noise in training, without afterwards.

    >>> hard_concrete(torch.tensor([-9.0, 0.0, 9.0]), training=False)
    tensor([0.0000, 0.5000, 1.0000])
    """
    if training:
        u = torch.rand_like(logits).clamp(1e-6, 1 - 1e-6)
        logits = (torch.log(u) - torch.log1p(-u) + logits) / TEMPERATURE
    return (torch.sigmoid(logits) * (HIGH - LOW) + LOW).clamp(0, 1)


def window_mean(values: Tensor, divisor: int = WINDOW_DIVISOR) -> Tensor:
    """Return values (batch, time, features) averaged over a window around each step, of 1/divisor of the series.

    >>> window_mean(torch.tensor([0.0, 0.0, 3.0, 0.0, 0.0]).reshape(1, 5, 1)).flatten()
    tensor([0., 1., 1., 1., 0.])
    """
    width = max(3, values.shape[1] // divisor) | 1  # odd
    pad = (width // 2, 0)
    return F.avg_pool2d(values[:, None], (width, 1), stride=1, padding=pad, count_include_pad=False)[:, 0]


NEGLIGIBLE = 0.13  # standard deviations; a window whose mean change is smaller is not proposed


def drop_negligible(delta: Tensor) -> Tensor:
    """Return standardised residuals (batch, time, features) with exact zeros where the change is negligible.

    A gate opens for a whole window, and where no change is needed the generator's residual is next to nothing.

    >>> delta = torch.tensor([0.01, -0.02, 0.01, 0.5, 0.9, 0.6, 0.0, 0.02]).reshape(1, 8, 1)
    >>> drop_negligible(delta).flatten()
    tensor([0.0000, 0.0000, 0.0100, 0.5000, 0.9000, 0.6000, 0.0000, 0.0000])
    """
    size = window_mean(delta.abs())  # over a window, so that a change that crosses zero stays in one piece
    return torch.where(size < NEGLIGIBLE, 0.0, delta)


CRITIC_HIDDEN, CRITIC_LAYERS, SLOPE = 64, 3, 0.2


class Critic(nn.Module):
    """Many-to-one: dilated convolutions, mean over time, and a projection on the class, to one logit.

    The dilation doubles from one convolution to the next. The projection is that of Miyato and Koyama (2018).
    """

    def __init__(self, *, n_features: int, n_targets: int) -> None:
        super().__init__()
        hidden = CRITIC_HIDDEN
        self.layers = nn.ModuleList(
            spectral_norm(
                nn.Conv1d(hidden if i else n_features, hidden, KERNEL, padding=KERNEL // 2 * 2**i, dilation=2**i)
            )
            for i in range(CRITIC_LAYERS)
        )
        self.head = spectral_norm(nn.Linear(hidden, 1))
        self.class_embedding = spectral_norm(nn.Embedding(n_targets, hidden))

    def forward(self, x: Tensor, target: Tensor, lengths: None = None) -> Tensor:
        """Return logits (batch,) of "real" for series (batch, time, features) and their classes (batch,)."""
        h = x.transpose(1, 2)  # (B, F, T)
        for i, layer in enumerate(self.layers):
            y = F.leaky_relu(layer(h), SLOPE)
            h = y if i == 0 else h + y  # (B, H, T)
        pooled = h.mean(2)  # (B, H)
        logit: Tensor = self.head(pooled)[:, 0] + (self.class_embedding(target) * pooled).sum(1)
        return logit
