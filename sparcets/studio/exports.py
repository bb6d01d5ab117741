"""Answers as files: figures, tables, explanation files and reports. Nothing is computed again."""

from __future__ import annotations

import tempfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparcets.web.errors import ApiError

if TYPE_CHECKING:
    import pandas as pd

    from sparcets.core.explanation import Explanation

MEDIA_TYPES = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "npz": "application/octet-stream",
    "html": "text/html",
    "py": "text/x-python",
}
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins with one of these is run by spreadsheets


def render(explanation: Explanation, kind: str, shown: int) -> bytes:
    """Return answers as the content of a file.

    Parameters
    ----------
    explanation
        The answers; ``query_index`` holds the numbers of the recordings.
    kind
        ``png``, ``svg`` or ``pdf`` (a figure of one answer), ``csv`` (table of changes), ``npz`` or ``html`` (report).
    shown
        Index of the answer that the figure shows.
    """
    if shown >= len(explanation):
        raise ApiError(422, "no_such_answer", f"no answer {shown}: there are {len(explanation)}.")
    if kind == "csv":
        return str(spreadsheet_safe(explanation.to_frame()).to_csv(index=False)).encode()
    if kind in ("npz", "html"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"answers.{kind}")
            _write(explanation, file)
            return file.read_bytes()
    image = BytesIO()
    explanation.plot(shown).savefig(image, format=kind)
    return image.getvalue()


def _write(explanation: Explanation, file: Path) -> None:
    from sparcets.show.report import write_report

    if file.suffix == ".npz":
        explanation.save(file)
    else:
        write_report(explanation, file)


def spreadsheet_safe(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose texts no spreadsheet takes for a formula: those get an apostrophe in front.

    >>> import pandas as pd
    >>> spreadsheet_safe(pd.DataFrame({"id": ["=1+1", "a"], "change": [-1.0, 2.0]})).to_dict("list")
    {'id': ["'=1+1", 'a'], 'change': [-1.0, 2.0]}
    """

    def safe(cell: Any) -> Any:
        return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell

    texts = frame.select_dtypes(exclude=["number", "bool"]).columns
    safe_frame: pd.DataFrame = frame.assign(**{name: frame[name].map(safe) for name in texts})
    return safe_frame


def warm_up() -> None:
    """Import what figures need, and draw one: the first one takes a second longer than the others."""
    from sparcets.show import style

    with style.new_figure(1, 1) as figure:
        figure.add_subplot().set_xlabel("time (s)")
    for kind in ("png", "pdf"):
        figure.savefig(BytesIO(), format=kind)
