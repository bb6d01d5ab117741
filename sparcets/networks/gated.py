"""GatedGenerator: which features at all, when, and by how much; for any target class and any wish for sparsity."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sparcets.networks.backbones import build_backbone
from sparcets.networks.gates import SHORT, hard_concrete, openness, over_stretches
from sparcets.networks.mixer import Mixer, PerStep
from sparcets.networks.sparsity_layer import SparsityLayer

EMBEDDING = 8  # numbers that tell the generator which class is wanted
PER_ENTRY = 8  # numbers per entry that a recurrent backbone is read out to
FINER = 4.0  # strength from which on gates may open for short stretches: fewer entries can be had, in more pieces
OPEN = 1.0  # logits of the gates at first: what starts shut learns slowly


class GatedGenerator(nn.Module):
    """Many-to-many: a query, the wanted class and a strength go in, residuals of the mutable features come out.

    A gate per feature, from the states of all steps, decides which features may change at all: that makes the answers
    few in features. A gate per entry decides when. Its logits are averaged over neighbouring steps, so that it opens
    and shuts for whole stretches: a person reads "elbow, 0.4 to 0.7 s", not eighty single points. What passes is a
    residual of the generator's own; or, where real series guide the way, the step from the query towards one.

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
        ``"stretch"``: gates per feature and entry; ``"feature"``: the paper's sparsity layer behind gates per feature;
        ``"none"``: the sparsity layer alone.
    guided
        Whether it is given a real series of the wanted class, and only learns where to follow it.
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
        guided: bool,
    ) -> None:
        super().__init__()
        self.guided, self.hidden, self.layers = guided, hidden, layers
        self.wanted = nn.Embedding(n_targets, EMBEDDING)
        n_series, told = 2 if guided else 1, EMBEDDING + 1
        self.states: nn.Module
        if backbone == "mixer":
            C = hidden
            self.states = Mixer(n_series=n_series, n_features=n_features, told=told, channels=C, blocks=layers)
        else:
            C = PER_ENTRY
            steps = build_backbone(backbone, n_series * n_features + told, hidden, layers, dropout=0.0)
            self.states = PerStep(steps, states=2 * hidden, channels=C, n_features=n_features)
        self.amount: nn.Module | None = None
        if not guided:
            self.amount = nn.Linear(C, 1) if gate == "stretch" else SparsityLayer(C, 1)
        self.entries = _opening(nn.Linear(C, 1)) if guided or gate == "stretch" else None
        self.features = None
        if gate != "none":
            self.features = nn.Sequential(nn.Linear(2 * C, C), nn.ReLU(), _opening(nn.Linear(C, 1)))
        may_change = torch.zeros(n_features)
        may_change[mutable] = 1.0
        self.register_buffer("mutable", may_change)

    def forward(self, x: Tensor, target: Tensor, strength: Tensor, guide: Tensor | None = None) -> Tensor:
        """Return residuals (batch, time, features), standardised; see :meth:`with_openness`."""
        return self.with_openness(x, target, strength, guide)[0]

    def with_openness(
        self, x: Tensor, target: Tensor, strength: Tensor, guide: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None]:
        """Return residuals (batch, time, features), standardised, and how open their gates are, in shares of 1.

        Parameters
        ----------
        x
            Queries (batch, time, features).
        target
            Wanted classes (batch,).
        strength
            Logarithm of how much more than usual a changed entry costs (batch,).
        guide
            Real series of the wanted classes (batch, time, features), where it was built for them.
        """
        series = [x, guide] if guide is not None and self.guided else [x]
        told = torch.cat([self.wanted(target), strength[:, None]], dim=1)
        h = self.states(torch.stack(series, dim=1), told)  # (B, T, F, C)
        out = self._amount(h, x, guide)
        logits = []
        if self.features is not None:
            logits.append(self.features(torch.cat([h.mean(1), h.amax(1)], dim=2)).transpose(1, 2))  # (B, 1, F)
        if self.entries is not None:
            logits.append(_grained(self.entries(h)[..., 0], strength))  # (B, T, F)
        if not logits:
            return out * self.mutable, None
        summed = sum(logits[1:], logits[0]).to(x.dtype)  # (B, T or 1, F)
        return out * hard_concrete(summed, self.training) * self.mutable, openness(summed) * self.mutable

    def _amount(self, h: Tensor, x: Tensor, guide: Tensor | None) -> Tensor:
        """Return how far each entry goes if its gate is open (batch, time, features)."""
        if self.amount is None:
            assert guide is not None
            return guide - x
        amount: Tensor = self.amount(h)[..., 0].to(x.dtype)
        return amount


def _grained(logits: Tensor, strength: Tensor) -> Tensor:
    """Return logits (batch, time, features) averaged over long stretches; the dearer an entry is, over shorter ones."""
    fine = torch.sigmoid(4 * (strength - math.log(FINER)))[:, None, None]
    return torch.lerp(over_stretches(logits), over_stretches(logits, SHORT), fine.to(logits.dtype))


def _opening(layer: nn.Linear) -> nn.Linear:
    nn.init.constant_(layer.bias, OPEN)
    return layer
