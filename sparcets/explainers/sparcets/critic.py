"""Critic: the discriminator of our own method.

The paper's discriminator, 16 units read at the last step, accepts unrealistic series. This one
sees every window of a series, and spectral normalisation keeps it from overpowering the generator (Miyato et al. 2018).
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from sparcets.networks.temporal import blank_padding, inside

KERNEL = 5
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
            spectral_norm(nn.Conv1d(a, b, KERNEL, padding=(KERNEL // 2) * 2**i, dilation=2**i))
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
