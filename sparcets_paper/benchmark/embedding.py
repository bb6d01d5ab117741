"""t-SNE maps of queries, real series of the target class and counterfactuals, and who is next to whom in them.

The paper judges the realism of counterfactuals by looking at such maps (its figure 3); here the neighbours are counted.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sparcets.core.series import FloatArray

PERPLEXITY = 4.4  # the paper's
ITERATIONS = 300  # the paper's
NEIGHBOURS = 5


class Points(NamedTuple):
    """Positions in one map, each (samples, 2)."""

    queries: FloatArray
    targets: FloatArray
    counterfactuals: FloatArray


def embed(
    queries: FloatArray, targets: FloatArray, counterfactuals: Mapping[str, FloatArray], *, at_most: int
) -> dict[str, Points]:
    """Embed queries, real series of the target class and counterfactuals in the plane, one map per method.

    t-SNE with the paper's settings (2 components, perplexity 4.4, 300 iterations) on flattened series, standardised per
    feature by the queries and targets; with ``at_most`` so many series of each kind. Arrays of the same length are
    subsampled alike, so the queries and the counterfactuals drawn belong together.

    >>> x = np.random.default_rng(0).normal(size=(8, 5, 2))
    >>> maps = embed(x, x + 9, {"SPARCE": x + 8}, at_most=200)
    >>> maps["SPARCE"].queries.shape
    (8, 2)
    """
    real = [_subsample(array, at_most) for array in (queries, targets)]
    values = np.concatenate(real)
    center, scale = values.mean((0, 1)), values.std((0, 1))
    scale = np.where(scale > 0, scale, 1.0)
    maps = {}
    for method, array in counterfactuals.items():
        parts = [(part - center) / scale for part in (*real, _subsample(array, at_most))]
        positions = _tsne(np.concatenate(parts).reshape(sum(map(len, parts)), -1))
        maps[method] = Points(*np.split(positions, np.cumsum([len(part) for part in parts])[:-1]))
    return maps


def neighbours(points: Points) -> dict[str, float]:
    """Return the shares of queries, targets and counterfactuals among the 5 nearest neighbours of the counterfactuals.

    Counterfactuals that look like real series of the target class have about as many targets next to them as other
    counterfactuals; those that form groups of their own have counterfactuals only. The points are positions in one map,
    or flattened series (samples, entries).

    >>> line = np.arange(8.0)[:, None]
    >>> neighbours(Points(queries=line + 100, targets=line, counterfactuals=line + 0.1))
    {'queries': 0.0, 'targets': 0.6, 'counterfactuals': 0.4}
    """
    every = np.concatenate(points)
    kind = np.repeat(np.arange(len(points)), [len(part) for part in points])
    found = np.zeros(len(points))
    for i in np.flatnonzero(kind == len(points) - 1):
        distance = np.square(every - every[i]).sum(1)
        distance[i] = np.inf
        found += np.bincount(kind[np.argsort(distance, kind="stable")[:NEIGHBOURS]], minlength=len(points))
    return {name: float(share) for name, share in zip(Points._fields, found / found.sum(), strict=True)}


def _subsample(array: Any, at_most: int) -> FloatArray:
    values = np.asarray(array, dtype=float)
    if len(values) <= at_most:
        return values
    return values[np.sort(np.random.default_rng(0).choice(len(values), at_most, replace=False))]


def _tsne(flat: FloatArray) -> FloatArray:
    from sklearn.manifold import TSNE

    # scikit-learn 1.5 renamed n_iter to max_iter.
    iterations = "max_iter" if "max_iter" in inspect.signature(TSNE).parameters else "n_iter"
    settings = {"n_components": 2, "perplexity": PERPLEXITY, "random_state": 0, iterations: ITERATIONS}
    return np.asarray(TSNE(**settings).fit_transform(flat), dtype=float)
