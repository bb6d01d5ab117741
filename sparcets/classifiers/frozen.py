"""Using somebody's module without leaving a trace in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode and its parameters out of reach of gradients; restore both afterwards.

    Recurrent layers on CUDA are the exception: cuDNN refuses the backward pass of one in evaluation mode. They stay in
    training mode with their dropout at 0, which computes the same, and no global switch is touched.
    """
    modules = list(module.modules())
    modes = [m.training for m in modules]
    recurrent = [m for m in modules if isinstance(m, nn.RNNBase)]
    dropouts = [m.dropout for m in recurrent]
    learning = [p for p in module.parameters() if p.requires_grad]
    try:
        for m in modules:
            m.training = False  # not m.eval(): a user's class may have overridden it
        if torch.is_grad_enabled():
            for m in recurrent:
                if any(p.is_cuda for p in m.parameters()):
                    m.training, m.dropout = True, 0.0
        for p in learning:
            p.requires_grad_(False)
        yield
    finally:
        for m, mode in zip(modules, modes, strict=True):
            m.training = mode
        for m, dropout in zip(recurrent, dropouts, strict=True):
            m.dropout = dropout
        for p in learning:
            p.requires_grad_(True)
