"""One thread for all that uses models: urgent work comes first, and patient work makes way for it where it pauses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")
Turn = tuple[Context, "Future[Any]", Callable[[], Any]]


class Turns:
    """Runs functions in one thread.

    Patient ones are interrupted between the rounds of their searches, and urgent ones run there, on top of them:
    nothing that was computed is lost.

    Examples
    --------
    >>> turns = Turns("service")
    >>> turns.submit(lambda: 2 + 3).result()
    5
    >>> turns.close()
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._urgent: deque[Turn] = deque()
        self._patient: deque[Turn] = deque()

    def submit(self, work: Callable[[], T], *, patient: bool = False) -> Future[T]:
        """Let a function run as soon as it is its turn."""
        future: Future[T] = Future()
        (self._patient if patient else self._urgent).append((copy_context(), future, work))
        self._thread.submit(self._next)
        return future

    def close(self) -> None:
        """Cancel what waits, and accept no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        for queue in (self._urgent, self._patient):
            while queue:
                queue.popleft()[1].cancel()

    def _next(self) -> None:
        if not self._run_first(self._urgent):
            self._run_first(self._patient)

    def _make_way(self) -> None:
        while self._run_first(self._urgent):
            pass

    def _run_first(self, queue: deque[Turn]) -> bool:
        """Run what has waited longest; return whether there was something."""
        try:
            context, future, work = queue.popleft()
        except IndexError:  # it has run already, on top of something patient
            return False
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(context.run(self._interruptible if queue is self._patient else _call, work))
            except BaseException as error:
                future.set_exception(error)
        return True

    def _interruptible(self, work: Callable[[], T]) -> T:
        from sparcets.explainers.pauses import pausing  # imports torch

        with pausing(self._make_way):
            return work()


def _call(work: Callable[[], T]) -> T:
    return work()
