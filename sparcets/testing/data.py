"""Small series with a known answer."""

from __future__ import annotations

import numpy as np

from sparcets.core.errors import DataError
from sparcets.core.series import FloatArray, IntArray


def make_series(
    n_samples: int = 120, n_steps: int = 20, n_features: int = 4, n_classes: int = 3, seed: int = 0
) -> tuple[FloatArray, IntArray]:
    """Return series in which class k lifts feature k in the middle third of the steps; the last feature never matters.

    Examples
    --------
    >>> X, y = make_series(9)
    >>> X.shape, X.dtype, np.bincount(y).tolist()
    ((9, 20, 4), dtype('float32'), [3, 3, 3])
    """
    if n_features <= n_classes:
        raise DataError(f"{n_classes} classes need more than as many features, got n_features={n_features}.")
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    X = rng.normal(0, 0.4, (n_samples, n_steps, n_features)).astype(np.float32)
    middle = slice(n_steps // 3, 2 * n_steps // 3)
    for k in range(n_classes):
        X[y == k, middle, k] += 2.0
    return X, y.astype(np.int64)
