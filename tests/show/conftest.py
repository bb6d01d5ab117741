"""Hand-made answers: a query, the entries that change, and anything else of an explanation by name."""

import numpy as np

from sparcets.core.explanation import Explanation


def hand_made(info, query, changes, **other):
    """Return one answer that changes the entries (step, feature) of a query (time, features) by these amounts."""
    counterfactual = query.copy()
    for entry, change in changes.items():
        counterfactual[entry] += change
    values = {
        "query": query[None],
        "counterfactual": counterfactual[None],
        "target": np.array([1]),
        "status": np.array(["generated"]),
        "reason": np.array([""]),
        "query_index": np.array([0]),
        "proba_before": np.array([[0.9, 0.1]]),
        "proba_after": np.array([[0.125, 0.875]]),
        "info": info,
        "mutable": np.ones(query.shape[1], dtype=bool),
    }
    return Explanation(**{**values, **other})
