"""Location of the data sets: the folder named by ``SPARCETS_DATA``, or the user's cache."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the folder in which data sets are searched and to which they are downloaded."""
    named = os.environ.get("SPARCETS_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "sparcets"
