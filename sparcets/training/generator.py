"""Generators: a query, and the class it should get, to a change of its mutable features (the paper's section 2)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.training.architectures import CausalStack, Recurrent
from sparcets.training.networks import last_step, reversed_in_time


class SparsityLayer(nn.Module):
    """δ = ReLU(δ_pos) − ReLU(δ_neg): both signs are possible, and an exact zero is easy to reach."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.positive = nn.Linear(inputs, outputs)
        self.negative = nn.Linear(inputs, outputs)

    def forward(self, h: Tensor) -> Tensor:
        """Return residuals (batch, time, outputs) of states (batch, time, inputs)."""
        return F.relu(self.positive(h)) - F.relu(self.negative(h))


class TwoWayStack(nn.Module):
    """A causal stack in each direction of time, side by side: every step sees past and future, as with a bi-LSTM.

    (batch, time, inputs) to (batch, time, 2 * hidden).
    """

    def __init__(self, inputs: int, hidden: int, blocks: int, dropout: float) -> None:
        super().__init__()
        self.forwards = CausalStack(inputs, hidden, blocks, dropout)
        self.backwards = CausalStack(inputs, hidden, blocks, dropout)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the states of all steps."""
        past = self.forwards(x)  # (B, T, H); causal, so padding cannot reach back
        future = reversed_in_time(self.backwards(reversed_in_time(x, lengths)), lengths)  # (B, T, H)
        return torch.cat([past, future], dim=2)  # (B, T, 2H)


def build_backbone(kind: str, inputs: int, hidden: int, layers: int, dropout: float) -> nn.Module:
    """Return a backbone from (batch, time, inputs) to (batch, time, 2 * hidden).

    ``"lstm"``, ``"gru"`` and ``"tcn"`` are the three that the paper names; a TCN has two more blocks than ``layers``,
    so that its reach covers the usual lengths.
    """
    if kind == "tcn":
        return TwoWayStack(inputs, hidden, layers + 2, dropout)
    return Recurrent(inputs, hidden, layers, dropout, nn.LSTM if kind == "lstm" else nn.GRU)


EMBEDDING = 8  # size of the embedding of the target class


class Generator(nn.Module):
    """Many-to-many: all features go in, residuals of the mutable ones come out, in standardised units.

    ``mutable`` are the indices of the features it may change; the rest of the residual is exactly 0. One target class
    means no conditioning. The head is ``"sparse"`` (the sparsity layer), ``"residual"`` (linear) or ``"series"`` (a
    whole series through tanh, in the range ``low`` to ``high`` of the data per feature).
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


class Discriminator(nn.Module):
    """Many-to-one: a series and its supposed class to one logit.

    Where several classes can be claimed, the class enters by projection: the logit gains the product of the pooled
    state with a vector learnt for that class (Miyato & Koyama 2018).
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
