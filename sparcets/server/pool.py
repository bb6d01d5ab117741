"""The workers as the server sees them: each a process, which is replaced when it dies."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets import __version__
from sparcets.core.errors import SparcetsError
from sparcets.io.engines import WorkerProcess
from sparcets.server.answers import Outcome, Query, answer_batch

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer


_explainer: BaseExplainer[Any]  # of this process, if it is a worker


def load(folder: Path, device: str, own_model: str | None = None) -> dict[str, Any]:
    """Load a fit into this process, and let it give its first answer, which takes longer than all others.

    Of a fit to a model of the user's own, only ``own_model`` may be run. Returns what is served.
    """
    import torch

    from sparcets.methods.folder import load_fit

    global _explainer
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the server lets workers finish what they have begun
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    torch.set_num_threads(1)  # several workers, and small networks: more would wait for each other
    _explainer = load_fit(folder, device=device, model=own_model)[1]
    info = _explainer._fitted()
    with suppress(SparcetsError):  # a model that needs side inputs, or a target
        mean = np.broadcast_to(np.asarray(info.scaler.center), (1, info.n_steps, info.n_features))
        _explainer.explain(mean, progress=False).text(0)
    return describe(_explainer)


def answer(question: str, queries: Sequence[Query]) -> list[Outcome]:
    """Answer a batch in the process of a worker."""
    return answer_batch(_explainer, question, queries)


def describe(explainer: BaseExplainer[Any]) -> dict[str, Any]:
    """Return what :class:`~sparcets.server.models.ModelResponse` holds."""
    info = explainer._fitted()
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


log = logging.getLogger(__name__)
SIGNALS = (signal.SIGINT, signal.SIGTERM)  # that stop the server
LONGEST_PAUSE = 30.0  # seconds between two attempts to start a worker


class Worker:
    """A process that explains, one batch after the other; its arguments are those of :func:`load`."""

    def __init__(self, folder: Path, device: str, own_model: str | None = None) -> None:
        self._arguments = (folder, device, own_model)
        self._process: WorkerProcess[dict[str, Any]] | None = None
        self._closed = threading.Event()

    def start(self) -> dict[str, Any]:
        """Start the process, and return what describes the model once it is loaded.

        To be called in a thread in which the signals that stop the server are blocked, as they then are in the process.
        """
        self._process = WorkerProcess(load, *self._arguments, threads="1")
        try:
            return self._process.first.result()
        except BaseException:
            self._process.kill()
            raise

    def replace(self, started: Callable[[], object]) -> None:
        """Start a process in the place of one that died, as often as needed, and call ``started``."""
        threading.Thread(target=self._replace, args=(started,), daemon=True).start()

    def ask(self, question: str, queries: Sequence[Query]) -> Future[list[Outcome]]:
        """Explain a batch; the result raises ``BrokenProcessPool`` if the process has ended, or ends meanwhile."""
        assert self._process is not None  # it has started
        return self._process.submit(answer, question, queries)

    def watch(self, ended: Callable[[], object]) -> None:
        """Call ``ended`` in another thread when the present process ends, also if nobody asks it anything."""
        assert self._process is not None  # it has started
        sentinel = self._process.process.sentinel

        def wait_for_end() -> None:
            wait([sentinel])
            if not self._closed.is_set():
                ended()

        threading.Thread(target=wait_for_end, daemon=True).start()

    def close(self) -> None:
        """End the process at once, and take no more batches."""
        self._closed.set()
        if self._process is not None:
            self._process.kill()

    def _replace(self, started: Callable[[], object]) -> None:
        block_signals()
        pause = 1.0
        while not self._closed.is_set():
            try:
                self.start()
            except Exception as error:
                log.warning("a worker could not be started: %s", error)
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                started()
                return


def start_workers(
    folder: Path, device: str, number: int, own_model: str | None = None
) -> tuple[list[Worker], dict[str, Any]]:
    """Start workers, and return them with what the first says of the model; raise if it cannot be loaded."""
    workers = [Worker(folder, device, own_model) for _ in range(number)]
    threads = ThreadPoolExecutor(number, initializer=block_signals)
    try:
        models = list(threads.map(Worker.start, workers))
    except BaseException as error:
        close_workers(workers)
        if isinstance(error, Exception) and not isinstance(error, SparcetsError):
            raise SparcetsError(f"a worker could not load {folder}: {error}; memory may not suffice.") from error
        raise
    finally:
        threads.shutdown(wait=False)
    return workers, models[0]


def close_workers(workers: Sequence[Worker]) -> None:
    """End all processes at once."""
    for worker in workers:
        worker.close()


def block_signals() -> None:
    """Block the signals that stop the server in this thread and in what it starts: workers end with the server."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
