"""Explanations made of arrays, without a method."""

import numpy as np

from sparcets.core.explanation import Explanation


def answers(query, counterfactual, info, **known):
    """Return answers (answers, time, features); whatever else is known may be one value for all of them."""
    n = len(query)
    chance = np.full(info.n_classes, 1 / info.n_classes)
    default = {"target": 1, "status": "generated", "reason": "", "query_index": np.arange(n), "mutable": True}
    values = {**default, "proba_before": chance, "proba_after": chance, **known}
    sizes = {"target": n, "status": n, "reason": n, "mutable": info.n_features}
    values |= {name: np.full(size, values[name]) for name, size in sizes.items() if np.ndim(values[name]) == 0}
    for name in ("proba_before", "proba_after"):
        proba = np.asarray(values[name], dtype=np.float64)
        values[name] = np.tile(proba, (n, 1)) if proba.ndim == 1 else proba
    of_lists = {name: np.array(value) for name, value in values.items() if isinstance(value, list)}
    series = {"query": np.asarray(query), "counterfactual": np.asarray(counterfactual)}
    return Explanation(**series, info=info, **values | of_lists)
