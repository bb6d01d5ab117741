"""What the arrays in a file of answers must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparcets.digests import digest_of_array
from sparcets.explanation.evidence import PREFIX
from sparcets.explanation.numbers import FIELDS
from sparcets.explanation.numbers import PREFIX as NUMBERS
from sparcets.explanation.series_info import SeriesInfo
from sparcets.explanation.side import PREFIX as SIDE

STATUSES = ("unchanged", "generated", "refined", "neighbour", "not_found")
_ENTRIES: dict[str, Any] = {"method": str, "config": dict, "constraints": dict, "seed": int, "seconds": (int, float)}
# NumPy's letters for the kinds of types; all arrays that are not listed hold real numbers.
_KINDS = {"status": "U", "reason": "U", f"{PREFIX}families": "U", "mutable": "b"}
_KINDS |= dict.fromkeys(("target", "query_index", "lengths"), "iu")
_KINDS |= dict.fromkeys(("ids", "subjects"), "iuU")


def check_digests(digests: Mapping[str, str], arrays: Mapping[str, Any]) -> None:
    """Raise ValueError if arrays of an explanation file are not those that its header names by digest."""
    other = [name for name, array in arrays.items() if digests.get(name) != digest_of_array(array)]
    if other or set(digests) - set(arrays):
        raise ValueError(f"{', '.join(other) or 'an array'} does not match the sha256 in the header")


def check_header(header: Mapping[str, Any]) -> None:
    """Raise ValueError if an entry in the header of an explanation file has the wrong type."""
    for name, kind in _ENTRIES.items():
        if not isinstance(header[name], kind):
            raise ValueError(f"its {name} cannot be {header[name]!r}")
    if not isinstance(header.get("confidence"), (float, type(None))):
        raise ValueError(f"its confidence cannot be {header['confidence']!r}")


def check_layout(arrays: Mapping[str, Any], info: SeriesInfo) -> None:
    """Raise ValueError if arrays of an explanation file have a type, shape or value that answers never have."""
    n = len(arrays["target"])
    one_each = ("target", "query_index", "status", "reason", "lengths", "ids", "subjects")
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(one_each, (n,))
    kinds = _KINDS if info.outcome is None else _KINDS | {"target": "U"}  # for a regressor, targets are text
    shapes |= {"proba_before": (n, info.n_classes), "proba_after": (n, info.n_classes), "mutable": (info.n_features,)}
    shapes |= dict.fromkeys(("query", "counterfactual"), (n, arrays["query"].shape[1], info.n_features))
    if info.outcome is not None:
        shapes |= dict.fromkeys((f"{NUMBERS}before", f"{NUMBERS}after"), (n, info.outcome.n_outputs))
    for name, array in arrays.items():
        if array.dtype.kind not in kinds.get(name, "fiub") or array.shape != shapes.get(name, array.shape):
            raise ValueError(f"{name} cannot be {array.dtype} of shape {array.shape}")
    lengths, n_steps = arrays.get("lengths", np.ones(n)), arrays["query"].shape[1]
    checks = {
        "query": n_steps > 0,
        "target": info.outcome is not None or _are_classes(arrays["target"], info.n_classes),
        "numbers": all(f"{NUMBERS}{name}" in arrays for name in FIELDS) == (info.outcome is not None),
        "status": np.isin(arrays["status"], STATUSES).all(),
        "lengths": ((lengths > 0) & (lengths <= n_steps)).all(),
        "side inputs": all(len(array) == n for name, array in arrays.items() if name.startswith(SIDE)),
    }
    wrong = [name for name, fine in checks.items() if not fine]
    if wrong:
        raise ValueError(f"{', '.join(wrong)} cannot be those of answers")


def _are_classes(target: Any, n_classes: int) -> bool:
    return bool(((target >= 0) & (target < n_classes)).all())
