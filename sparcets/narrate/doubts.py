"""Where an answer is weak: what the explanation itself shows, and what an evaluation found about it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sparcets.explanation import Explanation

BARELY = 0.2  # lead of the target over the next class, in probability; a smaller one is hardly a decision
FAR = 1.5  # times as far from real series as those are from one another
RARE = 4.0  # standard deviations from the training mean
MUCH = 0.5  # of what may change


def find_doubts(answer: Explanation, measures: Mapping[str, float]) -> list[str]:
    """Return plain warnings about one valid answer, the gravest first; each a sentence without a capital.

    Parameters
    ----------
    answer
        An explanation of length 1.
    measures
        What an evaluation found about it, by name; may be empty.
    """
    wanted = answer.class_names[int(answer.target[0])]
    doubts = []
    votes = find_votes(measures)
    agree = sum(votes.values())
    if votes and agree <= len(votes) / 2:
        who = "none" if agree == 0 else f"only {agree}"
        verb = "agrees" if agree <= 1 else "agree"
        doubts.append(
            f"{who} of {len(votes)} independent judges {verb}, so this may fool the model rather than explain it."
        )
    if measures.get("oracle", math.nan) == 0:
        doubts.append(f"the process that made the data does not call the result {wanted}.")
    distance = measures.get("knn_ratio", math.nan)
    if distance > FAR:
        doubts.append(f"the result lies {distance:.1f} times as far from real {wanted} series as those usually do.")
    else:
        doubts += _rare_values(answer)
    lead = _lead(answer)
    if lead < BARELY:
        doubts.append(f"the model itself is hardly convinced: {wanted} leads by {max(lead, 0.0):.2f} only.")
    if answer.status[0] == "neighbour":
        doubts.append(f"this was taken from a real {wanted} series, so it may change more than is needed.")
    if answer.share_changed[0] > MUCH:
        share = 100 * float(answer.share_changed[0])
        doubts.append(f"{share:.0f} % of what may change does; it is hardly the same series any more.")
    return doubts


def find_votes(measures: Mapping[str, float]) -> dict[str, bool]:
    """Return what each judge said: whether the result is of the target class.

    >>> find_votes({"valid": 1.0, "transfer": 0.5, "transfer_fcn": 1.0, "transfer_tcn": 0.0})
    {'fcn': True, 'tcn': False}
    """
    judges = {
        str(name)[len("transfer_") :]: float(said)
        for name, said in measures.items()
        if str(name).startswith("transfer_")
    }
    return {name: said == 1 for name, said in judges.items() if not math.isnan(said)}


def _lead(answer: Explanation) -> float:
    """Return the target's probability less that of the next class."""
    proba = answer.proba_after[0]
    others = np.delete(proba, int(answer.target[0]))
    return float(proba[int(answer.target[0])] - others.max()) if len(others) else 1.0


def _rare_values(answer: Explanation) -> list[str]:
    """Name the feature that is moved furthest beyond what training series, and the query itself, hold."""
    scaler = answer.info.scaler
    changed = answer.changed[0]
    far = np.abs((answer.counterfactual[0] - scaler.center) / scaler.scale) * changed  # (time, features)
    own = np.abs((answer.query[0] - scaler.center) / scaler.scale).max(0)  # (features,)
    highest = far.max(0)
    beyond = np.where((highest > RARE) & (highest > own), highest, 0.0)
    feature = int(beyond.argmax())
    if beyond[feature] == 0:
        return []
    return [
        f"{answer.feature_names[feature]} is moved to {beyond[feature]:.1f} standard deviations from its mean in the "
        "training data, where values are rare."
    ]
