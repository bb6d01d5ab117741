"""Type aliases for arrays; series are always ``(batch, time, features)``."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
