"""Generators: a query, and the class it should get, to a change of its mutable features (the paper's section 2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sparcets.networks.backbones import build_backbone
from sparcets.networks.sparsity_layer import SparsityLayer

EMBEDDING = 8  # size of the embedding of the target class


class Generator(nn.Module):
    """Many-to-many: all features go in, residuals of the mutable ones come out, in standardised units.

    Parameters
    ----------
    n_features
        Features of the query.
    mutable
        Indices of the features it may change; the rest of the residual is exactly 0.
    n_targets
        Number of target classes; 1 means a single target, and no conditioning.
    backbone, hidden, layers, dropout
        See :func:`~sparcets.networks.backbones.build_backbone`.
    head
        ``"sparse"`` (the sparsity layer), ``"residual"`` (linear) or ``"series"`` (a whole series through tanh).
    low, high
        Range of the data per feature (features,), for the ``"series"`` head.
    """

    mutable: Tensor
    middle: Tensor
    reach: Tensor

    def __init__(
        self,
        *,
        n_features: int,
        mutable: list[int],
        n_targets: int,
        backbone: str,
        hidden: int,
        layers: int,
        dropout: float,
        head: str,
        low: Tensor,
        high: Tensor,
    ) -> None:
        super().__init__()
        self.target_embedding = nn.Embedding(n_targets, EMBEDDING) if n_targets > 1 else None
        inputs = n_features + (EMBEDDING if n_targets > 1 else 0)
        self.backbone = build_backbone(backbone, inputs, hidden, layers, dropout)
        self.kind = head
        outputs = len(mutable)
        self.head = SparsityLayer(2 * hidden, outputs) if head == "sparse" else nn.Linear(2 * hidden, outputs)
        self.register_buffer("mutable", torch.tensor(mutable))
        self.register_buffer("middle", (high + low)[mutable] / 2)
        self.register_buffer("reach", (high - low)[mutable] / 2)

    def forward(self, x: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return residuals (batch, time, features) of queries (batch, time, features) towards targets (batch,)."""
        B, T, _ = x.shape
        inputs = x
        if self.target_embedding is not None:
            embedded = self.target_embedding(target)[:, None].expand(B, T, EMBEDDING)
            inputs = torch.cat([x, embedded], dim=2)  # (B, T, F + E)
        out = self.head(self.backbone(inputs, lengths))  # (B, T, M)
        if self.kind == "series":
            series = self.middle + self.reach * torch.tanh(out)
            out = series - x.index_select(2, self.mutable)
        return torch.zeros_like(x).index_copy(2, self.mutable, out)  # (B, T, F)
