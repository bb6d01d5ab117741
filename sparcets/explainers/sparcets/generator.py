"""GatedGenerator: which features change, at which steps, and by how much; for any target class and sparsity weight."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.explainers.sparcets.mixer import Mixer, PerStep, pool_over_time
from sparcets.networks.backbones import build_backbone
from sparcets.networks.sparsity_layer import SparsityLayer

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
        ``"mixer"``, or one of :func:`~sparcets.networks.backbones.build_backbone`.
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
