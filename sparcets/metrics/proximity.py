"""How much changes, and how evenly (the paper's section 6), in standardised units; lower is better."""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray, steps_within
from sparcets.explanation import Explanation


def standardised_delta(e: Explanation) -> FloatArray:
    """Return the changes in standard deviations of the training data (answers, time, features)."""
    return np.asarray((e.counterfactual.astype(np.float64) - e.query) / e.info.scaler.scale)


def _entries(e: Explanation) -> FloatArray:
    """Return T·F of each answer; padding does not count."""
    return np.asarray(steps_within(e.lengths, len(e), e.query.shape[1]).sum(1) * e.query.shape[2], dtype=np.float64)


def similarity(e: Explanation) -> FloatArray:
    """Return ‖δ‖₁ / (T·F)."""
    return np.asarray(np.abs(standardised_delta(e)).sum((1, 2)) / _entries(e))


def smoothness(e: Explanation) -> FloatArray:
    """Return Σ_t ‖δ_t − δ_{t−1}‖₂ / (T·F), with 0 before the first step."""
    steps = np.diff(standardised_delta(e), axis=1, prepend=0.0)
    # The step from a series' end back to 0 in its padding is no step of the series.
    inside = steps_within(e.lengths, len(e), e.query.shape[1])
    return np.asarray((np.linalg.norm(steps, axis=2) * inside).sum(1) / _entries(e))


def sparsity(e: Explanation) -> FloatArray:
    """Return the share of the mutable entries that changed."""
    return e.share_changed
