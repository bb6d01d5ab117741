"""Bidirectional LSTM and GRU networks."""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sparcets.training import fused
from sparcets.training.convolutional import last_step

WIDE = 256  # units (the paper's) from which on the Triton kernel is faster than cuDNN
FEW = 64  # series up to which it is


class Recurrent(nn.Module):
    """Bidirectional recurrent layers: (batch, time, inputs) to (batch, time, 2 * hidden).

    The layers are stacked one by one with ``F.dropout`` between them: cuDNN's own dropout keeps its random state where
    neither a seed nor a captured CUDA graph reaches it.
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
                x = _both_ways(layer, x)  # (B, T, 2H)
            else:
                # Packed, the backward direction starts at each series' own end instead of in the padding.
                packed = pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)
                x = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=T)[0]  # (B, T, 2H)
        return x

    def last(self, x: Tensor) -> Tensor:
        """Return the states of the last step alone (batch, 2 * hidden).

        Backwards in time the last step is the first, so of the top layer's backward half one step is enough.
        """
        for layer in self.layers[:-1]:
            x = layer(x)[0]  # (B, T, 2H)
            x = F.dropout(x, self.dropout, True) if self.training else x
        top = cast("nn.RNNBase", self.layers[-1])
        return torch.cat([_one_way(top, x, "")[:, -1], _one_way(top, x[:, -1:], "_reverse")[:, 0]], dim=1)


def _both_ways(layer: nn.Module, x: Tensor) -> Tensor:
    """Return the states (batch, time, 2 * hidden) of a layer."""
    if (
        isinstance(layer, nn.LSTM)
        and (layer.training and layer.hidden_size >= WIDE and len(x) <= FEW)
        and (x.dtype == torch.float32 and not torch.is_autocast_enabled(x.device.type))
        and fused.available(x.device)
    ):
        from sparcets.training.fused_lstm import lstm

        return lstm(layer, x)
    states: Tensor = layer(x)[0]
    return states


def _one_way(layer: nn.RNNBase, x: Tensor, suffix: str) -> Tensor:
    """Return the states (batch, time, hidden) of one direction of a layer."""
    weights = [getattr(layer, f"{kind}_l0{suffix}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    start = x.new_zeros(1, len(x), layer.hidden_size)
    if isinstance(layer, nn.LSTM):
        return torch.lstm(x, (start, start), weights, True, 1, 0.0, layer.training, False, True)[0]
    return torch.gru(x, start, weights, True, 1, 0.0, layer.training, False, True)[0]


class _RecurrentClassifier(nn.Module):
    cell: type[nn.LSTM] | type[nn.GRU]

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.backbone = Recurrent(n_features, hidden, layers, dropout, self.cell)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        if lengths is None and x.device.type == "cpu":  # on a GPU both directions run at once anyway
            h = self.backbone.last(x)  # (B, 2H)
        else:
            h = last_step(self.backbone(x, lengths), lengths)
        logits: Tensor = self.head(h)  # (B, K)
        return logits


class BiLstm(_RecurrentClassifier):
    """The paper's classifier: a bidirectional LSTM read at the last step."""

    cell = nn.LSTM


class BiGru(_RecurrentClassifier):
    """The same with gated recurrent units."""

    cell = nn.GRU
