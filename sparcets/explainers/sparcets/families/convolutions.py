"""Random convolutions: shares of time at which fixed kernels exceed a bias, as in MiniRocket, with a smooth count."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.seeding import generator

LENGTH, RAISED = 9, 3  # of a kernel: nine weights, three of them 2, the others -1
DILATIONS = 6
BIASES, SHARP_BIASES = 2, 3  # per kernel and dilation, of smooth and of sharp counts
SETS, SHARP_SETS = 2, 3  # independent sets of kernels, each for a head of its own: they differ much from draw to draw
WIDTH, SHARP_WIDTH = 0.15, 0.001  # of the count, in standard deviations of the kernel's outputs
MAX_MIXED = 9  # channels that one kernel adds up, at most
SAMPLE = 100  # series whose outputs the biases are drawn from


class RandomConvolutions(nn.Module):
    """Series (batch, time, features) to the shares of steps at which each convolution exceeds its biases.

    Parameters
    ----------
    dilation
        Of each group of kernels (dilations,).
    mixing
        Weights of the channels in the input of each kernel (dilations, features, kernels).
    bias, width
        Thresholds (dilations, kernels, biases), and width of the smooth count (dilations, kernels).
    """

    dilation: Tensor
    mixing: Tensor
    bias: Tensor
    width: Tensor
    kernels: Tensor

    def __init__(self, *, dilation: Tensor, mixing: Tensor, bias: Tensor, width: Tensor) -> None:
        super().__init__()
        for name, tensor in {"dilation": dilation, "mixing": mixing, "bias": bias, "width": width}.items():
            self.register_buffer(name, tensor)
        raised = list(combinations(range(LENGTH), RAISED))
        kernels = torch.full((len(raised), LENGTH), -1.0)
        for row, positions in enumerate(raised):
            kernels[row, list(positions)] = 2.0
        self.n_sets = mixing.shape[2] // len(raised)
        self.register_buffer("kernels", kernels.repeat(self.n_sets, 1), persistent=False)
        self.steps = [int(d) for d in dilation]

    @classmethod
    def draw(cls, X: Tensor, seed: int, *, sharp: bool = False) -> RandomConvolutions:
        """Draw channels and biases; ``X`` (batch, time, features) are training series.

        Sharp counts, as MiniRocket's, have no gradient to follow; they see what smooth ones are blind to.

        Examples
        --------
        >>> X = torch.randn(20, 30, 2, generator=torch.Generator().manual_seed(0))
        >>> features = RandomConvolutions.draw(X, seed=0)(X)
        >>> features.shape, bool(((features >= 0) & (features <= 1)).all())
        (torch.Size([20, 1008]), True)
        """
        rng = generator(seed, "random convolutions")
        T, n_features = X.shape[1:]
        largest = max(1, (T - 1) // (LENGTH - 1))
        dilations = sorted({int(d) for d in np.geomspace(1, largest, DILATIONS)})
        n_kernels = (SHARP_SETS if sharp else SETS) * len(list(combinations(range(LENGTH), RAISED)))
        mixing = np.zeros((len(dilations), n_features, n_kernels), dtype=np.float32)
        for matrix in mixing:
            for kernel in range(n_kernels):
                n = int(2 ** rng.uniform(0, np.log2(min(n_features, MAX_MIXED) + 1)))
                matrix[rng.choice(n_features, n, replace=False), kernel] = n**-0.5
        empty, n_biases = torch.zeros(len(dilations), n_kernels), SHARP_BIASES if sharp else BIASES
        drawn = cls(
            dilation=torch.tensor(dilations),
            mixing=torch.tensor(mixing),
            bias=empty[:, :, None].repeat(1, 1, n_biases),
            width=empty.clone(),
        ).to(X.device)
        sample = X[torch.as_tensor(rng.permutation(len(X))[:SAMPLE], device=X.device)]
        for i in range(len(dilations)):
            outputs = convolve(drawn.mixing[i].T @ sample.transpose(1, 2), drawn.kernels, drawn.steps[i])
            outputs = outputs.transpose(1, 2).flatten(0, 1)  # (series * time, kernels)
            levels = np.sort(rng.uniform(0.1, 0.9, (n_kernels, n_biases)))
            ordered = outputs.sort(0).values
            rows = torch.as_tensor((levels * (len(ordered) - 1)).astype(np.int64), device=X.device)
            drawn.bias[i] = ordered.gather(0, rows.T).T
            drawn.width[i] = (SHARP_WIDTH if sharp else WIDTH) * outputs.std(0) + 1e-6
        return drawn

    def columns(self) -> list[Tensor]:
        """Return the columns of the features that belong to each set of kernels."""
        n_dilations, n_kernels, n_biases = self.bias.shape
        column = torch.arange(n_dilations * n_biases * n_kernels, device=self.bias.device).reshape(-1, n_kernels)
        return [part.flatten() for part in column.chunk(self.n_sets, dim=1)]

    def forward(self, x: Tensor) -> Tensor:
        """Return features (batch, dilations * biases * kernels)."""
        series = x.transpose(1, 2)
        shares = [
            SmoothCount.apply(  # type: ignore[no-untyped-call]
                series,
                (self.mixing[i] / self.width[i]).T,
                self.kernels,
                self.steps[i],
                self.bias[i] / self.width[i, :, None],
            )
            for i in range(len(self.steps))
        ]
        return torch.cat(shares, dim=1)


class SmoothCount(torch.autograd.Function):
    """Shares of steps at which convolutions exceed their biases, with a backward pass as fast as the forward pass.

    PyTorch's own gradient of a convolution of single channels takes several times as long on a CPU.
    """

    @staticmethod
    def forward(ctx: Any, series: Tensor, mixing: Tensor, kernels: Tensor, dilation: int, bias: Tensor) -> Tensor:
        """Return shares (batch, biases * kernels).

        Parameters
        ----------
        ctx
            Holds what the backward pass needs.
        series
            Channels (batch, features, time).
        mixing, kernels, dilation
            Weights of the channels (kernels, features), and of the steps (kernels, LENGTH).
        bias
            Thresholds (kernels, biases).
        """
        z = convolve(mixing @ series, kernels, dilation)
        counts = [torch.sigmoid(z - level[:, None]) for level in bias.T]
        if ctx.needs_input_grad[0]:
            slopes = [(count - count.square()).div_(z.shape[2]) for count in counts]
            ctx.save_for_backward(mixing, kernels, *slopes)
            ctx.dilation = dilation
        return torch.cat([count.mean(2) for count in counts], dim=1)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the series (batch, features, time)."""
        mixing, kernels, *slopes = ctx.saved_tensors
        of_z = torch.zeros_like(slopes[0])
        for slope, gradient in zip(slopes, gradients[0].chunk(len(slopes), dim=1), strict=True):
            of_z.addcmul_(slope, gradient[:, :, None])
        # The transpose of a convolution that keeps the length is the one by the reversed kernel.
        return mixing.T @ convolve(of_z, kernels.flip(1), ctx.dilation), None, None, None, None


def convolve(z: Tensor, kernels: Tensor, dilation: int) -> Tensor:
    """Return channels (batch, channels, time), each convolved with its own kernel (channels, LENGTH), of equal length.

    >>> convolve(torch.eye(1, 5)[None], torch.arange(9.0)[None], 2)
    tensor([[[4., 0., 3., 0., 2.]]])
    """
    T, reach = z.shape[2], dilation * (LENGTH // 2)
    padded = F.pad(z, (reach, reach))
    if z.is_cuda:
        return F.conv1d(padded, kernels[:, None], groups=len(kernels), dilation=dilation)
    # On a CPU, nine multiplications of whole tensors are several times faster than the convolution.
    total = padded[:, :, :T] * kernels[:, :1]
    for tap in range(1, LENGTH):
        total.addcmul_(padded[:, :, tap * dilation : tap * dilation + T], kernels[:, tap, None])
    return total
