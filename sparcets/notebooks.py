"""What notebooks show: objects as small tables, and a line of text that is replaced by the next one.

IPython is never imported from here: if a notebook is running, it is loaded already.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any


def in_notebook() -> bool:
    """Return whether this code runs in the kernel of a notebook; a console of IPython is a terminal like any other."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return getattr(get_shell() if get_shell else None, "kernel", None) is not None


class OutputLine:
    """A line in the output of the current cell; needs a notebook."""

    def __init__(self, text: str) -> None:
        display = importlib.import_module("IPython.display").display
        self._handle: Any = display({"text/plain": text}, raw=True, display_id=True)

    def replace(self, text: str) -> None:
        """Show another text instead."""
        self._handle.update({"text/plain": text}, raw=True)


def html_card(
    title: str, lines: Iterable[str] = (), *, heads: Sequence[str] = (), rows: Iterable[Sequence[object]] = ()
) -> str:
    """Return a title, lines of text and a table as HTML; all texts are escaped.

    Without colours of its own, so that it is readable in light and dark notebooks.

    Parameters
    ----------
    title, lines
        Shown above the table.
    heads, rows
        Names of the columns, and the cells of each row; numbers are aligned to the right.

    Examples
    --------
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
