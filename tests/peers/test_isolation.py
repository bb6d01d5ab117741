"""isolated: what is global is restored, also if two threads meet."""

import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import torch

from sparcets.peers.isolation import isolated


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
