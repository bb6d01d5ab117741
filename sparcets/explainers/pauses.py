"""Where a search can be interrupted for a moment: something more urgent in the same thread comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_pause: ContextVar[Callable[[], None] | None] = ContextVar("pause", default=None)


@contextmanager
def pausing(call: Callable[[], None]) -> Iterator[None]:
    """Call a function whenever a search within the block pauses, that is, every few milliseconds.

    >>> with pausing(lambda: print("tea")):
    ...     pause()
    tea
    """
    before = _pause.set(call)
    try:
        yield
    finally:
        _pause.reset(before)


def pause() -> None:
    """Let something more urgent come first; called between the rounds of a search."""
    call = _pause.get()
    if call is not None:
        call()
