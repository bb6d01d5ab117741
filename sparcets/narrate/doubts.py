"""Warnings about answers besides their verdict, from the explanation itself and from the measures of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sparcets.explanation.amounts import percent
from sparcets.explanation.result import Explanation

MIN_LEAD = 0.2  # of the target's probability over the next class's; with less, the prediction is uncertain
MAX_KNN_RATIO = 1.5  # distance to real series, relative to the distances among real series
RARE_STD = 4.0  # standard deviations from the training mean
LARGE_SHARE = 0.5  # of the mutable entries


def find_doubts(answer: Explanation, measures: Mapping[str, float]) -> list[str]:
    """Return warnings about one valid answer, the most serious first; each a sentence without a capital letter.

    Parameters
    ----------
    answer
        An explanation of length 1.
    measures
        The answer's measures from an evaluation, by name; may be empty.
    """
    target = str(answer.target_names[0])
    doubts = []
    votes = find_votes(measures)
    agree = sum(votes.values())
    if votes and agree <= len(votes) / 2:
        who = "none" if agree == 0 else f"only {agree}"
        verb = "agrees" if agree <= 1 else "agree"
        doubts.append(
            f"{who} of {len(votes)} independent judges {verb}, so this may fool the model rather than explain it."
        )
    if answer.fragile[0]:
        alone, all_of_them = percent(float(answer.flips_at[0])), percent(float(answer.least_believed[0]))
        doubts.append(
            f"the model is fragile here: it flips when {alone} of the values that may change do, but other models of "
            f"every kind follow only at {all_of_them}."
        )
    if measures.get("oracle", math.nan) == 0:
        doubts.append(f"the process that generated the data does not put the result into {target}.")
    distance = measures.get("knn_ratio", math.nan)
    if distance > MAX_KNN_RATIO:
        doubts.append(
            f"the result is {distance:.1f} times as far from the training series of {target} as real series are."
        )
    elif not answer.plausibility["outside"][0] > 0:  # otherwise the verdict says more
        doubts += _rare_value(answer)
    lead = _lead(answer)
    if lead < MIN_LEAD:
        doubts.append(f"the model is uncertain: {target} leads by {max(lead, 0.0):.2f} only.")
    if answer.status[0] == "neighbour":
        doubts.append(f"{_from_a_real_series(answer)}; it may change more than necessary.")
    if answer.share_changed[0] > LARGE_SHARE:
        share = percent(float(answer.share_changed[0]))
        doubts.append(f"more than half of the values that may change do ({share}).")
    return doubts


def find_votes(measures: Mapping[str, float]) -> dict[str, bool]:
    """Return whether each judge puts the result into the target class.

    >>> find_votes({"valid": 1.0, "transfer": 0.5, "transfer_fcn": 1.0, "transfer_tcn": 0.0})
    {'fcn': True, 'tcn': False}
    """
    judges = {
        str(name)[len("transfer_") :]: float(vote)
        for name, vote in measures.items()
        if str(name).startswith("transfer_") and name != "transfer_unseen"  # a mean over judges
    }
    return {name: vote == 1 for name, vote in judges.items() if not math.isnan(vote)}


def _lead(answer: Explanation) -> float:
    """Return the target's probability minus that of the next class; of numbers, there is no doubt by it."""
    if answer.numbers is not None:
        return 1.0
    proba = answer.proba_after[0]
    others = np.delete(proba, int(answer.target[0]))
    return float(proba[int(answer.target[0])] - others.max()) if len(others) else 1.0


def _from_a_real_series(answer: Explanation) -> str:
    """Say what comes from a real series: all of it, or parts of it."""
    real = f"a real {answer.target_names[0]} series" if answer.numbers is None else "a real series within the target"
    if answer.share_changed[0] == 1 and answer.mutable.all():
        return f"every value is taken from {real}"
    return f"it combines {real} with this one, and as a whole may never have been recorded"


def _rare_value(answer: Explanation) -> list[str]:
    """Return a warning on the feature that is changed to the rarest value, unless the query has rarer ones itself."""
    scaler = answer.info.scaler
    changed = answer.changed[0]
    after = np.abs((answer.counterfactual[0] - scaler.center) / scaler.scale)  # (time, features)
    after = np.where(changed, after, 0.0)
    before = np.fmax.reduce(np.abs((answer.query[0] - scaler.center) / scaler.scale))  # (features,); ignores gaps
    largest = after.max(0)
    rare = np.where((largest > RARE_STD) & (largest > before), largest, 0.0)
    feature = int(rare.argmax())
    if rare[feature] == 0:
        return []
    return [
        f"{answer.feature_names[feature]} is moved to {rare[feature]:.1f} standard deviations from its mean in the "
        "training data, where values are rare."
    ]
