"""One seed in, independent child seeds out; the process' own random state is never touched for good."""

from __future__ import annotations

import hashlib

import numpy as np

from sparcets.errors import ConfigError


def spawn(seed: int, purpose: str) -> int:
    """Derive the seed of one purpose from the seed of the whole.

    Children of different purposes are independent, and adding a purpose does not change the others.

    >>> spawn(0, "generator") == spawn(0, "generator"), spawn(0, "generator") == spawn(0, "critic")
    (True, False)
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise ConfigError(f"seed must be a whole number, got {seed!r}.")
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a NumPy generator of its own for one purpose."""
    return np.random.default_rng(spawn(seed, purpose))
