"""Transformer encoder over time steps (Vaswani et al. 2017)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.training.convolutional import blank_padding, inside, mean_over_time

HEADS = 4


def positions(n_steps: int, width: int, device: torch.device) -> Tensor:
    """Return sine and cosine codes of the steps (time, width), ``width`` even."""
    step = torch.arange(n_steps, device=device)[:, None]  # (T, 1)
    pair = torch.arange(0, width, 2, dtype=torch.float32, device=device)  # (W/2,)
    rate = torch.exp(pair * (-math.log(10000.0) / width))
    return torch.cat([torch.sin(step * rate), torch.cos(step * rate)], dim=1)  # (T, W)


class EncoderLayer(nn.Module):
    """Self-attention and a small network, each behind a layer normalisation and around a shortcut.

    Written out because torch's own layer takes another road in evaluation mode than in training, so that the same
    series would give slightly different logits with and without gradients.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.norm_attention = nn.LayerNorm(width)
        self.projection = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)
        self.norm_network = nn.LayerNorm(width)
        self.network = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return (batch, time, width); ``mask`` (batch, 1, 1, time) marks the steps that may be attended to."""
        B, T, W = x.shape
        qkv = self.projection(self.norm_attention(x)).view(B, T, 3, HEADS, W // HEADS)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)  # each (B, heads, T, W / heads)
        seen = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.dropout(self.output(seen.transpose(1, 2).reshape(B, T, W)))
        y: Tensor = x + self.dropout(self.network(self.norm_network(x)))
        return y


class Transformer(nn.Module):
    """``layers`` encoder layers, twice ``hidden`` wide, and the mean over time."""

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.width = HEADS * max(2, 2 * math.ceil(2 * hidden / (2 * HEADS)))  # even, and divisible by the heads
        self.embedding = nn.Conv1d(n_features, self.width, 3, padding=1)  # a little local context per step
        self.encoder = nn.ModuleList(EncoderLayer(self.width, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(self.width)
        self.head = nn.Linear(self.width, n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        x = blank_padding(x, lengths)
        h = self.embedding(x.transpose(1, 2)).transpose(1, 2)  # (B, T, W)
        h = h + positions(h.shape[1], self.width, h.device)
        steps = inside(lengths, x)  # (B, T, 1) or None
        mask = None if steps is None else steps.transpose(1, 2)[:, None]  # (B, 1, 1, T)
        for layer in self.encoder:
            h = layer(h, mask)
        logits: Tensor = self.head(mean_over_time(self.norm(h), lengths))  # (B, K)
        return logits
