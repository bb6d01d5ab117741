"""Triton kernels for the operations that dominate the run time on a GPU; elsewhere plain PyTorch is used."""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib.util import find_spec

import torch

log = logging.getLogger(__name__)
CAPABLE = (8, 0)  # compute capability from which on bfloat16 and TF32 products exist


@lru_cache(maxsize=64)
def available(device: torch.device) -> bool:
    """Return whether Triton kernels run on a device; tried once, since the C compiler they need may be missing.

    >>> available(torch.device("cpu"))
    False
    """
    if device.type != "cuda" or find_spec("triton") is None or torch.cuda.get_device_capability(device) < CAPABLE:
        return False
    from sparcets.training.fused_lstm import probe

    try:
        probe(device)
    except Exception as error:  # Triton, a C compiler or a read-only folder may raise anything
        log.warning("Triton kernels are not available, which is slower: %s", str(error).partition("\n")[0])
        return False
    return True
