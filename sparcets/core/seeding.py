"""Independent child seeds derived from one seed, without using the global random state."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from sparcets.core.errors import ConfigError, quoted

# Held while a global random state is changed, until it is restored: concurrent users would interfere.
RANDOM_STATE_LOCK = threading.RLock()


def spawn(seed: int, purpose: str) -> int:
    """Derive a child seed for one purpose.

    Child seeds of different purposes are independent, and adding a purpose does not change the others.

    >>> spawn(0, "generator") == spawn(0, "generator"), spawn(0, "generator") == spawn(0, "discriminator")
    (True, False)
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise ConfigError(f"seed must be a whole number, got {quoted(seed)}.")
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return int.from_bytes(digest[:4], "little")


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Return a NumPy random generator for one purpose."""
    return np.random.default_rng(spawn(seed, purpose))


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Restore the random states of Python and NumPy after a block, such as a first import of scikit-learn.

    One block runs at a time.
    """
    with RANDOM_STATE_LOCK:
        state, numpy_state = random.getstate(), np.random.get_state()  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(state)
            np.random.set_state(numpy_state)  # noqa: NPY002
