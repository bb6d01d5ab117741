"""GatedGenerator: which features at all, where, and by how much; for any target class and any wish for sparsity."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparcets.networks.backbones import build_backbone
from sparcets.networks.gates import hard_concrete
from sparcets.networks.sparsity_layer import SparsityLayer

EMBEDDING = 8  # numbers that tell the generator which class is wanted
OPEN = 1.0  # logits of the gates at first: what starts shut learns slowly


class GatedGenerator(nn.Module):
    """Many-to-many: a query, the wanted class and a strength go in, residuals of the mutable features come out.

    A gate per feature, from the states of all steps, decides which features may change at all; that is what makes the
    answers few in features. What passes it is a residual through the paper's sparsity layer; or a plain one behind a
    gate per entry, which makes fewer and longer stretches; or, where real series guide the way, the step from the query
    towards a real series of the wanted class, behind a gate per entry.

    Parameters
    ----------
    n_features
        Features of the query.
    mutable
        Indices of the features it may change; the rest of the residual is exactly 0.
    n_targets
        Number of classes.
    backbone, hidden, layers
        See :func:`~sparcets.networks.backbones.build_backbone`.
    gate
        ``"none"``: the sparsity layer alone; ``"feature"``: behind a gate per feature; ``"entry"``: a plain residual
        behind gates per feature and entry.
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
        outputs = len(mutable)
        self.wanted = nn.Embedding(n_targets, EMBEDDING)
        inputs = n_features * (2 if guided else 1) + EMBEDDING + 1
        self.backbone = build_backbone(backbone, inputs, hidden, layers, dropout=0.0)
        self.guided = guided
        self.residual: nn.Module | None = None
        if not guided:
            self.residual = nn.Linear(2 * hidden, outputs) if gate == "entry" else SparsityLayer(2 * hidden, outputs)
        self.entries = nn.Linear(2 * hidden, outputs) if guided or gate == "entry" else None
        self.features = None
        if gate != "none":
            last = nn.Linear(2 * hidden, outputs)
            nn.init.constant_(last.bias, OPEN)
            self.features = nn.Sequential(nn.Linear(4 * hidden, 2 * hidden), nn.ReLU(), last)
        if self.entries is not None:
            nn.init.constant_(self.entries.bias, OPEN)
        self.register_buffer("mutable", torch.tensor(mutable))

    def forward(self, x: Tensor, target: Tensor, strength: Tensor, guide: Tensor | None = None) -> Tensor:
        """Return residuals (batch, time, features), standardised.

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
        B, T, _ = x.shape
        told = [self.wanted(target)[:, None].expand(B, T, EMBEDDING), strength[:, None, None].expand(B, T, 1)]
        series = [x, guide] if guide is not None and self.guided else [x]
        h = self.backbone(torch.cat([*series, *told], dim=2))  # (B, T, 2H)
        if self.residual is not None:
            out = self.residual(h)  # (B, T, M)
        else:
            assert guide is not None
            out = (guide - x).index_select(2, self.mutable)
        logits = []
        if self.features is not None:
            logits.append(self.features(torch.cat([h.mean(1), h.amax(1)], dim=1))[:, None])  # (B, 1, M)
        if self.entries is not None:
            logits.append(self.entries(h))  # (B, T, M)
        if logits:
            out = out * hard_concrete(sum(logits[1:], logits[0]), self.training)
        return torch.zeros_like(x).index_copy(2, self.mutable, out)  # (B, T, F)
