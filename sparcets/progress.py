"""Progress bars on stderr, drawn only where a person is looking; or told to a program that shows them elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias


class Bar(Protocol):
    """What long work tells about itself."""

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Move on, with an optional remark shown behind the bar."""


# Who wants to be told instead of shown a bar: title of the work, how much is done, of how much, and a remark.
Listener: TypeAlias = Callable[[str, float, float | None, str], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of all progress within the block, in place of every bar.

    >>> told = []
    >>> with listening(lambda title, done, total, note: told.append(f"{title}: {done:g} of {total:g}")):
    ...     with progress_bar("work", 3) as bar:
    ...         bar.advance(2)
    >>> told
    ['work: 0 of 3', 'work: 2 of 3']
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


class _Silent:
    def advance(self, steps: float = 1, note: str = "") -> None:
        pass


class _Told:
    def __init__(self, listener: Listener, title: str, total: float | None) -> None:
        self.listener, self.title, self.total, self.done = listener, title, total, 0.0
        listener(title, 0.0, total, "")

    def advance(self, steps: float = 1, note: str = "") -> None:
        self.done += steps
        self.listener(self.title, self.done, self.total, note)


@contextmanager
def progress_bar(title: str, total: float | None, *, show: bool | None = None) -> Iterator[Bar]:
    """Yield a bar to advance; ``show=None`` draws it only if stderr is a terminal.

    >>> with progress_bar("work", 3, show=False) as bar:
    ...     bar.advance(2, "nearly there")
    """
    listener = _listener.get()
    if listener is not None:
        yield _Told(listener, title, total)
        return
    watched = sys.stderr is not None and sys.stderr.isatty()  # programs without a console have no stderr
    if not (watched if show is None else show):
        yield _Silent()
        return
    # rich costs 0.1 s to import: paid only when there is something to draw.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TextColumn("/"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(title, total=total, note="")

        class _Drawn:
            def advance(self, steps: float = 1, note: str = "") -> None:
                progress.update(task, advance=steps, note=note)

        yield _Drawn()
