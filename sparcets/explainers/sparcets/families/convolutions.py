"""Random convolutions: shares of time at which fixed kernels exceed a bias, as in MiniRocket, with a smooth count."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.seeding import generator

LENGTH, RAISED = 9, 3  # of a kernel: nine weights, three of them 2, the others -1
DILATIONS = 6
BIASES = 2  # per kernel and dilation
WIDTH = 0.15  # of the smooth count, in standard deviations of the kernel's outputs
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
        kernels = torch.full((len(raised), 1, LENGTH), -1.0)
        for row, positions in enumerate(raised):
            kernels[row, 0, list(positions)] = 2.0
        self.register_buffer("kernels", kernels, persistent=False)
        self.steps = [int(d) for d in dilation]

    @classmethod
    def draw(cls, X: Tensor, seed: int) -> RandomConvolutions:
        """Draw channels and biases; ``X`` (batch, time, features) are training series.

        Examples
        --------
        >>> X = torch.randn(20, 30, 2, generator=torch.Generator().manual_seed(0))
        >>> features = RandomConvolutions.draw(X, seed=0)(X)
        >>> features.shape, bool(((features >= 0) & (features <= 1)).all())
        (torch.Size([20, 504]), True)
        """
        rng = generator(seed, "random convolutions")
        T, n_features = X.shape[1:]
        largest = max(1, (T - 1) // (LENGTH - 1))
        dilations = sorted({int(d) for d in np.geomspace(1, largest, DILATIONS)})
        n_kernels = len(list(combinations(range(LENGTH), RAISED)))
        mixing = np.zeros((len(dilations), n_features, n_kernels), dtype=np.float32)
        for matrix in mixing:
            for kernel in range(n_kernels):
                n = int(2 ** rng.uniform(0, np.log2(min(n_features, MAX_MIXED) + 1)))
                matrix[rng.choice(n_features, n, replace=False), kernel] = n**-0.5
        empty = torch.zeros(len(dilations), n_kernels)
        drawn = cls(
            dilation=torch.tensor(dilations),
            mixing=torch.tensor(mixing),
            bias=empty[:, :, None].repeat(1, 1, BIASES),
            width=empty.clone(),
        ).to(X.device)
        sample = X[torch.as_tensor(rng.permutation(len(X))[:SAMPLE], device=X.device)]
        for i in range(len(dilations)):
            outputs = drawn._convolve(sample, i).flatten(0, 1)  # (series * time, kernels)
            levels = np.sort(rng.uniform(0.1, 0.9, (n_kernels, BIASES)))
            ordered = outputs.sort(0).values
            rows = torch.as_tensor((levels * (len(ordered) - 1)).astype(np.int64), device=X.device)
            drawn.bias[i] = ordered.gather(0, rows.T).T
            drawn.width[i] = WIDTH * outputs.std(0) + 1e-6
        return drawn

    def forward(self, x: Tensor) -> Tensor:
        """Return features (batch, dilations * kernels * biases)."""
        shares = []
        for i in range(len(self.steps)):
            z = self._convolve(x, i) / self.width[i]
            level = self.bias[i] / self.width[i, :, None]
            shares += [torch.sigmoid(z - level[:, b]).mean(1) for b in range(level.shape[1])]
        return torch.cat(shares, dim=1)

    def _convolve(self, x: Tensor, i: int) -> Tensor:
        """Return the outputs (batch, time, kernels) of the i-th dilation."""
        reach = self.steps[i] * (LENGTH // 2)
        mixed = (x @ self.mixing[i]).transpose(1, 2)
        outputs = F.conv1d(F.pad(mixed, (reach, reach)), self.kernels, groups=len(self.kernels), dilation=self.steps[i])
        return outputs.transpose(1, 2)
