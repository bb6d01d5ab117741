"""How many threads torch uses: chosen by the size of the work, never by the load, and given back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

SMALL = 2**16  # entries of a batch (series * time * features) below which more than one thread gains nothing


@contextmanager
def threads_for(n_entries: int) -> Iterator[None]:
    """Run a block on one thread if its batches are small; afterwards the number of threads is as it was.

    Several threads of a small network wait for each other after every operation, and beside other work on the same
    cores they wait for the slowest. The number of threads can change the last bits of a result, so that it must not
    depend on how busy the machine is.

    Parameters
    ----------
    n_entries
        Entries of a batch: series times steps times features.

    Examples
    --------
    >>> before = torch.get_num_threads()
    >>> with threads_for(32 * 50 * 4):
    ...     print(torch.get_num_threads())
    1
    >>> torch.get_num_threads() == before
    True
    """
    before = torch.get_num_threads()
    if n_entries >= SMALL or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
