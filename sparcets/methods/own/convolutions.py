"""Random convolutions: shares of time at which fixed kernels exceed a bias, as in MiniRocket, with a smooth count."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray

LENGTH, RAISED = 9, 3  # of a kernel: nine weights, three of them 2, the others -1
N_KERNELS = comb(LENGTH, RAISED)
PER_MIXTURE = 12  # kernels that see the same mixture of channels
DILATIONS = 6
BIASES, SHARP_BIASES = 2, 3  # per kernel and dilation, of smooth and of sharp counts
SETS, SHARP_SETS = 2, 4  # independent sets of kernels, each for a head of its own: they differ much from draw to draw
WIDTH = 0.6  # of a smooth count, in standard deviations of the kernel's outputs
MAX_MIXED = 9  # channels that one kernel adds up, at most
SAMPLE = 100  # series whose outputs the biases are drawn from
STEPS_AT_A_TIME = 256  # series times steps that are convolved together on a CPU


class RandomConvolutions(nn.Module):
    """Series (batch, time, features) to the shares of steps at which each convolution exceeds its biases.

    Parameters
    ----------
    dilation
        Of each group of kernels (dilations,).
    mixing
        Weights of the channels in each mixture, the input of ``PER_MIXTURE`` kernels (dilations, features, mixtures).
    bias, width
        Thresholds (dilations, kernels, biases), and width of the smooth count (dilations, kernels); 0 for a sharp one.
    """

    dilation: Tensor
    mixing: Tensor
    bias: Tensor
    width: Tensor
    mixtures: Tensor
    kernels: Tensor
    start: Tensor

    def __init__(self, *, dilation: Tensor, mixing: Tensor, bias: Tensor, width: Tensor) -> None:
        super().__init__()
        for name, tensor in {"dilation": dilation, "mixing": mixing, "bias": bias, "width": width}.items():
            self.register_buffer(name, tensor)
        self.n_sets = mixing.shape[2] * PER_MIXTURE // N_KERNELS
        self.dilations = [int(d) for d in dilation]
        self.sharp = not bool(width.any())
        # Those of all dilations in one list; outputs in units of the width, so that a ramp rises from 0 to 1 within 1.
        unit = torch.ones_like(width) if self.sharp else width
        kernels = _kernels_by_mixture(self.n_sets).to(mixing.device).repeat(len(self.dilations), 1, 1)
        joined = {
            "mixtures": mixing.transpose(1, 2).flatten(0, 1),  # (all mixtures, features)
            "kernels": kernels / unit.reshape(len(kernels), PER_MIXTURE, 1),
            "start": (bias / unit[:, :, None] - (0.0 if self.sharp else 0.5)).permute(2, 0, 1).flatten(1),
        }
        for name, tensor in joined.items():
            self.register_buffer(name, tensor.contiguous(), persistent=False)

    @classmethod
    def draw(
        cls,
        X: Tensor,
        seed: int,
        *,
        scale: FloatArray | None = None,
        sharp: bool = False,
        lengths: IntArray | None = None,
    ) -> RandomConvolutions:
        """Draw channels and biases for standardised training series (batch, time, features).

        Every other set mixes the channels in the data's own units (their values are ``scale`` times the standardised
        ones), as a model that is given the data as they are: there the channels with large values dominate a mixture.
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
        n_sets, n_biases = (SHARP_SETS, SHARP_BIASES) if sharp else (SETS, BIASES)
        n_kernels = n_sets * N_KERNELS
        mixing = np.zeros((len(dilations), n_features, n_kernels // PER_MIXTURE), dtype=np.float32)
        for matrix in mixing:
            for i, weights in enumerate(matrix.T):
                n = int(2 ** rng.uniform(0, np.log2(min(n_features, MAX_MIXED) + 1)))
                chosen = rng.choice(n_features, n, replace=False)
                of_set = i * n_sets // matrix.shape[1]
                weights[chosen] = 1.0 if scale is None or of_set % 2 == 0 else scale[chosen]
                weights /= np.linalg.norm(weights)
        kernels, mixed = _kernels_by_mixture(n_sets).to(X.device), torch.tensor(mixing, device=X.device)
        some = rng.permutation(len(X))[:SAMPLE]
        sample = [X[torch.as_tensor(some, device=X.device)]]
        if lengths is not None:
            sample = [X[i : i + 1, : lengths[i]] for i in some]
        bias, width = [], []
        for matrix, dilation in zip(mixed, dilations, strict=True):
            outputs = torch.cat([convolve(part, matrix.T, kernels, [dilation]) for part in sample], dim=1)
            levels = np.sort(rng.uniform(0.1, 0.9, (n_kernels, n_biases)))
            ordered = outputs.sort(1).values  # (kernels, series * time)
            columns = torch.as_tensor((levels * (ordered.shape[1] - 1)).astype(np.int64), device=X.device)
            bias.append(ordered.gather(1, columns))
            width.append(torch.zeros_like(bias[-1][:, 0]) if sharp else WIDTH * outputs.std(1) + 1e-6)
        steps = torch.tensor(dilations, device=X.device)
        return cls(dilation=steps, mixing=mixed, bias=torch.stack(bias), width=torch.stack(width))

    def at_length(self, n_steps: int, of: int) -> RandomConvolutions:
        """Return itself: a share of steps is one of any number of steps."""
        return self

    def columns(self) -> list[Tensor]:
        """Return the columns of the features that belong to each set of kernels."""
        n_dilations, n_kernels, n_biases = self.bias.shape
        column = torch.arange(n_biases * n_dilations * n_kernels, device=self.bias.device).reshape(-1, n_kernels)
        return [part.flatten() for part in column.chunk(self.n_sets, dim=1)]

    def forward(self, x: Tensor) -> Tensor:
        """Return features (batch, biases * dilations * kernels)."""
        # On a CPU, no more series at a time than fit into its caches.
        size = len(x) if x.is_cuda else max(1, STEPS_AT_A_TIME // x.shape[1])
        shares = [self._shares(part) for part in torch.split(x, max(1, size))]
        return torch.cat(shares) if len(shares) > 1 else shares[0]

    def _shares(self, x: Tensor) -> Tensor:
        if not self.sharp:
            shares: Tensor = SmoothCount.apply(  # type: ignore[no-untyped-call]
                x, self.mixtures, self.kernels, self.dilations, self.start
            )
            return shares
        z = convolve(x, self.mixtures, self.kernels, self.dilations)
        return _mean([torch.gt(z, level[:, None], out=torch.empty_like(z)) for level in self.start], len(x))


class SmoothCount(torch.autograd.Function):
    """Shares of steps at which convolutions exceed their biases, counted by ramps between 0 and 1.

    The backward pass is written out: PyTorch's own takes several times as many operations.
    """

    @staticmethod
    def forward(
        ctx: Any, series: Tensor, mixtures: Tensor, kernels: Tensor, dilations: list[int], start: Tensor
    ) -> Tensor:
        """Return shares (batch, biases * all kernels); all but ``start`` is as in :func:`convolve`.

        The ramps begin at ``start`` (biases, all kernels), and end at 1 more.
        """
        z = convolve(series, mixtures, kernels, dilations)
        above = [z - level[:, None] for level in start]
        counts = [one.clamp(0, 1) for one in above]
        shares = _mean(counts, len(series))
        if ctx.needs_input_grad[0]:
            slopes = [torch.eq(one, count, out=count) for one, count in zip(above, counts, strict=True)]
            ctx.save_for_backward(mixtures, kernels, *slopes)
            ctx.dilations = dilations
        return shares

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient of the series (batch, time, features)."""
        mixtures, kernels, *slopes = ctx.saved_tensors
        B, n = len(gradients[0]), len(kernels)
        T = slopes[0].shape[1] // B
        by_bias = (gradients[0] / T).T.reshape(len(slopes), -1, B, 1)
        of_z = slopes[0].reshape(-1, B, T) * by_bias[0]
        for slope, gradient in zip(slopes[1:], by_bias[1:], strict=True):
            of_z.addcmul_(slope.reshape(of_z.shape), gradient)
        of_taps = torch.bmm(kernels.transpose(1, 2), of_z.reshape(n, PER_MIXTURE, B * T))
        of_mixed = _add_taps(of_taps.reshape(n, LENGTH, B, T), ctx.dilations).reshape(n, B * T)
        return (mixtures.T @ of_mixed).reshape(-1, B, T).permute(1, 2, 0), None, None, None, None


def convolve(series: Tensor, mixtures: Tensor, kernels: Tensor, dilations: list[int]) -> Tensor:
    """Return the outputs of kernels (all kernels, batch * time), as long as the series, which count as 0 beyond.

    One multiplication of matrices per mixture, for all series together: several times faster on a CPU than a
    convolution of single channels. Mixtures are weights of the channels (mixtures, features), as many for each
    dilation, the steps between the weights of a kernel; each is seen by kernels (mixtures, kernels, LENGTH).

    Examples
    --------
    >>> convolve(torch.eye(1, 5)[:, :, None], torch.ones(1, 1), torch.arange(9.0).reshape(1, 1, 9), [2])
    tensor([[4., 0., 3., 0., 2.]])
    """
    B, T, n_features = series.shape
    mixed = (mixtures @ series.permute(2, 0, 1).reshape(n_features, B * T)).reshape(-1, B, T)
    return torch.bmm(kernels, _taps(mixed, dilations).reshape(len(mixed), LENGTH, B * T)).flatten(0, 1)


def _taps(mixed: Tensor, dilations: list[int]) -> Tensor:
    """Return what each weight of a kernel meets at each step (mixtures, LENGTH, batch, time)."""
    n, B, T = mixed.shape
    size, reach = n // len(dilations), LENGTH // 2
    padded = F.pad(mixed, 2 * (reach * max(dilations),))
    along, across, _ = padded.stride()
    views = [
        padded.as_strided((size, LENGTH, B, T), (along, d, across, 1), i * size * along + reach * (max(dilations) - d))
        for i, d in enumerate(dilations)
    ]
    return torch.cat(views)


def _add_taps(taps: Tensor, dilations: list[int]) -> Tensor:
    """Return the sums of what :func:`_taps` has taken from each step (mixtures, batch, time): its transpose."""
    n, _, B, T = taps.shape
    size, reach = n // len(dilations), LENGTH // 2
    beyond = 2 * reach * max(dilations)
    padded = F.pad(taps, (beyond, beyond))
    along, tap, across, _ = padded.stride()
    # The weight k has met at step t what lies at t + (k - reach) * d: one step back in time per step of k.
    views = [
        padded.as_strided((size, LENGTH, B, T), (along, tap - d, across, 1), i * size * along + beyond + reach * d)
        for i, d in enumerate(dilations)
    ]
    return torch.cat([view.sum(1) for view in views])


def _mean(counts: list[Tensor], n_series: int) -> Tensor:
    """Return the means over time (batch, biases * kernels) of counts (kernels, batch * time), one for each bias."""
    return torch.cat([count.reshape(len(count), n_series, -1).mean(2) for count in counts]).T


def _kernels_by_mixture(n_sets: int) -> Tensor:
    """Return the kernels of each mixture (mixtures, PER_MIXTURE, LENGTH); all 84 occur once in every set."""
    kernels = torch.full((N_KERNELS, LENGTH), -1.0, dtype=torch.float32)
    for row, positions in enumerate(combinations(range(LENGTH), RAISED)):
        kernels[row, list(positions)] = 2.0
    # Those of one mixture lie far apart in the list, so that they differ.
    one_set = kernels.reshape(PER_MIXTURE, -1, LENGTH).transpose(0, 1)
    return one_set.repeat(n_sets, 1, 1)
