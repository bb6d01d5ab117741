"""Random constraints on the shape of changes, and what must hold under them."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparcets as sp
from sparcets.core.arrays import BoolArray
from sparcets.core.explanation import Explanation
from tests.campaigns.material import Material


def draw_shapes(rng: np.random.Generator, names: list[str]) -> dict[str, Any]:
    """Draw arguments of Constraints: few features, whole numbers, monotone features, fixed sums, a projection."""
    F = len(names)
    kinds = rng.random(5) < 0.2
    order = rng.permutation(F).tolist()
    some = [names[f] for f in order[: rng.integers(1, F + 1)]]
    shapes: dict[str, Any] = {
        "max_features": int(rng.integers(1, F + 1)),
        "integer": some,
        "monotone": {f: str(rng.choice(["up", "down"])) for f in some},
        "fixed_sum": [tuple(order[:2])] if F > 1 else [],
        "project": even_out,
    }
    return {name: value for (name, value), kind in zip(shapes.items(), kinds, strict=True) if kind}


def even_out(counterfactuals: Any, queries: Any) -> Any:
    """Move the last feature by its mean change, at every step."""
    moved = counterfactuals.copy()
    change = (counterfactuals[..., -1].astype(np.float64) - queries[..., -1]).mean(1, keepdims=True)
    moved[..., -1] = queries[..., -1] + change
    return moved


def broken_shapes(e: Explanation, given: list[sp.Constraints], material: Material) -> dict[str, BoolArray]:
    """Return what does not hold, by answer (answers,)."""
    q, x, changed = e.query.astype(np.float64), e.counterfactual.astype(np.float64), e.counterfactual != e.query
    span, unit = e.info.span, np.spacing(np.abs(e.query).max((0, 1))).astype(np.float64)
    index = {**{name: f for f, name in enumerate(material.names)}, **{f: f for f in range(len(material.names))}}
    broken: dict[str, BoolArray] = {}
    binary = [f for f in range(q.shape[2]) if set(np.unique(material.X[..., f]).tolist()) == {0.0, 1.0}]
    for f in binary:
        broken[f"feature {f} is 0 or 1 no more"] = (changed[..., f] & ~np.isin(x[..., f], (0, 1))).any(1)
    for one in given:
        if one.max_features is not None:
            broken[f"more than {one.max_features} features changed"] = changed.any(1).sum(1) > one.max_features
        for feature in one.integer:
            f = index[feature]
            broken[f"feature {f} is not whole"] = (changed[..., f] & (x[..., f] != np.rint(x[..., f]))).any(1)
        for feature, direction in one.monotone.items():
            f, sign = index[feature], 1 if direction == "up" else -1
            both = changed[:, 1:, f] & changed[:, :-1, f]
            broken[f"feature {f} is not monotone"] = (both & (sign * np.diff(x[..., f], axis=1) < 0)).any(1)
        for features in one.fixed_sum:
            members = [index[f] for f in features]
            off = np.abs(x[..., members].sum(-1) - q[..., members].sum(-1))
            rounding = 8 * np.spacing(np.abs(e.counterfactual[..., members]).max(-1)).astype(np.float64)
            broken[f"the sum of {members} moved"] = (off > np.maximum(1e-6 * span[members].min(), rounding)).any(1)
    # Of two functions the one given to explain holds.
    if given and any(one.project is not None for one in given):
        delta = (x - q)[..., -1]
        uneven = np.ptp(delta, axis=1) > 2e-6 * span[-1] + 4 * unit[-1]
        broken["the projection does not hold"] = uneven & changed.any((1, 2)) & (e.lengths is None)
    return broken
