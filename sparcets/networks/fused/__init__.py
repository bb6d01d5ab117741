"""Kernels of our own, in Triton, for what takes the time on a GPU; elsewhere plain PyTorch does the same."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec

import torch


def available(device: torch.device) -> bool:
    """Whether kernels can run there: PyTorch for CUDA brings Triton along, but not on every platform.

    >>> available(torch.device("cpu"))
    False
    """
    return device.type == "cuda" and _installed()


@lru_cache(maxsize=1)
def _installed() -> bool:
    return find_spec("triton") is not None
