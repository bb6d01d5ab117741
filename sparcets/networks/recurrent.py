"""Bidirectional LSTM and GRU networks."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sparcets.networks.pooling import last_step


class Recurrent(nn.Module):
    """Bidirectional recurrent layers: (batch, time, inputs) to (batch, time, 2 * hidden).

    The layers are stacked one by one with dropout between them: the fused kernels keep the random state of their own
    dropout to themselves, where neither a seed nor a captured CUDA graph reaches it.
    """

    def __init__(
        self, inputs: int, hidden: int, layers: int, dropout: float, cell: type[nn.LSTM] | type[nn.GRU]
    ) -> None:
        super().__init__()
        sizes = [inputs] + [2 * hidden] * (layers - 1)
        self.layers = nn.ModuleList(cell(size, hidden, batch_first=True, bidirectional=True) for size in sizes)
        self.dropout = dropout

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the states of all steps."""
        T = x.shape[1]
        for i, layer in enumerate(self.layers):
            if i > 0:
                x = F.dropout(x, self.dropout, self.training)
            if lengths is None:
                x = layer(x)[0]  # (B, T, 2H)
            else:
                # Packed, the backward direction starts at each series' own end instead of in the padding.
                packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
                x = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=T)[0]  # (B, T, 2H)
        return x


class _RecurrentClassifier(nn.Module):
    cell: type[nn.LSTM] | type[nn.GRU]

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.backbone = Recurrent(n_features, hidden, layers, dropout, self.cell)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        h = self.backbone(x, lengths)  # (B, T, 2H)
        logits: Tensor = self.head(last_step(h, lengths))  # (B, K)
        return logits


class BiLstm(_RecurrentClassifier):
    """The paper's classifier: a bidirectional LSTM read at the last step."""

    cell = nn.LSTM


class BiGru(_RecurrentClassifier):
    """The same with gated recurrent units."""

    cell = nn.GRU
