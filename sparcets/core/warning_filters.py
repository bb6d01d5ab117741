"""Python's warnings: their filters, which are global, are left as they were; ours point at the user's line."""

from __future__ import annotations

import os
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# scikit-learn's forests replace the filters for every tree: of two at once, the last to end would restore what the
# other had set. Whoever needs RANDOM_STATE_LOCK too takes that one first.
_lock = threading.RLock()

_OURS = "(?#sparcets)"  # a comment: it matches every message, and no filter of anybody else is equal to ours


# Frames of these files stand between the user's line and the one that warns.
_INSIDE = (f"{Path(__file__).parents[1]}{os.sep}", str(Path("torch", "utils", "_contextlib.py")))


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn, with the line of the user's code that called sparcets as the place."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and any(part in frame.f_code.co_filename for part in _INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def filters_kept(*, ignore: type[Warning] | None = None) -> Iterator[None]:
    """Run a block that changes the filters of warnings while no other such block runs.

    A filter of ours is added to the present list and taken out of it again. ``warnings.catch_warnings`` would put
    another list in its place: a thread of the user's, or of pandas, that saved that one would restore it later.

    Parameters
    ----------
    ignore
        Warnings that are not shown within the block; None leaves the filters as they are.

    Examples
    --------
    >>> with filters_kept(ignore=UserWarning):
    ...     warnings.warn("not shown")
    """
    with _lock:
        if ignore is None:
            yield
            return
        ours = ("ignore", re.compile(_OURS, re.IGNORECASE), ignore, None, 0)
        nested = ours in warnings.filters
        warnings.filterwarnings("ignore", _OURS, ignore)
        changed = warnings.filters
        try:
            yield
        finally:
            if not nested:
                for filters in (changed, warnings.filters):
                    while ours in filters:
                        filters.remove(ours)  # type: ignore[attr-defined]
