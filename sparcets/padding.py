"""Series of unequal length: padded with zeros into one array (batch, time, features), cut, and resampled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparcets.arrays import FloatArray, IntArray, length_mask
from sparcets.errors import ShapeError


def pad(series: Sequence[FloatArray], n_steps: int) -> FloatArray:
    """Return series (time, features) of any lengths as one array (batch, n_steps, features), with zeros after each.

    >>> pad([np.ones((1, 1)), np.ones((2, 1))], 3)[..., 0]
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    dtype = np.result_type(*{one.dtype for one in series})
    padded = np.zeros((len(series), n_steps, series[0].shape[1]), dtype=dtype)
    for row, one in zip(padded, series, strict=True):
        row[: len(one)] = one
    return padded


def join_series(series: Sequence[FloatArray], *, unequal: bool) -> tuple[FloatArray, IntArray] | None:
    """Return series (time, features) as padded ones (batch, time, features) and their lengths.

    None if all are equally long, where an array of them is enough; unless ``unequal``, where lengths are expected.
    """
    steps, features = ({one.shape[axis] for one in series} for axis in (0, 1))
    if len(steps) == len(features) == 1 and not unequal:
        return None
    if len(features) > 1:
        hint = " They look like (features, time): pass [x.T for x in X]." if len(steps) == 1 else ""
        found = ", ".join(str(n) for n in sorted(features)[:4])
        raise ShapeError(f"the series of X must have the same features, but they have {found}.{hint}")
    return pad(series, max(steps)), np.array([len(one) for one in series], dtype=np.int64)


def blank(X: FloatArray, lengths: IntArray | None, n_steps: int | None = None) -> FloatArray:
    """Return series with zeros beyond their lengths, whatever is there, and with ``n_steps`` steps if that is given.

    >>> blank(np.array([[[1.0], [np.nan]]]), np.array([1]), 3).ravel()
    array([1., 0., 0.])
    """
    n_steps = X.shape[1] if n_steps is None else n_steps
    if n_steps > X.shape[1]:
        X = np.concatenate([X, np.zeros((len(X), n_steps - X.shape[1], X.shape[2]), dtype=X.dtype)], axis=1)
    X = X[:, :n_steps]
    if lengths is None:
        return X
    inside = length_mask(lengths, len(X), n_steps)
    # A copy only if it is needed.
    return X if (X[~inside] == 0).all() else np.where(inside[..., None], X, X.dtype.type(0))


def rows_by_length(lengths: IntArray) -> list[tuple[int, IntArray]]:
    """Return every length that occurs, in rising order, with its rows.

    >>> [(n, rows.tolist()) for n, rows in rows_by_length(np.array([5, 3, 5]))]
    [(3, [1]), (5, [0, 2])]
    """
    return [(int(n), np.flatnonzero(lengths == n)) for n in np.unique(lengths)]


def resample(X: FloatArray, lengths: IntArray | None, n_steps: int | IntArray) -> FloatArray:
    """Return padded series of other lengths: each one's own part, interpolated linearly to ``n_steps`` steps.

    So a series of another length can stand beside a query step by step, from its beginning to its end. To cut it would
    lose its end, and could not fill a longer query.

    Parameters
    ----------
    X, lengths
        Series (batch, time, features), and their true lengths, or None without padding.
    n_steps
        New length: one for all, or one each (batch,).

    Returns
    -------
    series
        (batch, largest of n_steps, features); beyond a series' own ``n_steps`` its last step is repeated.

    Examples
    --------
    >>> resample(np.array([[[0.0], [2.0], [9.0]]]), np.array([2]), 3).ravel()
    array([0., 1., 2.])
    """
    new = np.broadcast_to(np.asarray(n_steps), len(X))[:, None]  # (batch, 1)
    old = np.full((len(X), 1), X.shape[1]) if lengths is None else lengths[:, None]
    steps = np.arange(int(new.max()) if len(X) else 0)
    # Equal lengths give whole numbers exactly, and with them the series' own bits.
    where = np.minimum(steps * (old - 1) / np.maximum(new - 1, 1), old - 1)  # (batch, new time)
    before = where.astype(np.int64)
    after, rows = np.minimum(before + 1, old - 1), np.arange(len(X))[:, None]
    share = (where - before)[..., None].astype(X.dtype)
    low = X[rows, before]
    resampled: FloatArray = low + share * (X[rows, after] - low)
    return resampled
