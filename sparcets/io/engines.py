"""Engines: where independent pieces of work run: in processes on this machine, or on a cluster (``io/ray.py``)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.reduction import ForkingPickler
from typing import Any, ClassVar, Generic, TypeVar

from sparcets.core.errors import CapabilityError, ConfigError
from sparcets.core.registry import Registry

T = TypeVar("T")
R = TypeVar("R")
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Engine(ABC):
    """Runs independent pieces of work; a context manager, open while it works."""

    retries: ClassVar[bool] = False  # whether an item whose worker died is given to another one

    def __init__(self, *, address: str | None = None, device: str = "auto") -> None:
        self.address, self.device = address, device

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: Any) -> None:  # noqa: B027, engines that open nothing have nothing to close
        pass

    def n_workers(self, workers: int | None) -> int:
        """Return the number of workers that the engine uses if ``workers`` are asked for; None is its own choice."""
        if workers is None:
            return self._own_number()
        if workers < 1:
            raise ConfigError(f"workers must be >= 1, got {workers}.")
        return workers

    def _own_number(self) -> int:
        return 1

    def map_unordered(
        self,
        function: Callable[[T], R],
        items: Iterable[T],
        *,
        workers: int | None = None,
    ) -> Iterator[tuple[T, R | Exception]]:
        """Apply a function to items, and yield each item with its result, or with the exception raised, on completion.

        Every worker handles one item at a time, and takes the next when it has finished: only as many items are being
        worked on as there are workers. A worker whose function raised is replaced, because the state it left behind is
        unknown. An item whose worker died, for good, is yielded with a ``ChildProcessError``.

        The function is defined at module level, so that other processes can import it; items and results must be
        picklable. A deque is emptied from the left, and items appended to it between two results are processed too.
        """
        queue = items if isinstance(items, deque) else deque(items)
        return self._map(function, queue, self.n_workers(workers))

    @abstractmethod
    def _map(self, function: Callable[[T], R], queue: deque[T], workers: int) -> Iterator[tuple[T, R | Exception]]:
        """Do the work of :meth:`map_unordered` with a number of workers."""


ENGINES = Registry(
    "engine",
    {"local": "sparcets.io.engines:LocalEngine", "ray": "sparcets.io.ray:RayEngine"},
    about={"local": "processes on this machine", "ray": "a cluster of Ray (sparcets[ray])"},
)


def make_engine(name: str = "local", *, address: str | None = None, device: str = "auto") -> Engine:
    """Return an engine by its name, to be used in a ``with`` block.

    The address is that of a Ray cluster, as host:port; None is the one that this machine belongs to, or else one of its
    own. Unless the device of the networks is ``"cpu"``, a worker of a cluster with GPUs has one for itself.

    >>> import math
    >>> with make_engine("local") as engine:
    ...     sorted(engine.map_unordered(math.sqrt, [4, 9]))
    [(4, 2.0), (9, 3.0)]
    """
    engine: Engine = ENGINES.load(name)(address=address, device=device)
    return engine


class LocalEngine(Engine):
    """Processes on this machine; a worker that dies loses only its own item, and is replaced.

    One worker is this process. Several are spawned, so that they do not inherit its CUDA state; the cores are divided
    among them.
    """

    def __init__(self, *, address: str | None = None, device: str = "auto") -> None:
        if address is not None:
            raise ConfigError(f"the engine local has no address, got {address!r}. Choose the engine ray.")
        super().__init__(device=device)

    def _map(self, function: Callable[[T], R], queue: deque[T], workers: int) -> Iterator[tuple[T, R | Exception]]:
        if workers == 1:
            while queue:
                item = queue.popleft()
                yield item, attempt(function, item)[1]
            return
        threads, any_started = str(threads_per_worker(workers)), False
        idle: list[WorkerProcess[None]] = []
        busy: dict[Future[tuple[str, Any]], tuple[WorkerProcess[None], T]] = {}
        try:
            while queue or busy:
                while queue and (idle or len(busy) < workers):
                    if not idle:
                        with _interrupts_blocked():
                            idle.append(WorkerProcess(_prepare, function, threads=threads))
                    worker, item = idle.pop(), queue.popleft()
                    busy[worker.submit(_run, item)] = (worker, item)
                for future in wait(busy, return_when=FIRST_COMPLETED).done:
                    worker, item = busy.pop(future)
                    how, value = _outcome(worker, future)
                    any_started = any_started or (worker.first.done() and worker.first.exception() is None)
                    if not any_started:
                        raise CapabilityError(
                            f"no worker process could be started: {value} If this is called from a script, put the "
                            "call under: if __name__ == '__main__':"
                        )
                    if how == "result":
                        idle.append(worker)
                    else:
                        worker.kill()
                    yield item, value
        finally:
            for worker in [*idle, *(worker for worker, _ in busy.values())]:
                worker.kill()


def attempt(function: Callable[[Any], Any], item: Any, pickler: Any = None) -> tuple[str, Any]:
    """Return what a function returned for an item, as ``("result", value)``, or raised, as ``("raised", error)``.

    With a ``pickler``, what it cannot send to the parent process is an error as well.
    """
    try:
        outcome: tuple[str, Any] = ("result", function(item))
    except Exception as error:
        outcome = ("raised", error)
    try:
        if pickler is not None:
            pickler.loads(pickler.dumps(outcome[1]))
    except Exception as error:
        return "raised", RuntimeError(f"{outcome[1]!r} cannot be sent to the parent process: {error}")
    return outcome


def threads_per_worker(workers: int) -> int:
    """Return the number of threads per worker: its share of the available cores, at most OMP_NUM_THREADS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    variable = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(variable) if variable.isdigit() and int(variable) > 0 else cores
    return max(1, min(cores // workers, limit))


_starting = threading.Lock()  # the environment belongs to all threads
_function: Any = None  # of this process, if it is a worker


class WorkerProcess(Generic[T]):
    """A process that runs one function after the other; ``first`` is the future of the first of them.

    Ctrl-C in the terminal does not reach it: this process decides what happens to it, and at its own end, it ends too.
    """

    def __init__(self, first: Callable[..., T], *arguments: Any, threads: str) -> None:
        with starting_process(dict.fromkeys(THREADS, threads)):  # read on import
            resource_tracker.ensure_running()  # started with the first process; it would unblock interrupts
            self._executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_begin)
            self.first: Future[T] = self._executor.submit(first, *arguments)
        (self.process,) = self._executor._processes.values()

    def submit(self, function: Callable[..., R], *arguments: Any) -> Future[R]:
        """Run a function; the result raises ``BrokenProcessPool`` if the process has ended, or ends meanwhile."""
        try:
            return self._executor.submit(function, *arguments)
        except BrokenProcessPool as error:
            failed: Future[R] = Future()
            failed.set_exception(error)
            return failed

    def exit_code(self) -> int | None:
        """Return the exit code of a process that has ended."""
        self._executor.shutdown()  # its thread waits for the process; if two threads wait, one learns no exit code
        return self.process.exitcode

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()
        self._executor.shutdown(wait=False, cancel_futures=True)


def _outcome(worker: WorkerProcess[Any], future: Future[tuple[str, Any]]) -> tuple[str, Any]:
    """Return what became of an item: its result, or what was raised."""
    try:
        return future.result()
    except BrokenProcessPool:
        return "raised", ChildProcessError(_exit_cause(worker.exit_code()))
    except Exception as error:  # an item that cannot be pickled
        return "raised", error


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # until here, it was blocked
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _prepare(function: Callable[[Any], Any]) -> None:
    global _function
    _function = function


def _run(item: Any) -> tuple[str, Any]:
    return attempt(_function, item, ForkingPickler)


def _exit_with_parent() -> None:
    """Exit when the parent process ends: the results would be lost, and the worker would occupy the machine."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _exit_cause(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"the worker process was killed ({name}); if the machine ran out of memory, use fewer workers."
    return f"the worker process ended with exit code {code}."


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Delay Ctrl-C to the end of a block; the processes that it starts never see it.

    Interrupted while it starts, a process would be unknown to its parent, or show a traceback of its own.
    """
    handler = signal.getsignal(signal.SIGINT)
    in_main_thread = threading.current_thread() is threading.main_thread()
    if handler is None or not in_main_thread or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    delayed: list[int] = []
    # Blocking is inherited by the new process; but the signal may still reach another thread, which wakes the main one.
    signal.signal(signal.SIGINT, lambda number, _: delayed.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGINT, handler)
        if delayed:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def starting_process(environment: dict[str, str] | None = None) -> Iterator[None]:
    """Set the environment of processes that are started meanwhile, one at a time.

    They import nothing from the current folder, in which others may be able to write: Python looks there first. Python
    3.10 does not know the setting.
    """
    values = {"PYTHONSAFEPATH": "1", **(environment or {})}
    with _starting:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
