"""How many threads torch uses: chosen by the size of the work, never by the load, and given back.

Every thread of a program has a number of its own, which it takes over from the process at its first operation; setting
it sets that of the process too. So a thread that starts while another one works with one thread would keep that.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch

SMALL = 2**17  # entries of a batch (series * time * features) below which more than one thread gains nothing

_lock = threading.RLock()  # held while numbers are read and set
_open: set[object] = set()  # the blocks that run on one thread now, in all threads
_usual = 1  # number of threads outside of such blocks, when the last one began
_known = threading.local()  # the number of each thread, once it was read


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
    if n_entries >= SMALL:
        number_of_threads()
        yield
        return
    with _on_one_thread():
        yield


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
    with _on_one_thread(), ThreadPoolExecutor(n_workers, initializer=_use_one_thread) as workers:
        yield workers


def _use_one_thread() -> None:
    with _lock:
        torch.set_num_threads(1)


@contextmanager
def _on_one_thread() -> Iterator[None]:
    global _usual
    number, block = number_of_threads(), object()
    if number == 1:  # also within another such block
        yield
        return
    try:
        with _lock:
            if not _open:
                _usual = number
            _open.add(block)
            torch.set_num_threads(1)
        yield
    finally:
        with _lock:
            torch.set_num_threads(number)
            _open.discard(block)


def number_of_threads() -> int:
    """Return the number of threads of this thread; corrected if it was taken over from a block of another one."""
    with _lock:
        number = torch.get_num_threads()
        if number == 1 < _usual and not hasattr(_known, "number"):
            number = _usual if _open else _number_of_a_new_thread()
            torch.set_num_threads(number)
        _known.number = number
        return number


def _number_of_a_new_thread() -> int:
    with ThreadPoolExecutor(1) as new:
        return new.submit(torch.get_num_threads).result()
