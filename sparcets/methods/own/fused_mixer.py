"""The mixer's forward pass on a GPU as Triton kernels, one per block.

Plain PyTorch moves the states of a block through memory about ten times, a kernel once. Features interact only through
the summary of a step; everything else in a block needs only the states of one feature, which fit into registers.
"""

from typing import TYPE_CHECKING, cast

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from sparcets.methods.own.generator import Mixer, MixerBlock

# Annotations are not strings here: the interpreter of Triton 3.0 knows tl.constexpr by its class alone.
ROWS = 64  # steps per iteration of a program


@torch.no_grad()
def mix(mixer: "Mixer", series: Tensor, condition: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
    """Return the mixer's states (batch, time, features, channels); sums are accumulated in float32.

    Parameters
    ----------
    mixer
        With a power of two of at least 16 channels.
    series, condition
        As for :meth:`Mixer.forward`, on the device of the weights.
    dtype
        Of the states, and of the factors of matrix products.
    """
    B, S, T, n_features = series.shape
    C, kernel = mixer.first.out_channels, mixer.first.kernel_size[0]
    programs = (B * n_features,)
    rows = min(ROWS, max(16, triton.next_power_of_2(T)))
    # One warp: with four, Triton uses Hopper's warp groups, which are slower here and gave wrong sums for some sizes.
    sizes = {"C": C, "K": kernel, "ROWS": rows, "num_warps": 1, "num_stages": 1}
    h, out = (series.new_empty(B, T, n_features, C, dtype=dtype) for _ in range(2))
    first = mixer.first
    with torch.cuda.device_of(series):
        _first[programs](
            series.contiguous(), first.weight, first.bias, mixer.feature_embedding, h, T, n_features, S=S, **sizes
        )
        for block in cast("list[MixerBlock]", mixer.blocks):
            summary = F.linear(
                h.flatten(2), block.gather.weight.to(h.dtype), block.gather.bias.to(h.dtype)
            )  # (B, T, 2C)
            bias = F.linear(
                condition.float(), block.condition.weight, block.condition.bias + block.pooled.bias
            )  # (B, C)
            weights = (block.temporal.weight, block.scatter.weight, block.pooled.weight, block.out.weight)
            _block[programs](
                h, summary, bias.float(), *weights, out, T, n_features, block.temporal.dilation[0], **sizes
            )
            h, out = out, h
    return h


@triton.jit
def _first(
    x, weight, bias, embedding, out, T, n_features,
    S: tl.constexpr, C: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the first states of one feature of one query; ``S`` is the number of input series."""
    b, f = tl.program_id(0).to(tl.int64) // n_features, tl.program_id(0) % n_features
    c = tl.arange(0, C)[None, :]
    start = tl.load(bias + c) + tl.load(embedding + f * C + c)
    for first in range(0, T, ROWS):
        t = first + tl.arange(0, ROWS)[:, None]
        total = start + tl.zeros((ROWS, C), tl.float32)
        for s in tl.static_range(S):
            for k in tl.static_range(K):
                at = t + (k - K // 2)
                seen = tl.load(x + ((b * S + s) * T + at) * n_features + f, mask=(at >= 0) & (at < T), other=0.0)
                total += seen.to(tl.float32) * tl.load(weight + (c * S + s) * K + k)
        tl.store(out + ((b * T + t) * n_features + f) * C + c, total.to(out.dtype.element_ty), mask=t < T)


@triton.jit
def _block(
    h, summary, bias, temporal, scatter, pool, last, out, T, n_features, dilation,
    C: tl.constexpr, K: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Write the states of one feature of one query after a block."""
    kind = h.dtype.element_ty
    b, f = tl.program_id(0).to(tl.int64) // n_features, tl.program_id(0) % n_features
    c, wide = tl.arange(0, C), tl.arange(0, 2 * C)
    column, step = (b * T * n_features + f) * C + c[None, :], n_features * C
    mean, top = tl.zeros((C,), tl.float32), tl.full((C,), float("-inf"), tl.float32)
    for first in range(0, T, ROWS):
        t = first + tl.arange(0, ROWS)[:, None]
        own = tl.load(h + column + t * step, mask=t < T, other=0.0).to(tl.float32)
        mean += tl.sum(own, axis=0) / T
        top = tl.maximum(top, tl.max(tl.where(t < T, own, float("-inf")), axis=0))
    # Weights are stored as (outputs, inputs); products need (inputs, outputs).
    of_mean = tl.load(pool + c[None, :] * (2 * C) + c[:, None])
    of_top = tl.load(pool + c[None, :] * (2 * C) + C + c[:, None])
    pooled = tl.sum(mean[:, None] * of_mean + top[:, None] * of_top, axis=0) + tl.load(bias + b * C + c)
    of_others = tl.load(scatter + (f * C + c[None, :]) * (2 * C) + wide[:, None]).to(kind)
    to_sum = tl.load(last + c[None, :] * C + c[:, None]).to(kind)
    for first in range(0, T, ROWS):
        t = first + tl.arange(0, ROWS)[:, None]
        gathered = tl.load(summary + (b * T + t) * (2 * C) + wide[None, :], mask=t < T, other=0.0).to(tl.float32)
        found = tl.dot(tl.maximum(gathered, 0.0).to(kind), of_others) + pooled[None, :]
        for k in tl.static_range(K):
            at = t + (k - K // 2) * dilation
            seen = tl.load(h + column + at * step, mask=(at >= 0) & (at < T), other=0.0)
            found = tl.dot(seen, tl.load(temporal + (c[None, :] * C + c[:, None]) * K + k).to(kind), found)
        own = tl.load(h + column + t * step, mask=t < T, other=0.0).to(tl.float32)
        total = tl.dot(tl.maximum(found, 0.0).to(kind), to_sum, own)
        tl.store(out + column + t * step, total.to(kind), mask=t < T)
