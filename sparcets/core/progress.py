"""Progress bars on stderr of a terminal or in a notebook; or progress events for a program that displays them itself.

Long computations also yield to urgent work here.

The environment variable ``SPARCETS_PROGRESS=0`` turns off all progress bars except with ``progress=True``.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from html import escape
from typing import Any, TypeAlias

OFF = ("0", "off", "false", "no")  # values of SPARCETS_PROGRESS
REDRAWN = 0.2  # seconds between two updates in a notebook, each of which is a message to the browser
WIDTH = 20  # characters of the bar in a notebook


def in_notebook() -> bool:
    """Return whether this code runs in the kernel of a notebook; a console of IPython is a terminal."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return getattr(get_shell() if get_shell else None, "kernel", None) is not None


def html_card(
    title: str, lines: Iterable[str] = (), *, heads: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()
) -> str:
    """Return a title, lines of text and a table as HTML; all texts are escaped.

    Without colours of its own, so that it is readable in light and dark notebooks. Numbers are aligned to the right.

    >>> html_card("Scores", ["a < b"])
    '<div><b>Scores</b><br>a &lt; b</div>'
    """
    parts = ["<br>".join([f"<b>{escape(title)}</b>", *map(escape, lines)])]
    if heads:
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in heads)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return f"<div>{''.join(parts)}</div>"


def _cell(value: object) -> str:
    align = "right" if isinstance(value, (int, float)) else "left"
    return f'<td style="text-align:{align}">{escape(str(value))}</td>'


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


class Bar:
    """Reports the progress of a long computation to a listener."""

    def __init__(self, listener: Listener, title: str, total: float | None) -> None:
        self.listener, self.title, self.total, self.done = listener, title, total, 0.0
        listener(title, 0.0, total, "")

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Advance by ``steps``, with an optional note shown after the bar."""
        self.done += steps
        self.listener(self.title, self.done, self.total, note)


def _ignore(*_: object) -> None:
    """Ignore an event."""


class _NotebookBar(Bar):
    """A line of text that is redrawn in place; needs no widgets."""

    def __init__(self, title: str, total: float | None) -> None:
        super().__init__(_ignore, title, total)
        self.note = ""
        self.began = self.drawn = time.monotonic()
        display = importlib.import_module("IPython.display").display
        self.line: Any = display({"text/plain": self.text()}, raw=True, display_id=True)

    def advance(self, steps: float = 1, note: str = "") -> None:
        self.done, self.note = self.done + steps, note
        if time.monotonic() - self.drawn >= REDRAWN:
            self.draw()

    def draw(self) -> None:
        self.drawn = time.monotonic()
        self.line.update({"text/plain": self.text()}, raw=True)

    def text(self) -> str:
        seconds = time.monotonic() - self.began
        parts = [self.title]
        if self.total:
            share = min(self.done / self.total, 1.0)
            filled = int(WIDTH * share)
            parts += ["█" * filled + "░" * (WIDTH - filled), f"{100 * share:.0f} %", f"{seconds:.0f} s"]
            if 0 < share < 1:
                parts.append(f"(about {seconds * (1 - share) / share:.0f} s left)")
        else:
            parts += [f"{self.done:g}", f"{seconds:.0f} s"]
        return "  ".join([*parts, self.note]).rstrip()


def _is_shown() -> bool:
    """Return the default for ``show=None``."""
    if os.environ.get("SPARCETS_PROGRESS", "").strip().lower() in OFF:
        return False
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())  # without a console, there is no stderr


@contextmanager
def progress_bar(title: str, total: float | None, *, show: bool | None = None) -> Iterator[Bar]:
    """Yield a progress bar; ``show=None`` draws it on a terminal and in a notebook, unless it is switched off.

    >>> with progress_bar("work", 3, show=False) as bar:
    ...     bar.advance(2, "loss 0.5")
    """
    listener = _listener.get()
    if listener is not None or not (_is_shown() if show is None else show):
        yield Bar(listener or _ignore, title, total)
        return
    if in_notebook():
        notebook_bar = _NotebookBar(title, total)
        try:
            yield notebook_bar
        finally:
            notebook_bar.draw()
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
        yield Bar(lambda _, done, __, note: progress.update(task, completed=done, note=note), title, total)


_urgent_work: ContextVar[Callable[[], None] | None] = ContextVar("urgent_work", default=None)


@contextmanager
def urgent_work(call: Callable[[], None]) -> Iterator[None]:
    """Call a function whenever a search within the block yields to urgent work, every few milliseconds.

    >>> with urgent_work(lambda: print("urgent")):
    ...     yield_to_urgent_work()
    urgent
    """
    before = _urgent_work.set(call)
    try:
        yield
    finally:
        _urgent_work.reset(before)


def yield_to_urgent_work() -> None:
    """Run urgent work of the caller, if any; called between the rounds of a search."""
    call = _urgent_work.get()
    if call is not None:
        call()
