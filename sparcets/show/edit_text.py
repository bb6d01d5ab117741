"""Edits in words and as plain values."""

from __future__ import annotations

from typing import Any

from sparcets.core.edits import Edit


def as_dict(edit: Edit) -> dict[str, Any]:
    """Return what an edit says as plain values, for JSON."""
    return {
        "features": list(edit.features),
        "start": edit.start,
        "end": edit.end,
        "kind": edit.kind,
        "amount": float(edit.amount),
        "row": edit.row,
        "needed_by": list(edit.needed_by),
        "text": edit.text,
    }
