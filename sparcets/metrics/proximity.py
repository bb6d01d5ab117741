"""Distance between counterfactual and query, in standardised units; lower is better.

Examples
--------
>>> import sparcets as sp
>>> from sparcets.testing.data import make_series
>>> from sparcets.testing.mocks import mean_proba
>>> X, y = make_series(60)
>>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[:5], target=1)
>>> similarity(e).shape
(5,)
>>> bool((dtw(e) <= l2(e)).all()), bool((linf(e) <= l2(e)).all())
(True, True)
"""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray, IntArray, count_measured, length_mask, missing_entries
from sparcets.explanation.result import Explanation
from sparcets.gaps import fill_gaps

_CHUNK = 2**18  # entries per chunk in dtw: fits the processor's cache and keeps the overhead per call small


def standardised_delta(e: Explanation) -> FloatArray:
    """Return the changes in standard deviations of the training data (answers, time, features).

    0 in the padding, and where the query is missing.
    """
    delta = e.counterfactual.astype(np.float64)
    delta -= e.query  # in place to save memory: 10,000 answers of 50 × 50 take 200 MB
    delta /= e.info.scaler.scale
    if e.lengths is not None:
        delta[~length_mask(e.lengths, len(e), e.query.shape[1])] = 0.0
    if (gaps := e.missing) is not None:
        delta[gaps] = 0.0
    return delta


def n_entries(e: Explanation) -> FloatArray:
    """Return the number of entries T·F of each answer, excluding padding and missing ones."""
    return count_measured(e.query, e.lengths, np.ones(e.query.shape[2], dtype=bool), e.missing).astype(np.float64)


def similarity(e: Explanation) -> FloatArray:
    """Return ‖δ‖₁ / (T·F), the paper's similarity loss and measure."""
    return np.asarray(_size(e).sum((1, 2)) / n_entries(e))


def l2(e: Explanation) -> FloatArray:
    """Return ‖δ‖₂, over steps and features together."""
    delta = standardised_delta(e)
    return np.asarray(np.sqrt(np.einsum("btf,btf->b", delta, delta)))


def linf(e: Explanation) -> FloatArray:
    """Return ‖δ‖∞, the largest change of a single entry."""
    return np.asarray(_size(e).max((1, 2)))


def dtw(e: Explanation) -> FloatArray:
    """Return the dynamic time warping distance between query and counterfactual.

    √ min Σ ‖q_i − c_j‖₂² over the pairs (i, j) of a warping path from the first pair of steps to the last, where each
    move advances the query, the counterfactual or both by one step. All features share one path (dependent DTW), and
    there is no window. The diagonal is such a path, so the result is never larger than :func:`l2`, and much smaller
    where a change is a shift in time.
    """
    B, T, F = e.query.shape
    last = np.full(B, T) if e.lengths is None else np.asarray(e.lengths)
    result = np.zeros(B)
    step = max(1, _CHUNK // (T * F))
    for start in range(0, B, step):
        rows = slice(start, start + step)
        query, other = (
            (x.astype(np.float64) - e.info.scaler.center) / e.info.scaler.scale
            for x in without_gaps(e.query[rows], e.counterfactual[rows])
        )
        result[rows] = np.sqrt(_least_path(query, other, last[rows]))
    return result


def without_gaps(query: FloatArray, counterfactual: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both series (answers, time, features) with the same values where the query is missing."""
    gaps = missing_entries(query)
    if gaps is None:
        return query, counterfactual
    filled = fill_gaps(query, otherwise=0.0)
    return filled, np.where(gaps, filled, counterfactual)


def _size(e: Explanation) -> FloatArray:
    """Return |δ|."""
    delta = standardised_delta(e)
    return np.abs(delta, out=delta)


def _least_path(query: FloatArray, other: FloatArray, lengths: IntArray) -> FloatArray:
    """Return the least sum of squared distances over warping paths, for pairs of (batch, time, features).

    Cells (i, j) on one anti-diagonal i + j = d depend only on the two previous diagonals, so each diagonal is computed
    at once for all series, without a time × time matrix. Cells beyond the end of a series are computed but not used:
    paths only move forward, so the cell of its last steps does not depend on them.
    """
    B, T, _ = query.shape
    # Column i + 1 holds cell (i, d - i); column 0 and all cells outside the square stay infinite.
    before, now = np.full((B, T + 1), np.inf), np.full((B, T + 1), np.inf)
    before[:, 0] = 0.0  # the start of the path, before (0, 0)
    result = np.zeros(B)
    for d in range(2 * T - 1):
        first, end = max(0, d - T + 1), min(d, T - 1) + 1  # range of i
        difference = query[:, first:end] - other[:, d - end + 1 : d - first + 1][:, ::-1]  # (batch, cells, features)
        cost = np.einsum("bif,bif->bi", difference, difference)
        cheapest = np.minimum(now[:, first:end], now[:, first + 1 : end + 1])  # one step in one series
        np.minimum(cheapest, before[:, first:end], out=cheapest)  # one step in both
        before, now = now, np.full((B, T + 1), np.inf)
        now[:, first + 1 : end + 1] = cost + cheapest
        if d % 2 == 0:  # (d / 2, d / 2) is the last cell of a series of d / 2 + 1 steps
            done = lengths == d // 2 + 1
            result[done] = now[done, d // 2 + 1]
    return result
