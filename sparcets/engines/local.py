"""Work side by side in processes of this machine; one that dies costs its piece of work, not the others'."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from sparcets.errors import CapabilityError, ConfigError

T = TypeVar("T")
R = TypeVar("R")
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def map_unordered(
    function: Callable[[T], R], items: Iterable[T], *, workers: int = 1, on_start: Callable[[T], None] | None = None
) -> Iterator[tuple[T, R | Exception]]:
    """Apply a function to items, and yield each with its result, or with what it raised, as they are finished.

    With several workers each is a process of its own, started afresh (spawned, so that this process' CUDA state is
    not inherited), that serves many items. One that dies is told as a ``ChildProcessError`` and replaced; so is one
    whose function raised, since nobody knows what it left behind.

    Parameters
    ----------
    function
        Defined at the level of a module, so that other processes find it.
    items
        What to apply it to; they and the results travel between processes. A deque is emptied from its left, and what
        is appended to it between two results is done too.
    workers
        Processes; 1 works in this one. They share the cores out among them.
    on_start
        Called with every item when its work begins.

    Examples
    --------
    >>> import math
    >>> sorted(map_unordered(math.sqrt, [4, 9]))
    [(4, 2.0), (9, 3.0)]
    >>> isinstance(next(map_unordered(math.sqrt, [-4]))[1], ValueError)
    True
    """
    if workers < 1:
        raise ConfigError(f"workers must be >= 1, got {workers}.")
    todo = items if isinstance(items, deque) else deque(items)

    def begin() -> T:
        item = todo.popleft()
        if on_start is not None:
            on_start(item)
        return item

    if workers == 1:
        while todo:
            item = begin()
            result: R | Exception
            try:
                result = function(item)
            except Exception as error:
                result = error
            yield item, result
        return
    threads = share_of_cores(workers)
    team: list[_Worker] = []
    proven = False  # whether any worker ever came up
    try:
        while todo or any(worker.busy for worker in team):
            team = [worker for worker in team if worker.alive]
            for worker in [w for w in team if not w.busy][: len(todo)]:
                worker.give(begin())
            while todo and len(team) < workers:
                team.append(_Worker(function, threads))
                team[-1].give(begin())
            by_connection = {worker.connection: worker for worker in team if worker.busy}
            for connection in wait(list(by_connection)):
                worker = by_connection[connection]  # type: ignore[index]
                answer = worker.take()
                if answer is _READY:
                    proven = True
                    continue
                if not worker.ready and not proven:
                    raise CapabilityError(
                        f"no worker process could be started: {answer} If this is called from a script, put the call "
                        "under: if __name__ == '__main__':"
                    )
                yield worker.done(), answer
    finally:
        for worker in team:
            worker.stop()


def share_of_cores(workers: int) -> int:
    """Return the threads each worker gets: its share of the cores this process may use, within OMP_NUM_THREADS."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    limit = int(wanted) if wanted.isdigit() and int(wanted) > 0 else cores
    return max(1, min(cores // workers, limit))


_READY = object()


class _Worker:
    """A process and what it is at work on, seen from outside."""

    def __init__(self, function: Callable[[Any], Any], threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        with _environment(dict.fromkeys(_THREADS, str(threads))):  # read by the libraries when they are loaded
            self.process.start()
        theirs.close()  # so that its death is the end of the connection
        self.ready = self.busy = False
        self.alive = True
        self._item: Any = None
        self._send(function)

    def give(self, item: Any) -> None:
        self._item, self.busy = item, True
        self._send(item)

    def take(self) -> Any:
        """Return a result, what was raised, or ``_READY`` once, when it has come up."""
        try:
            kind, value = self.connection.recv()
        except (EOFError, OSError):
            self._retire()
            return ChildProcessError(_cause_of_death(self.process.exitcode))
        except Exception as error:  # an exception of a kind that cannot be put together again here
            kind, value = "raised", error
        if kind == "ready":
            self.ready = True
            return _READY
        if kind == "raised":
            self._retire()
        return value

    def done(self) -> Any:
        self.busy = False
        return self._item

    def stop(self) -> None:
        if self.busy:
            self.process.terminate()
        if self.alive:
            self._retire()

    def _send(self, what: Any) -> None:
        with suppress(OSError):  # it is dead; reading from it will tell
            self.connection.send(what)

    def _retire(self) -> None:
        self.alive = False
        self.connection.close()
        self.process.join(timeout=0.5)  # one that is dying should die of its own cause
        if self.process.is_alive():
            self.process.terminate()
            self.process.join(timeout=5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(connection: Connection[Any, Any]) -> None:
    """What a worker does, from its beginning to its end."""
    # Ctrl-C reaches every process of a terminal; the first one decides what becomes of the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):
        function = connection.recv()
        connection.send(("ready", None))
        while True:
            item = connection.recv()
            try:
                answer = ("result", function(item))
            except Exception as error:
                answer = ("raised", error)
            try:
                connection.send(answer)
            except OSError:
                raise
            except Exception as error:  # what cannot travel is told in words
                connection.send(("raised", RuntimeError(f"{answer[1]!r} cannot leave its process: {error}")))


def _leave_with_parent() -> None:
    """End this process when its parent is gone: nobody would take its results, and a next run needs the machine."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _cause_of_death(code: int | None) -> str:
    if code is not None and code < 0:
        name = signal.Signals(-code).name
        return f"the worker process was killed ({name}); if the machine ran out of memory, use fewer workers."
    return f"the worker process ended with exit code {code}."


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
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
