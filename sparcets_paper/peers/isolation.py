"""Run code of other packages with a time limit and without side effects on random state and output."""

from __future__ import annotations

import contextlib
import io
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from sparcets.core.errors import filters_kept
from sparcets.core.seeding import RANDOM_STATE_LOCK
from sparcets.training.device import seeded

REPEAT = 1.0  # seconds after which the alarm is raised again, if the function caught the first one


class TimeUp(BaseException):
    """The time limit was reached. Not an Exception, so that ``except Exception`` in a peer does not catch it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[Callable[[], None]]:
    """Raise :class:`TimeUp` in a block that takes longer than ``seconds``; yield a function that checks the time.

    In the main thread, an alarm interrupts the block at any point. In other threads there are no alarms, and the block
    ends when it calls the function.
    """
    deadline = time.monotonic() + seconds

    def check() -> None:
        if time.monotonic() > deadline:
            raise TimeUp

    alarm_possible = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if alarm_possible else contextlib.nullcontext():
        yield check


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    start, armed = time.monotonic(), True

    def ring(*_: Any) -> None:
        if armed:
            raise TimeUp

    # The other alarm is stopped before its handler is replaced: if it rings until then, its own handler is called.
    delay, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    handler = signal.signal(signal.SIGALRM, ring)
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, REPEAT)
            yield
        finally:
            armed = False
    finally:  # reached even if the alarm was raised in the line above
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler if handler is not None else signal.SIG_DFL)
        if delay:  # another alarm was set before: restore it with the remaining time
            signal.setitimer(signal.ITIMER_REAL, max(delay - (time.monotonic() - start), 1e-3), interval)


@contextmanager
def isolated(seed: int, device: torch.device) -> Iterator[None]:
    """Run a block with its own seed, gradients enabled, and output and warnings suppressed; restore all of it after.

    Output streams and warnings are global, so the output of other threads is suppressed too.
    """
    with (
        RANDOM_STATE_LOCK,  # first: of two blocks at once, the last to end would restore what the other had set
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        filters_kept(ignore=Warning),
        _random_state_restored(),
        seeded(seed, device),
        torch.enable_grad(),
        _in1d(),
    ):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - the peers draw from the global generator
        yield


@contextmanager
def _random_state_restored() -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002


@contextmanager
def _in1d() -> Iterator[None]:
    """Define ``np.in1d``, which Multi-SpaCE calls and recent versions of NumPy no longer have."""
    if hasattr(np, "in1d"):
        yield
        return
    vars(np)["in1d"] = lambda a, b: np.isin(np.ravel(a), b)
    try:
        yield
    finally:
        del vars(np)["in1d"]
