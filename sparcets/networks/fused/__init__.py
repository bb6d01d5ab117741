"""Kernels of our own, in Triton, for what takes the time on a GPU; elsewhere plain PyTorch does the same."""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib.util import find_spec

import torch

log = logging.getLogger(__name__)
CAPABLE = (8, 0)  # from this generation of GPUs on there are products of bfloat16 and TF32


@lru_cache(maxsize=64)
def available(device: torch.device) -> bool:
    """Whether kernels run there; tried once, as Triton comes with PyTorch, but the compiler it needs may be missing.

    >>> available(torch.device("cpu"))
    False
    """
    if device.type != "cuda" or find_spec("triton") is None or torch.cuda.get_device_capability(device) < CAPABLE:
        return False
    from sparcets.networks.fused.probe import probe

    try:
        probe(device)
    except Exception as error:  # whatever Triton, a C compiler or a folder that cannot be written may raise
        log.warning("without kernels of our own, which is slower: %s", str(error).partition("\n")[0])
        return False
    return True
