"""A wide bidirectional LSTM layer in training on a GPU, with both directions of a step in one Triton kernel.

Libraries compute a step as one product per direction, followed by a kernel for the gates. With few series, such a
product occupies four of 132 multiprocessors in the backward pass of 256 units. Here each program computes the product
and the gates of a few units, so that all multiprocessors are occupied.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

# Annotations are not strings here: the interpreter of Triton 3.0 knows tl.constexpr by its class alone.
UNITS = 16  # per program
SERIES = 16  # per program
INPUTS = 128  # per iteration of a product


def lstm(layer: nn.LSTM, x: Tensor) -> Tensor:
    """Return the states (batch, time, 2 * hidden) of a bidirectional layer without dropout, with gradients to all.

    Products with the previous states use TF32, as in cuDNN; all others use the precision that PyTorch is set to.

    Parameters
    ----------
    layer
        One layer, batch first.
    x
        Series (batch, time, inputs).
    """
    ways = ("", "_reverse")
    of_input = torch.stack([getattr(layer, f"weight_ih_l0{way}") for way in ways])  # (2, 4H, I)
    of_state = torch.stack([getattr(layer, f"weight_hh_l0{way}") for way in ways])  # (2, 4H, H)
    bias = torch.stack([getattr(layer, f"bias_ih_l0{way}") + getattr(layer, f"bias_hh_l0{way}") for way in ways])
    steps = x.transpose(0, 1)  # (T, B, I)
    T, B, _ = steps.shape
    gates = torch.baddbmm(bias[:, None], steps.reshape(1, T * B, -1).expand(2, -1, -1), of_input.transpose(1, 2))
    states: Tensor = _Recurrence.apply(gates.reshape(2, T, B, -1), of_state)
    return torch.cat([states[0], states[1]], dim=2).transpose(0, 1)


class _Recurrence(torch.autograd.Function):
    """Gates before the recurrence (2, time, batch, 4 * hidden) and its weights (2, 4 * hidden, hidden) to states.

    Both are in the order of time; the second direction runs from the end.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor) -> Tensor:
        _, T, B, _ = gates.shape
        H = weight.shape[2]
        gates, weight = gates.contiguous(), weight.contiguous()
        acted = torch.empty_like(gates)
        states, cells = gates.new_empty(2, T, B, H), gates.new_empty(2, T, B, H)
        with torch.cuda.device_of(gates):
            for step in range(T):
                _forward[_programs(H, B)](gates, weight, acted, states, cells, step, T, B, H=H, **_SIZES)
        ctx.save_for_backward(weight, acted, states, cells)
        return states

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        weight, acted, states, cells = ctx.saved_tensors
        _, T, B, H = states.shape
        of_states = grads[0].contiguous()
        of_gates, of_cells = torch.empty_like(acted), torch.empty_like(states[:, 0])
        for step in reversed(range(T)):
            _backward[_programs(H, B)](of_states, weight, acted, cells, of_gates, of_cells, step, T, B, H=H, **_SIZES)
        before = torch.zeros_like(states)  # the previous state of each step
        before[0, 1:], before[1, :-1] = states[0, :-1], states[1, 1:]
        of_weight = of_gates.reshape(2, T * B, 4 * H).transpose(1, 2) @ before.reshape(2, T * B, H)
        return of_gates, of_weight


def _programs(hidden: int, batch: int) -> tuple[int, int, int]:
    return triton.cdiv(hidden, UNITS), 2, triton.cdiv(batch, SERIES)


_SIZES: dict[str, Any] = {"UNITS": UNITS, "SERIES": SERIES, "INPUTS": INPUTS, "num_warps": 1, "num_stages": 3}


@triton.jit(do_not_specialize=["step"])
def _forward(
    gates, weight, acted, states, cells, step, T, B,
    H: tl.constexpr, UNITS: tl.constexpr, SERIES: tl.constexpr, INPUTS: tl.constexpr,
):  # fmt: skip
    """Compute one step of some units of some series in one direction."""
    way = tl.program_id(1)
    t, onward = step + way * (T - 1 - 2 * step), 1 - 2 * way
    unit, series = tl.program_id(0) * UNITS + tl.arange(0, UNITS), tl.program_id(2) * SERIES + tl.arange(0, SERIES)
    there = (series < B)[:, None] & (unit < H)[None, :]
    row = ((way * T + t) * B + series)[:, None]
    came = row - onward * B
    at = row * (4 * H) + unit[None, :]
    i = tl.load(gates + at, mask=there, other=0.0)
    f = tl.load(gates + at + H, mask=there, other=0.0)
    g = tl.load(gates + at + 2 * H, mask=there, other=0.0)
    o = tl.load(gates + at + 3 * H, mask=there, other=0.0)
    cell = tl.zeros((SERIES, UNITS), tl.float32)
    if step > 0:
        for first in range(0, H, INPUTS):
            k = first + tl.arange(0, INPUTS)
            state = tl.load(states + came * H + k[None, :], mask=(series < B)[:, None] & (k < H)[None, :], other=0.0)
            at_weight = weight + (way * 4 * H + unit)[None, :] * H + k[:, None]
            known = (unit < H)[None, :] & (k < H)[:, None]
            i = tl.dot(state, tl.load(at_weight, mask=known, other=0.0), i)
            f = tl.dot(state, tl.load(at_weight + H * H, mask=known, other=0.0), f)
            g = tl.dot(state, tl.load(at_weight + 2 * H * H, mask=known, other=0.0), g)
            o = tl.dot(state, tl.load(at_weight + 3 * H * H, mask=known, other=0.0), o)
        cell = tl.load(cells + came * H + unit[None, :], mask=there, other=0.0)
    i, f, g, o = tl.sigmoid(i), tl.sigmoid(f), 2 * tl.sigmoid(2 * g) - 1, tl.sigmoid(o)
    cell = f * cell + i * g
    tl.store(acted + at, i, mask=there)
    tl.store(acted + at + H, f, mask=there)
    tl.store(acted + at + 2 * H, g, mask=there)
    tl.store(acted + at + 3 * H, o, mask=there)
    tl.store(cells + row * H + unit[None, :], cell, mask=there)
    tl.store(states + row * H + unit[None, :], o * (2 * tl.sigmoid(2 * cell) - 1), mask=there)


@triton.jit(do_not_specialize=["step"])
def _backward(
    of_states, weight, acted, cells, of_gates, of_cells, step, T, B,
    H: tl.constexpr, UNITS: tl.constexpr, SERIES: tl.constexpr, INPUTS: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one step's gates from those of the following step's gates and of the states."""
    way = tl.program_id(1)
    t, onward = step + way * (T - 1 - 2 * step), 1 - 2 * way
    unit, series = tl.program_id(0) * UNITS + tl.arange(0, UNITS), tl.program_id(2) * SERIES + tl.arange(0, SERIES)
    there = (series < B)[:, None] & (unit < H)[None, :]
    row = ((way * T + t) * B + series)[:, None]
    came, follows = row - onward * B, row + onward * B
    at, own = row * (4 * H) + unit[None, :], (way * B + series)[:, None] * H + unit[None, :]
    of_state = tl.load(of_states + row * H + unit[None, :], mask=there, other=0.0)
    of_cell = tl.zeros((SERIES, UNITS), tl.float32)
    if step < T - 1:
        for first in range(0, 4 * H, INPUTS):
            k = first + tl.arange(0, INPUTS)
            valid = (series < B)[:, None] & (k < 4 * H)[None, :]
            next_gates = tl.load(of_gates + follows * (4 * H) + k[None, :], mask=valid, other=0.0)
            known = (k < 4 * H)[:, None] & (unit < H)[None, :]
            weights = tl.load(weight + (way * 4 * H + k)[:, None] * H + unit[None, :], mask=known, other=0.0)
            of_state = tl.dot(next_gates, weights, of_state)
        of_cell = tl.load(of_cells + own, mask=there, other=0.0)
    i = tl.load(acted + at, mask=there, other=0.0)
    f = tl.load(acted + at + H, mask=there, other=0.0)
    g = tl.load(acted + at + 2 * H, mask=there, other=0.0)
    o = tl.load(acted + at + 3 * H, mask=there, other=0.0)
    squashed = 2 * tl.sigmoid(2 * tl.load(cells + row * H + unit[None, :], mask=there, other=0.0)) - 1
    cell = tl.zeros((SERIES, UNITS), tl.float32)
    if step > 0:
        cell = tl.load(cells + came * H + unit[None, :], mask=there, other=0.0)
    of_cell += of_state * o * (1 - squashed * squashed)
    tl.store(of_gates + at, of_cell * g * i * (1 - i), mask=there)
    tl.store(of_gates + at + H, of_cell * cell * f * (1 - f), mask=there)
    tl.store(of_gates + at + 2 * H, of_cell * i * (1 - g * g), mask=there)
    tl.store(of_gates + at + 3 * H, of_state * squashed * o * (1 - o), mask=there)
    tl.store(of_cells + own, of_cell * f, mask=there)


def probe(device: torch.device) -> torch.Tensor:
    """Return a tensor with the number 1, computed by a kernel."""
    number = torch.zeros(1, dtype=torch.float32, device=device)
    with torch.cuda.device_of(number):
        _add_one[(1,)](number)
    return number


@triton.jit
def _add_one(number):
    tl.store(number, tl.load(number) + 1.0)
