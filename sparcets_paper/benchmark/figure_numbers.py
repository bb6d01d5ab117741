"""The numbers behind the paper's figures, which the row of one run holds on request.

For figure 3, t-SNE maps by which the paper judges the realism of counterfactuals, these are shares of neighbours; for
figures 4 and 7, how much changes in the box of Moving Box and at the first and last steps; for figure 6, the distances
between points of the body.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray, IntArray
from sparcets.data.dataset import Dataset
from sparcets.evaluation.measures import standardised_delta
from sparcets.motion.limbs import limb_lengths
from sparcets.motion.skeleton import Skeleton, find_skeleton

ENDS = 3  # steps at the beginning, and as many at the end
MAPPED = 200  # answers in a map, the first ones
QUARTILES = (0.25, 0.5, 0.75)
PERPLEXITY, ITERATIONS = 4.4, 300  # of t-SNE, the paper's
NEIGHBOURS = 5


def figure_numbers(e: Explanation, data: Dataset, rows: IntArray) -> dict[str, Any]:
    """Return the numbers by name: ``map`` and ``space``, ``places``, ``limbs``; the last two where the data have them.

    Answers are those towards one target; those to queries that were in it already do not count. ``rows`` are the
    indices of the queries in ``data.X_test``.
    """
    e = e[e.status != "unchanged"]
    if not len(e):
        return {}
    found: dict[str, Any] = _neighbourhoods(e, data)
    if data.salient_test is not None:
        found["places"] = places(e, data.salient_test[rows[e.query_index]])
    skeleton = find_skeleton(e.feature_names)
    if skeleton is not None and e.valid.any():
        found["limbs"] = _limbs(e[e.valid], skeleton)
    return found


def places(e: Explanation, salient: BoolArray) -> dict[str, Any]:
    """Return where the answers change: the mean |δ| and the share of changed entries of several places.

    The places are the ``inside`` of the box, ``salient`` (answers, time, features), and, outside of it, the ``first``
    and the ``last`` three steps and those ``between``; ``outside`` is all that is not inside. ``profile`` is the mean
    |δ| of each step outside of the box.
    """
    size = np.abs(standardised_delta(e))
    T = size.shape[1]
    ends = {"first": np.arange(T) < ENDS, "last": np.arange(T) >= T - ENDS}
    steps = {**ends, "between": ~(ends["first"] | ends["last"])}
    masks = {"inside": salient, "outside": ~salient}
    masks |= {name: ~salient & chosen[:, None] for name, chosen in steps.items()}
    found: dict[str, Any] = {
        name: {"size": float(size[mask].mean()), "changed": float(e.changed[mask].mean())}
        for name, mask in masks.items()
        if mask.any()
    }
    outside = np.where(salient, 0.0, size).sum((0, 2)) / np.maximum((~salient).sum((0, 2)), 1)
    return {**found, "profile": outside.tolist()}


def _neighbourhoods(e: Explanation, data: Dataset) -> dict[str, dict[str, float]]:
    """Return the neighbours of the counterfactuals in a map as in figure 3, and among the series themselves."""
    first = e[:MAPPED]
    targets = data.X_test[data.y_test == first.target[0]][:MAPPED]
    if len(targets) < 2 or len(first) < 2:
        return {}
    parts = Points(first.query, targets, first.counterfactual)
    in_map = embed(parts.queries, parts.targets, {"": parts.counterfactuals}, at_most=MAPPED)[""]
    in_space = Points(*(e.info.scaler.transform(part).reshape(len(part), -1) for part in parts))
    return {"map": neighbours(in_map), "space": neighbours(in_space)}


def _limbs(e: Explanation, skeleton: Skeleton) -> dict[str, dict[str, list[float]]]:
    """Return the quartiles of the length of each limb, in the queries and in the counterfactuals."""
    lengths = {"queries": limb_lengths(e.query, skeleton), "answers": limb_lengths(e.counterfactual, skeleton)}
    return {
        limb: {name: np.quantile(found[limb], QUARTILES).tolist() for name, found in lengths.items()}
        for limb in lengths["queries"]
    }


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
