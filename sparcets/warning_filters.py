"""The filters of Python's warnings, which are global: restored after a block, one block at a time."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

# Of two blocks at once, the last to end would restore the filters that the other had set. Whoever needs
# RANDOM_STATE_LOCK too takes that one first.
_lock = threading.RLock()


@contextmanager
def filters_kept(*, ignore: type[Warning] | None = None) -> Iterator[None]:
    """Restore the filters of warnings after a block, such as scikit-learn's forests, which set them for every tree.

    Parameters
    ----------
    ignore
        Warnings that are not shown within the block; None leaves the filters as they are.

    Examples
    --------
    >>> with filters_kept(ignore=UserWarning):
    ...     warnings.warn("not shown")
    """
    with _lock, warnings.catch_warnings():
        if ignore is not None:
            warnings.simplefilter("ignore", ignore)
        yield
