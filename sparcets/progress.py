"""Progress bars on stderr, drawn only on a terminal; or progress events for a program that displays them itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, TypeAlias


class Bar(Protocol):
    """Receives the progress of a long computation."""

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Advance by ``steps``, with an optional note shown after the bar."""


# Called with title, steps done, total steps (None if unknown) and note, instead of drawing a bar.
Listener: TypeAlias = Callable[[str, float, float | None, str], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def report_progress_to(listener: Listener) -> Iterator[None]:
    """Report all progress within the block to ``listener`` instead of drawing bars.

    >>> events = []
    >>> with report_progress_to(lambda title, done, total, note: events.append(f"{title}: {done:g} of {total:g}")):
    ...     with progress_bar("work", 3) as bar:
    ...         bar.advance(2)
    >>> events
    ['work: 0 of 3', 'work: 2 of 3']
    """
    before = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(before)


class _SilentBar:
    def advance(self, steps: float = 1, note: str = "") -> None:
        pass


class _ReportingBar:
    def __init__(self, listener: Listener, title: str, total: float | None) -> None:
        self.listener, self.title, self.total, self.done = listener, title, total, 0.0
        listener(title, 0.0, total, "")

    def advance(self, steps: float = 1, note: str = "") -> None:
        self.done += steps
        self.listener(self.title, self.done, self.total, note)


@contextmanager
def progress_bar(title: str, total: float | None, *, show: bool | None = None) -> Iterator[Bar]:
    """Yield a progress bar; ``show=None`` draws it only if stderr is a terminal.

    >>> with progress_bar("work", 3, show=False) as bar:
    ...     bar.advance(2, "loss 0.5")
    """
    listener = _listener.get()
    if listener is not None:
        yield _ReportingBar(listener, title, total)
        return
    is_terminal = sys.stderr is not None and sys.stderr.isatty()  # programs without a console have no stderr
    if not (is_terminal if show is None else show):
        yield _SilentBar()
        return
    # Importing rich takes 0.1 s, so it is imported only when a bar is drawn.
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

        class _DrawnBar:
            def advance(self, steps: float = 1, note: str = "") -> None:
                progress.update(task, advance=steps, note=note)

        yield _DrawnBar()
