"""The paper's discriminator (section 2)."""

from __future__ import annotations

from torch import Tensor, nn

from sparcets.networks.backbones import build_backbone
from sparcets.networks.temporal import last_step


class Discriminator(nn.Module):
    """Many-to-one: a series and its supposed class to one logit.

    Where several classes can be claimed, the class enters by projection: the logit gains the product of the pooled
    state with a vector learnt for that class (Miyato & Koyama 2018).

    Parameters
    ----------
    n_features
        Features of the series.
    n_targets
        Number of classes that can be claimed; 1 means no conditioning.
    backbone, hidden, layers
        See :func:`~sparcets.networks.backbones.build_backbone`.
    """

    def __init__(self, *, n_features: int, n_targets: int, backbone: str, hidden: int, layers: int) -> None:
        super().__init__()
        self.backbone = build_backbone(backbone, n_features, hidden, layers, dropout=0.0)
        self.head = nn.Linear(2 * hidden, 1)
        self.claimed = nn.Embedding(n_targets, 2 * hidden) if n_targets > 1 else None

    def forward(self, x: Tensor, target: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch,) of "real" for series (batch, time, features) and their supposed classes (batch,)."""
        h = last_step(self.backbone(x, lengths), lengths)  # (B, 2H)
        logit: Tensor = self.head(h)[:, 0]  # (B,)
        if self.claimed is not None:
            logit = logit + (self.claimed(target) * h).sum(1)
        return logit
