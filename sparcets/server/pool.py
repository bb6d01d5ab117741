"""The workers as the server sees them: each a process with a thread that waits for it, and replaced when it dies."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets import __version__
from sparcets.core import errors
from sparcets.core.errors import SparcetsError
from sparcets.io.engines import THREADS, starting_process
from sparcets.server.answers import Outcome, Query

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer


def run_worker(connection: Connection[Any, Any], folder: Path, device: str, own_model: str | None = None) -> None:
    """Load the fit, say so, and answer batches until the server ends.

    Parameters
    ----------
    connection
        To the server: receives (question, queries), sends their outcomes.
    folder
        Written by ``sparcets fit``.
    device
        Of the networks.
    own_model
        Python file and function of the user's own model, which may be run; None allows nothing.
    """
    # The server decides when its workers end; it lets them finish what they have begun.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    with suppress(EOFError, OSError):  # the server has ended
        try:
            explainer = load(folder, device, own_model)
        except SparcetsError as error:
            connection.send(("failed", type(error).__name__, str(error)))
            return
        connection.send(("ready", describe(explainer)))
        from sparcets.server.answers import answer_batch

        while True:
            question, queries = connection.recv()
            connection.send(answer_batch(explainer, question, queries))


def load(folder: Path, device: str, own_model: str | None = None) -> BaseExplainer[Any]:
    """Return the explainer of a fit, after its first answer, which takes longer than all others."""
    import torch

    from sparcets.methods.folder import load_fit

    torch.set_num_threads(1)  # several workers, and small networks: more would wait for each other
    explainer = load_fit(folder, device=device, model=own_model)[1]
    info = explainer.info_
    assert info is not None  # of every explainer that was loaded
    with suppress(SparcetsError):  # a model that needs side inputs, or a target
        mean = np.broadcast_to(np.asarray(info.scaler.center), (1, info.n_steps, info.n_features))
        explainer.explain(mean, progress=False).text(0)
    return explainer


def describe(explainer: BaseExplainer[Any]) -> dict[str, Any]:
    """Return what :class:`~sparcets.server.models.ModelResponse` holds."""
    info = explainer.info_
    assert info is not None
    of_series = info.of_series
    return {
        "method": explainer.method,
        "version": __version__,
        "n_steps": info.n_steps,
        "lengths": "any" if info.unequal else "equal",
        "features": list(of_series.feature_names),
        "units": None if of_series.units is None else list(of_series.units),
        "sampling_rate": info.sampling_rate,
        "mutable": of_series.mutable.tolist(),
        "classes": list(info.class_names),
        "outputs": [] if info.outcome is None else list(info.outcome.names),
        "side": [] if info.side is None else list(info.side.names),
        "summary": explainer.summary(),
    }


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


log = logging.getLogger(__name__)
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a worker


class WorkerDiedError(Exception):
    """The process ended before it answered."""


class Worker:
    """A process that explains, and the thread that talks to it.

    Parameters
    ----------
    folder, device, own_model
        Of :func:`~sparcets.server.pool.run_worker`.
    """

    def __init__(self, folder: Path, device: str, own_model: str | None = None) -> None:
        self._arguments = (folder, device, own_model)
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
        self._connection, other = context.Pipe()
        self._process = context.Process(target=run_worker, args=(other, *self._arguments), daemon=True)
        with starting_process(dict.fromkeys(THREADS, "1")):  # read on import
            resource_tracker.ensure_running()  # else the first process would start it, which unblocks Ctrl-C
            _block_interrupts()
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


def start_workers(
    folder: Path, device: str, number: int, own_model: str | None = None
) -> tuple[list[Worker], dict[str, Any]]:
    """Start workers, and return them with what the first says of the model; raise if it cannot be loaded."""
    workers = [Worker(folder, device, own_model) for _ in range(number)]
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
