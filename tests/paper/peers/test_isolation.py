"""isolated and time_limit: what is global is restored, also if two threads or two alarms meet."""

import signal
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from sparcets_paper.peers import cfts
from sparcets_paper.peers.cfts import isolated, time_limit


def test_output_and_warnings_are_restored_if_a_thread_waits_for_another() -> None:
    before = sys.stdout, sys.stderr, list(warnings.filters)
    starting = threading.Event()

    def second() -> None:
        starting.set()
        with isolated(1, torch.device("cpu")):
            pass

    with ThreadPoolExecutor(1) as other:
        with isolated(0, torch.device("cpu")):
            waiting = other.submit(second)
            starting.wait(10)
            threading.Event().wait(0.2)  # it waits for the end of this block
        waiting.result()
    assert (sys.stdout, sys.stderr, list(warnings.filters)) == before


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms on this system")
@pytest.mark.parametrize("moment", range(4))
def test_an_alarm_that_is_due_while_the_limit_is_set_up_is_not_lost(
    moment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rang: list[int] = []
    calls = 0

    def due_before(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            nonlocal calls
            if calls == moment and signal.getitimer(signal.ITIMER_REAL)[0] > 1e5:  # the caller's, not yet stopped
                signal.setitimer(signal.ITIMER_REAL, 1e-6)
                while signal.getitimer(signal.ITIMER_REAL)[0]:
                    time.sleep(1e-3)
            calls += 1
            return function(*arguments)

        return call

    watched = {name: due_before(getattr(signal, name)) for name in ("signal", "setitimer", "getitimer")}
    monkeypatch.setattr(cfts, "signal", SimpleNamespace(**{**vars(signal), **watched}))
    handler = signal.signal(signal.SIGALRM, ring := lambda *_: rang.append(1))
    delay, interval = signal.setitimer(signal.ITIMER_REAL, 1e6)  # that of pytest's own limit is restored below
    try:
        with time_limit(1000):
            pass
        left = signal.getitimer(signal.ITIMER_REAL)[0]
        assert signal.getsignal(signal.SIGALRM) is ring
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, delay, interval)
    assert rang == [1] or left > 1e5  # it rang, or has yet to ring
