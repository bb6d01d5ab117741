"""How many threads torch uses: chosen by the size of the work, never by the load, and given back."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch

SMALL = 2**17  # entries of a batch (series * time * features) below which more than one thread gains nothing


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


@contextmanager
def one_thread_each(n_workers: int) -> Iterator[Executor]:
    """Run a block on one thread, beside workers with one thread each; afterwards the number of threads is as it was.

    Small independent parts of a work gain more from running side by side than each from several threads.

    Examples
    --------
    >>> with one_thread_each(n_workers=1) as worker:
    ...     part = worker.submit(torch.get_num_threads)
    ...     print(torch.get_num_threads(), part.result())
    1 1
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(n_workers, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            yield workers
    finally:
        torch.set_num_threads(before)
