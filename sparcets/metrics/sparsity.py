"""Share of a series that changes, and number and length of the changed segments; lower is better, except the length.

A segment is a maximal run of consecutive changed steps of one feature.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y != 1][:3], target=1)
>>> sparsity(e).tolist(), segments(e).tolist()  # every value of the 4 features, over all 20 steps
([1.0, 1.0, 1.0], [4.0, 4.0, 4.0])
>>> segment_length(e).tolist(), segments_per_feature(e).tolist()
([20.0, 20.0, 20.0], [1.0, 1.0, 1.0])
"""

from __future__ import annotations

import numpy as np

from sparcets.arrays import BoolArray, FloatArray, count_measured, length_mask
from sparcets.explanation.result import Explanation


def changed_within(e: Explanation) -> BoolArray:
    """Return the mask of changed entries (answers, time, features), False in the padding."""
    changed = e.changed
    if e.lengths is not None:
        changed[~length_mask(e.lengths, len(e), e.query.shape[1])] = False
    return changed


def sparsity(e: Explanation) -> FloatArray:
    """Return ‖δ‖₀ / (T·F_mutable), the share of the mutable entries that changed; missing ones do not count."""
    entries = count_measured(e.query, e.lengths, e.mutable, e.missing)
    return np.asarray(changed_within(e).sum((1, 2)) / np.maximum(entries, 1))


def steps_touched(e: Explanation) -> FloatArray:
    """Return the share of steps with at least one changed entry."""
    return np.asarray(changed_within(e).any(2).sum(1) / _n_steps(e))


def features_touched(e: Explanation) -> FloatArray:
    """Return the share of mutable features with at least one changed entry."""
    return np.asarray(_n_touched(changed_within(e)) / max(int(e.mutable.sum()), 1))


def segments(e: Explanation) -> FloatArray:
    """Return the number of changed segments, over all features."""
    return _n_segments(changed_within(e))


def segment_length(e: Explanation) -> FloatArray:
    """Return the mean length of the changed segments in steps; NaN where nothing changed."""
    changed = changed_within(e)
    return _ratio(changed.sum((1, 2)).astype(np.float64), _n_segments(changed))


def segments_per_feature(e: Explanation) -> FloatArray:
    """Return the number of changed segments per changed feature; NaN where nothing changed."""
    changed = changed_within(e)
    return _ratio(_n_segments(changed), _n_touched(changed))


def _n_steps(e: Explanation) -> FloatArray:
    return np.asarray(length_mask(e.lengths, len(e), e.query.shape[1]).sum(1), dtype=np.float64)


def _n_touched(changed: BoolArray) -> FloatArray:
    return np.asarray(changed.any(1).sum(1), dtype=np.float64)


def _n_segments(changed: BoolArray) -> FloatArray:
    # A segment starts at a changed entry whose previous step is unchanged.
    starts = changed[:, 0].sum(1) + (changed[:, 1:] & ~changed[:, :-1]).sum((1, 2))
    return np.asarray(starts, dtype=np.float64)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0))
