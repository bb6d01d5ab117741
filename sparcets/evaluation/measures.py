"""Measures of answers: distance to the query in standardised units, amount of change, predictions of the model.

Also the ROC of |δ| against the known salient entries (section 6 of the paper). Their mask (answers, time, features)
marks the entries that determine the class of each answer's query; padding does not count.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, without_gaps

_DTW_ENTRIES = 2**18  # entries per chunk in dtw: fits the processor's cache and keeps the overhead per call small


def queries_of(e: Explanation) -> Series:
    """Return the queries of answers, with their lengths and gaps."""
    return Series(e.query, e.lengths)


def standardised_delta(e: Explanation) -> FloatArray:
    """Return the changes in standard deviations of the training data (answers, time, features).

    0 in the padding, and where the query is missing.
    """
    delta = e.counterfactual.astype(np.float64)
    delta -= e.query  # in place to save memory: 10,000 answers of 50 × 50 take 200 MB
    delta /= e.info.scaler.scale
    delta[~queries_of(e).measured] = 0.0
    return delta


def n_entries(e: Explanation) -> FloatArray:
    """Return the number of entries T·F of each answer, excluding padding and missing ones."""
    return np.asarray(queries_of(e).measured.sum((1, 2)), dtype=np.float64)


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
    last = queries_of(e).steps
    result = np.zeros(B)
    step = max(1, _DTW_ENTRIES // (T * F))
    for start in range(0, B, step):
        rows = slice(start, start + step)
        query, other = (
            (x.astype(np.float64) - e.info.scaler.center) / e.info.scaler.scale
            for x in without_gaps(e.query[rows], e.counterfactual[rows])
        )
        result[rows] = np.sqrt(_least_path(query, other, last[rows]))
    return result


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


def smoothness(e: Explanation) -> FloatArray:
    """Return Σ_t ‖δ_t − δ_{t−1}‖₂ / (T·F), with δ = 0 before the first step."""
    steps = standardised_delta(e)
    steps[:, 1:] -= steps[:, :-1]  # numpy reads overlapping arrays before it writes them
    length = np.sqrt(np.einsum("btf,btf->bt", steps, steps))
    # The step from the end of a series to the zeros of its padding does not count.
    return np.asarray((length * queries_of(e).inside).sum(1) / n_entries(e))


def changed_within(e: Explanation) -> BoolArray:
    """Return the mask of changed entries (answers, time, features), False in the padding."""
    return np.asarray(e.changed & queries_of(e).inside[..., None])


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
    return _ratio(_n_segments(changed), changed.any(1).sum(1).astype(np.float64))


def share_touched(e: Explanation, *, over: int) -> FloatArray:
    """Return the share of mutable steps (over axis 2), or mutable features (over axis 1), that change."""
    free = e.may_change
    touched = (e.changed & free).any(over).sum(1)
    return np.asarray(touched / np.maximum(free.any(over).sum(1), 1))


def _n_segments(changed: BoolArray) -> FloatArray:
    # A segment starts at a changed entry whose previous step is unchanged.
    starts = changed[:, 0].sum(1) + (changed[:, 1:] & ~changed[:, :-1]).sum((1, 2))
    return np.asarray(starts, dtype=np.float64)


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    return np.asarray(np.divide(above, below, out=np.full(len(above), np.nan), where=below > 0))


def coverage(e: Explanation) -> float:
    """Return the share of queries with at least one valid answer. Higher is better.

    Queries that are already in the target class (``unchanged``) do not count; NaN if all are.
    """
    counted = e.status != "unchanged"
    queries = np.unique(e.query_index[counted])
    answered = np.unique(e.query_index[counted & e.valid])
    return len(answered) / len(queries) if len(queries) else float("nan")


def index_distance(e: Explanation) -> FloatArray:
    """Return |argmax − target| on class indices, as in the published code; it depends on the order of the classes."""
    return np.asarray(np.abs(e.proba_after.argmax(1) - e.target), dtype=np.float64)


def probability_distance(e: Explanation) -> FloatArray:
    """Return the L2 distance between the predicted probabilities and the one-hot target, in [0, √2]."""
    one_hot = np.eye(e.proba_after.shape[1])[e.target]
    return np.asarray(np.linalg.norm(e.proba_after - one_hot, axis=1))


def universality(e: Explanation) -> float:
    """Return 1 − Σ‖δᵢ − mean of the others‖² / Σ‖δᵢ‖² over valid answers, pooled over targets (leave-one-out R²).

    Near 1, all answers to a target share one residual: a universal perturbation rather than explanations of single
    queries. The perfect counterfactual of Moving Box has 0.23, because its boxes overlap. NaN where no target has two
    valid answers.
    """
    delta = standardised_delta(e)
    residual, total = 0.0, 0.0
    for target in np.unique(e.target):
        rows = e.valid & (e.status != "unchanged") & (e.target == target)
        n = int(rows.sum())
        if n < 2:
            continue
        of_target = delta[rows].reshape(n, -1)
        total += float(np.vdot(of_target, of_target))
        # δᵢ − mean of the others = n / (n − 1) · (δᵢ − mean of all)
        of_target -= of_target.mean(0)
        residual += (n / (n - 1)) ** 2 * float(np.vdot(of_target, of_target))
    return 1 - residual / total if total > 0 else float("nan")


def diversity(e: Explanation) -> FloatArray:
    """Return the mean distance of each counterfactual to the other valid ones of the same query.

    The distance is that of :func:`~sparcets.evaluation.measures.similarity`, ‖c − c'‖₁ / (T·F) in standardised units.
    NaN for answers that are not valid, and where there is no other valid one.
    """
    measured, entries = queries_of(e).measured, n_entries(e)

    def distance(one: IntArray, other: IntArray) -> FloatArray:
        difference = e.counterfactual[one].astype(np.float64)
        difference -= e.counterfactual[other]
        difference /= e.info.scaler.scale
        difference[~measured[one]] = 0.0
        return np.asarray(np.abs(difference, out=difference).sum(2).sum(1) / entries[one])

    return _mean_over_pairs(e, distance)


def place_diversity(e: Explanation) -> FloatArray:
    """Return the mean Jaccard distance (1 − index) between the changed entries of each answer and the others.

    0 where they change the same entries, 1 where they share none. NaN as in :func:`diversity`.
    """
    changed = changed_within(e)

    def distance(one: IntArray, other: IntArray) -> FloatArray:
        return 1 - jaccard(changed[one], changed[other])

    return _mean_over_pairs(e, distance)


def jaccard(one: BoolArray, other: BoolArray) -> FloatArray:
    """Return the Jaccard index |A ∩ B| / |A ∪ B| of masks (answers, time, features); 1 where both are empty.

    >>> masks = np.array([[[1], [1], [0]], [[0], [1], [1]]], dtype=bool)
    >>> jaccard(masks[:1], masks[1:]).round(2).tolist()
    [0.33]
    """
    both, either = (one & other).sum((1, 2)), (one | other).sum((1, 2))
    return np.asarray(np.divide(both, either, out=np.ones(len(one)), where=either > 0))


def _mean_over_pairs(e: Explanation, distance: Callable[[IntArray, IntArray], FloatArray]) -> FloatArray:
    """Return the mean ``distance(rows, others)`` of each valid answer to the others of its query; NaN without any."""
    mean, valid = np.full(len(e), np.nan), np.flatnonzero(e.valid)
    order = valid[np.argsort(e.query_index[valid], kind="stable")]
    for rows in np.split(order, np.flatnonzero(np.diff(e.query_index[order])) + 1):
        for row in rows:
            others = rows[rows != row]
            if len(others):
                mean[row] = distance(np.full_like(others, row), others).mean()
    return mean


def salient_auc(e: Explanation, salient: BoolArray) -> FloatArray:
    """Return the area under the ROC curve of |δ| (standardised) against the salient entries, per answer.

    This is the probability that a salient entry changes more than a non-salient one, with ties counting half: 1 where
    all changes are in salient entries, 0.5 where nothing changes, NaN where all entries are salient or none is.
    """
    area = np.full(len(e), np.nan)
    for i, one in enumerate(zip(_size(e), salient, queries_of(e).measured, strict=True)):
        high, low = _salient_and_others(*one)
        if len(high) and len(low):
            area[i] = _pairs(high, low) / (len(high) * len(low))
    return area


def pooled_auc(e: Explanation, salient: BoolArray) -> float:
    """Return the area under the ROC curve of the entries of all answers together; NaN if all or none are salient."""
    high, low = _salient_and_others(_size(e), salient, queries_of(e).measured)
    return float(_pairs(high, low) / len(high) / len(low)) if len(high) and len(low) else float("nan")


def roc(e: Explanation, salient: BoolArray, grid: int = 101) -> tuple[FloatArray, FloatArray]:
    """Return the ROC curve of the entries of all answers together, at ``grid`` even false positive rates from 0 to 1.

    False and true positive rates are the shares of the non-salient and of the salient entries that change more than a
    threshold (grid,). Where the curve is vertical, the true positive rate is its upper end; NaN if all entries are
    salient or none is.
    """
    high, low = _salient_and_others(_size(e), salient, queries_of(e).measured)
    fpr = np.linspace(0.0, 1.0, grid)
    if not len(high) or not len(low):
        return fpr, np.full(grid, np.nan)
    # Integer arithmetic, because a rounded rate may miss a corner of the curve.
    rank, rest = np.divmod(np.arange(grid) * len(low), grid - 1)
    threshold = low[::-1][np.minimum(rank, len(low) - 1)]
    fewer = [len(x) - np.searchsorted(x, threshold, side="right") for x in (low, high)]  # entries above the threshold
    more = [len(x) - np.searchsorted(x, threshold, side="left") for x in (low, high)]  # … or equal to it
    share = (rank + rest / (grid - 1) - fewer[0]) / (more[0] - fewer[0])  # position on the line between the corners
    tpr = (fewer[1] + share * (more[1] - fewer[1])) / len(high)
    tpr[-1] = 1.0  # the end of the curve includes the entries below the lowest threshold
    return fpr, np.asarray(tpr)


def _salient_and_others(size: FloatArray, salient: BoolArray, measured: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return |δ| of all salient and of all other entries, each sorted."""
    return np.sort(size[salient & measured]), np.sort(size[~salient & measured])


def _pairs(high: FloatArray, low: FloatArray) -> float:
    """Return the number of pairs of sorted sizes whose first is larger; ties count half."""
    return float(np.searchsorted(low, high, side="left").sum() + np.searchsorted(low, high, side="right").sum()) / 2
