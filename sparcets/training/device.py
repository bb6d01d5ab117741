"""Choice of the device, and seeding that restores torch's global random state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from sparcets.errors import CapabilityError


def resolve_device(name: str) -> torch.device:
    """Return the torch device of a name; ``"auto"`` is the first GPU if there is one.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise CapabilityError(f"no device {name!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:1'.") from error
    if device.type not in ("cpu", "cuda"):
        raise CapabilityError(f"device {name!r} is not supported. Use 'auto', 'cpu', 'cuda' or 'cuda:1'.")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise CapabilityError(f"device {name!r} is not available: torch sees no CUDA device here. Use device='cpu'.")
    if device.type == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise CapabilityError(f"device {name!r} is not available: there are {torch.cuda.device_count()} CUDA devices.")
    return device


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block under its own torch seed; afterwards the global random state is as it was."""
    # Not torch.manual_seed: it seeds every GPU, and only the state of this one is restored.
    if device.type != "cuda":
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            yield
        return
    with torch.random.fork_rng(devices=[device]), torch.cuda.device(device):
        torch.default_generator.manual_seed(seed)
        torch.cuda.manual_seed(seed)
        yield
