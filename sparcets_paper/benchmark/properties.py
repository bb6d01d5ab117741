"""The numbers behind the paper's figures, which the row of one run holds on request.

Figure 3 shows who is next to the counterfactuals in a t-SNE map, figures 4 and 7 how much changes in the box of Moving
Box and at the first and last steps, figure 6 the distances between points of the body.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, IntArray
from sparcets.data.dataset import Dataset
from sparcets.evaluation.measures import standardised_delta
from sparcets.motion.limbs import limb_lengths
from sparcets.motion.skeleton import Skeleton, find_skeleton
from sparcets_paper.benchmark.embedding import Points, embed, neighbours

ENDS = 3  # steps at the beginning, and as many at the end
MAPPED = 200  # answers in a map, the first ones
QUARTILES = (0.25, 0.5, 0.75)


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
