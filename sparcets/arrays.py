"""Type aliases for arrays, masks and indices; series are always ``(batch, time, features)``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sparcets.errors import OutOfRangeError

FloatArray: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
StrArray: TypeAlias = NDArray[np.str_]


def length_mask(lengths: IntArray | None, n_samples: int, n_steps: int) -> BoolArray:
    """Return a mask ``(batch, time)`` of the steps within each series; all true without padding.

    >>> length_mask(np.array([1, 3]), 2, 3).astype(int).tolist()
    [[1, 0, 0], [1, 1, 1]]
    """
    if lengths is None:
        return np.ones((n_samples, n_steps), dtype=bool)
    return np.asarray(np.arange(n_steps)[None] < lengths[:, None])


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
