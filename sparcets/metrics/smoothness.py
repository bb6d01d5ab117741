"""Smoothness of the change over time (the paper's "jerk"), in standardised units; lower is better.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[:5], target=1)
>>> smoothness(e).shape
(5,)
"""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray, length_mask
from sparcets.explanation.result import Explanation
from sparcets.metrics.proximity import n_entries, standardised_delta


def smoothness(e: Explanation) -> FloatArray:
    """Return Σ_t ‖δ_t − δ_{t−1}‖₂ / (T·F), with δ = 0 before the first step."""
    steps = standardised_delta(e)
    steps[:, 1:] -= steps[:, :-1]  # numpy reads overlapping arrays before it writes them
    length = np.sqrt(np.einsum("btf,btf->bt", steps, steps))
    # The step from the end of a series to the zeros of its padding does not count.
    inside = length_mask(e.lengths, len(e), e.query.shape[1])
    return np.asarray((length * inside).sum(1) / n_entries(e))
