"""What a query is called: by its id and the recorded person where they are known, else by its index."""

from __future__ import annotations

from sparcets.explanation.result import Explanation

LONGEST = 40  # characters of a name in a title


def query_name(e: Explanation, i: int = 0) -> str:
    """Return the name of answer ``i``'s query, with the recorded person if known: ``trial 7, subject P3``."""
    parts = [f"query {int(e.query_index[i])}" if e.ids is None else _shortened(str(e.ids[i]))]
    if e.subjects is not None:
        parts.append(f"subject {_shortened(str(e.subjects[i]))}")
    return ", ".join(parts)


def has_name(e: Explanation) -> bool:
    """Return whether the queries are known by more than their index."""
    return e.ids is not None or e.subjects is not None


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
