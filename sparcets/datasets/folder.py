"""Where data sets lie: the folder that ``SPARCETS_DATA`` names, or the user's cache."""

from __future__ import annotations

import os
from pathlib import Path


def data_folder() -> Path:
    """Return the folder where data sets are looked for and fetched to."""
    named = os.environ.get("SPARCETS_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(cache).expanduser() / "sparcets"
