"""The workers as the server sees them: each a process with a thread that waits for it, and replaced when it dies."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from sparcets import errors
from sparcets.errors import SparcetsError
from sparcets.server.answers import Outcome, Query
from sparcets.server.worker import run_worker

log = logging.getLogger(__name__)
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a worker


class WorkerDiedError(Exception):
    """The process ended before it answered."""


class Worker:
    """A process that explains, and the thread that talks to it.

    Parameters
    ----------
    folder, device
        Of :func:`~sparcets.server.worker.run_worker`.
    """

    def __init__(self, folder: Path, device: str) -> None:
        self._arguments = (folder, device)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="worker")
        self._process: Any = None
        self._connection: Any = None
        self._closed = threading.Event()

    @property
    def pid(self) -> int | None:
        """Number of the process; None while there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> Future[dict[str, Any]]:
        """Start the process; the result describes the model once it is loaded, or says why it cannot be."""
        return self._thread.submit(self._start)

    def replace(self, started: Callable[[], object]) -> None:
        """Start a process in the place of one that died, as often as needed, and call ``started``."""
        self._thread.submit(self._replace, started)

    def ask(self, question: str, queries: Sequence[Query]) -> Future[list[Outcome]]:
        """Explain a batch; raises :class:`WorkerDiedError` if the process ends meanwhile."""
        return self._thread.submit(self._ask, question, queries)

    def watch(self, ended: Callable[[], object]) -> None:
        """Call ``ended`` in another thread when the present process ends, also if nobody asks it anything."""
        sentinel = self._process.sentinel

        def wait_for_end() -> None:
            wait([sentinel])
            if not self._closed.is_set():
                ended()

        threading.Thread(target=wait_for_end, daemon=True).start()

    def close(self) -> None:
        """End the process at once."""
        self._closed.set()
        if self._process is not None:
            self._process.kill()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _start(self) -> dict[str, Any]:
        if self._process is not None:
            self._process.kill()  # one that failed, but has not ended
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # else the first process would start it, which unblocks Ctrl-C
        _block_interrupts()
        self._connection, other = context.Pipe()
        self._process = context.Process(target=run_worker, args=(other, *self._arguments), daemon=True)
        self._process.start()
        other.close()  # so that recv raises EOFError when the process ends
        if self._closed.is_set():
            self._process.kill()
        try:
            kind, *said = self._connection.recv()
        except (EOFError, OSError) as error:
            self._process.join()
            raise WorkerDiedError(f"it ended with exit code {self._process.exitcode}") from error
        if kind == "failed":
            name, message = said
            raise getattr(errors, name, SparcetsError)(message)
        described: dict[str, Any] = said[0]
        return described

    def _replace(self, started: Callable[[], object]) -> None:
        pause = 1.0
        while not self._closed.is_set():
            try:
                self._start()
            except (WorkerDiedError, SparcetsError, OSError) as error:
                log.warning("a worker could not be started: %s", error)
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                started()
                return

    def _ask(self, question: str, queries: Sequence[Query]) -> list[Outcome]:
        try:
            self._connection.send((question, queries))
            outcomes: list[Outcome] = self._connection.recv()
        except (EOFError, OSError) as error:
            self._connection.close()
            with suppress(OSError):
                self._process.kill()
            self._process.join()
            raise WorkerDiedError(f"it ended with exit code {self._process.exitcode}") from error
        return outcomes


def start_workers(folder: Path, device: str, number: int) -> tuple[list[Worker], dict[str, Any]]:
    """Start workers, and return them with what the first says of the model; raise if it cannot be loaded."""
    for name in THREADS:
        os.environ[name] = "1"  # read by a worker when it imports NumPy
    workers = [Worker(folder, device) for _ in range(number)]
    described = [worker.start() for worker in workers]
    try:
        models = [future.result() for future in described]
    except BaseException as error:
        for worker in workers:
            worker.close()
        if isinstance(error, WorkerDiedError):
            raise SparcetsError(f"a worker could not load {folder}: {error}; memory may not suffice.") from error
        raise
    return workers, models[0]


def _block_interrupts() -> None:
    """Block the signals that stop the server in this thread and in what it starts: workers end with the server."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
