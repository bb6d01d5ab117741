"""A minimal kernel, to find out whether kernels can be compiled and launched."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


def probe(device: torch.device) -> torch.Tensor:
    """Return a tensor with the number 1, computed by a kernel."""
    number = torch.zeros(1, dtype=torch.float32, device=device)
    with torch.cuda.device_of(number):
        _add_one[(1,)](number)
    return number


@triton.jit
def _add_one(number):
    tl.store(number, tl.load(number) + 1.0)
