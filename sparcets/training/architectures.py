"""Networks for classes and numbers: convolutional (Wang, Yan, Oates 2017), recurrent, and transformers.

Transformers are those of Vaswani et al. (2017), over time steps.
"""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sparcets.training.networks import blank_padding, inside, last_step, mean_over_time

FEW_STEPS = 400  # of all series together; below, one matrix product is faster than setting up a convolution


def convolve(conv: nn.Conv1d, x: Tensor, before: int, after: int) -> Tensor:
    """Return (batch, time, outputs) of series (batch, time, inputs), with so many zeros before and after them.

    Features stay last in memory; on a CPU that is two to three times as fast as ``nn.Conv1d`` with its transposes. The
    padding of ``conv`` itself is not used.

    >>> conv, x = nn.Conv1d(3, 2, 5, padding=2), torch.ones(4, 9, 3)
    >>> torch.allclose(convolve(conv, x, 2, 2), conv(x.transpose(1, 2)).transpose(1, 2), atol=1e-6)
    True
    """
    (dilation,), (kernel,) = conv.dilation, conv.kernel_size
    # A trace for ONNX must not depend on the size of the batch it was traced with.
    traced = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    if traced or x.device.type != "cpu" or x.dtype != torch.float32:
        y = F.pad(x.transpose(1, 2), (before, after))  # (B, I, T)
        return F.conv1d(y, conv.weight, conv.bias, dilation=dilation).transpose(1, 2)
    padded = F.pad(x, (0, 0, before, after)).contiguous()  # (B, T', I)
    B, T, inputs = padded.shape
    steps = T - (kernel - 1) * dilation
    if B * steps <= FEW_STEPS and not torch.is_grad_enabled():
        strides = (T * inputs, inputs, dilation * inputs, 1)
        windows = padded.as_strided((B, steps, kernel, inputs), strides).reshape(B * steps, kernel * inputs)
        weight = conv.weight.permute(0, 2, 1).reshape(-1, kernel * inputs)  # (O, K * I)
        return F.linear(windows, weight, conv.bias).reshape(B, steps, -1)
    # As an image of one row: PyTorch supports this memory layout for images only.
    image = padded.transpose(1, 2)[:, :, None]  # (B, I, 1, T')
    made = F.conv2d(image, conv.weight[:, :, None], conv.bias, dilation=(1, dilation))  # (B, O, 1, T)
    return made[:, :, 0].transpose(1, 2)


class ConvBlock(nn.Module):
    """Convolution over time and batch normalisation: (batch, time, inputs) to (batch, time, outputs).

    Padding is read as zeros, as beyond the end of a series that is not padded, and does not count in the statistics.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(inputs, outputs, kernel, padding="same", bias=False)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return (batch, time, outputs), zero where there is padding."""
        sides = self.conv.kernel_size[0] // 2
        y = convolve(self.conv, blank_padding(x, lengths), sides, sides)  # (B, T, C)
        mask = inside(lengths, x)
        if mask is None:
            normal: Tensor = self.norm(y.flatten(0, 1)).reshape(y.shape)  # (B, T, C)
            return normal
        steps = mask[..., 0]  # (B, T)
        return torch.zeros_like(y).index_put((steps,), self.norm(y[steps]))


class Fcn(nn.Module):
    """Three convolutions (kernels 7, 5, 3; widths 2, 4 and 2 times ``hidden``) and the mean over time.

    ``layers`` has no meaning here: three blocks are the architecture.
    """

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [n_features, 2 * hidden, 4 * hidden, 2 * hidden]
        self.blocks = nn.ModuleList(
            ConvBlock(a, b, k) for a, b, k in zip(widths[:-1], widths[1:], (7, 5, 3), strict=True)
        )
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        for block in self.blocks:
            x = F.relu(block(x, lengths))  # (B, T, C)
        logits: Tensor = self.head(self.dropout(mean_over_time(x, lengths)))  # (B, K)
        return logits


class ResidualBlock(nn.Module):
    """Three convolutions (kernels 7, 5, 3) around a shortcut: (batch, time, inputs) to (batch, time, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first = ConvBlock(inputs, outputs, 7)
        self.second = ConvBlock(outputs, outputs, 5)
        self.third = ConvBlock(outputs, outputs, 3)
        self.shortcut = ConvBlock(inputs, outputs, 1)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return (batch, time, outputs)."""
        y = F.relu(self.first(x, lengths))
        y = F.relu(self.second(y, lengths))
        return F.relu(self.third(y, lengths) + self.shortcut(x, lengths))


class ResNet(nn.Module):
    """``layers`` + 1 residual blocks (widths 1, 2, 2, … times ``hidden``) and the mean over time."""

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        widths = [n_features, hidden] + [2 * hidden] * layers
        self.blocks = nn.ModuleList(ResidualBlock(a, b) for a, b in zip(widths[:-1], widths[1:], strict=True))
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(widths[-1], n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        for block in self.blocks:
            x = block(x, lengths)  # (B, T, C)
        logits: Tensor = self.head(self.dropout(mean_over_time(x, lengths)))  # (B, K)
        return logits


KERNEL = 5


class CausalBlock(nn.Module):
    """Two causal convolutions of one dilation around a shortcut: (batch, time, inputs) to (batch, time, outputs)."""

    def __init__(self, inputs: int, outputs: int, dilation: int, dropout: float) -> None:
        super().__init__()
        self.past = (KERNEL - 1) * dilation  # padding on the left only: a step sees no later one
        self.first = nn.Conv1d(inputs, outputs, KERNEL, dilation=dilation)
        self.second = nn.Conv1d(outputs, outputs, KERNEL, dilation=dilation)
        self.shortcut = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else None
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return (batch, time, outputs)."""
        y = F.relu(convolve(self.first, x, self.past, 0))
        y = self.dropout(y) if self.training else y  # an idle call costs a fifth of a small network's time
        y = F.relu(convolve(self.second, y, self.past, 0))
        y = self.dropout(y) if self.training else y
        return F.relu(y + (x if self.shortcut is None else convolve(self.shortcut, x, 0, 0)))


class CausalStack(nn.Module):
    """Blocks of doubling dilation: (batch, time, inputs) to (batch, time, hidden)."""

    def __init__(self, inputs: int, hidden: int, blocks: int, dropout: float) -> None:
        super().__init__()
        sizes = [inputs] + [hidden] * blocks
        self.blocks = nn.ModuleList(
            CausalBlock(a, b, 2**i, dropout) for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:], strict=True))
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return one vector per step; it depends on that step and earlier ones only."""
        for block in self.blocks:
            x = block(x)  # (B, T, H)
        return x


class Tcn(nn.Module):
    """A causal stack (``layers`` + 2 blocks, twice ``hidden`` wide) and the mean over time."""

    def __init__(self, n_features: int, n_classes: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.backbone = CausalStack(n_features, 2 * hidden, layers + 2, dropout)
        self.head = nn.Linear(2 * hidden, n_classes)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return logits (batch, classes)."""
        h = self.backbone(blank_padding(x, lengths))  # (B, T, 2H); causal, so padding cannot reach back
        logits: Tensor = self.head(mean_over_time(h, lengths))  # (B, K)
        return logits


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
                x = layer(x)[0]  # (B, T, 2H)
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
