"""Rows of answers: how they are selected."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcets.errors import OutOfRangeError


def check_rows(rows: Any, n: int) -> Any:
    """Check an index into ``n`` answers and return it as a slice, a mask or an array of indices."""
    if isinstance(rows, slice):
        return rows
    chosen = np.atleast_1d(rows)
    if chosen.size == 0:
        chosen = chosen.astype(bool if chosen.dtype == bool else np.int64)  # np.atleast_1d makes an empty list float
    if chosen.ndim != 1 or chosen.dtype.kind not in "iub":
        raise OutOfRangeError(f"answers are selected by index, slice, mask or list of indices, got {rows!r}.")
    if chosen.dtype == bool:
        if len(chosen) != n:
            raise OutOfRangeError(f"a mask over {n} answers must have {n} flags, got {len(chosen)}.")
        return chosen
    bad = chosen[(chosen < -n) | (chosen >= n)]
    if len(bad):
        raise OutOfRangeError(f"no answer {bad[0]}: this explanation holds {n}, numbered from 0.")
    return chosen
