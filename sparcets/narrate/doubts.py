"""Warnings about weak answers, from the explanation itself and from the measures of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

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
    if answer.verdict[0] == "trick":
        doubts.append("few models of other kinds agree, so this may fool the model rather than explain it.")
    if answer.fragile[0]:
        alone, all_of_them = 100 * float(answer.flips_at[0]), 100 * float(answer.least_believed[0])
        doubts.append(
            f"the model alone already flips when {alone:.2g} % of the values that may change do; all models of other "
            f"kinds follow only at {all_of_them:.2g} %."
        )
    if measures.get("oracle", math.nan) == 0:
        doubts.append(f"the process that generated the data does not put the result into {target}.")
    distance = measures.get("knn_ratio", math.nan)
    if distance > MAX_KNN_RATIO:
        doubts.append(
            f"the result is {distance:.1f} times as far from the training series of {target} as real series are."
        )
    else:
        doubts += _rare_value(answer)
    lead = _lead(answer)
    if lead < MIN_LEAD:
        doubts.append(f"the model is uncertain: {target} leads by {max(lead, 0.0):.2f} only.")
    if answer.status[0] == "neighbour":
        doubts.append(f"this was taken from a real {target} series, so it may change more than necessary.")
    if answer.share_changed[0] > LARGE_SHARE:
        share = 100 * float(answer.share_changed[0])
        doubts.append(f"{share:.0f} % of the values that may change do; little of the series is left as it was.")
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
