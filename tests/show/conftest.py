"""Hand-made answers: a query, the entries that change, and anything else of an explanation by name."""

from tests.made import answers


def hand_made(info, query, changes, **other):
    """Return one answer that changes the entries (step, feature) of a query (time, features) by these amounts."""
    counterfactual = query.copy()
    for entry, change in changes.items():
        counterfactual[entry] += change
    known = {"counterfactual": counterfactual[None], "proba_before": [0.9, 0.1], "proba_after": [[0.125, 0.875]]}
    return answers(query[None], info=info, **{**known, **other})
