"""Progress bars on stderr, drawn only where a person is looking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """What long work tells about itself."""

    def advance(self, steps: float = 1, note: str = "") -> None:
        """Move on, with an optional remark shown behind the bar."""


class _Silent:
    def advance(self, steps: float = 1, note: str = "") -> None:
        pass


@contextmanager
def progress_bar(title: str, total: float | None, *, show: bool | None = None) -> Iterator[Bar]:
    """Yield a bar to advance; ``show=None`` draws it only if stderr is a terminal.

    >>> with progress_bar("work", 3, show=False) as bar:
    ...     bar.advance(2, "nearly there")
    """
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
