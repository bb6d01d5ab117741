"""Running somebody else's function so that it can neither go on for ever nor leave a trace."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sparcets.training.device import seeded

AGAIN = 1.0  # seconds after which the alarm rings again, in case the function swallowed it


class TimeUp(BaseException):
    """The time is up. Not an Exception, so that ``except Exception`` in a peer does not swallow it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[Callable[[], None]]:
    """Raise :class:`TimeUp` in a block that takes longer, and give it a function that raises it when it is due.

    In the main thread an alarm interrupts the block wherever it is. Elsewhere no alarm can: there, only the function
    that is given to the block, called often enough, ends it.
    """
    ends = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > ends:
            raise TimeUp

    alarm_possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if alarm_possible else contextlib.nullcontext():
        yield check


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    begun, armed = time.monotonic(), True

    def ring(*_: Any) -> None:
        if armed:
            raise TimeUp

    handler = signal.signal(signal.SIGALRM, ring)
    delay, interval = signal.getitimer(signal.ITIMER_REAL)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
            yield
        finally:
            armed = False
    finally:  # reached even if the alarm rang in the line above
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        if delay:  # somebody else's alarm was set: it goes on, the time since taken off
            signal.setitimer(signal.ITIMER_REAL, max(delay - (time.monotonic() - begun), 1e-3), interval)


@contextmanager
def isolated(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block under its own seeds, with gradients, and without a word; random state and streams are given back.

    Streams and warnings belong to the whole process, so that other threads are silent too as long as it lasts.
    """
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
        _random_state_given_back(),
        seeded(seed, device),
        torch.enable_grad(),
        _in1d(),
    ):
        warnings.simplefilter("ignore")
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the peers draw from the global generator
        yield


@contextmanager
def _random_state_given_back() -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def _in1d() -> Iterator[None]:
    """Lend NumPy its function ``in1d``, which new versions no longer have and Multi-SpaCE calls."""
    if hasattr(np, "in1d"):
        yield
        return
    vars(np)["in1d"] = lambda a, b: np.isin(np.ravel(a), b)
    try:
        yield
    finally:
        del vars(np)["in1d"]
