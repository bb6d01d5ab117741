"""One answer as a few sentences, in the data's own units."""

from __future__ import annotations

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explanation import Explanation
from sparcets.segments import find_segments

MOST = 5  # stretches told one by one; the rest is counted


def narrate(answer: Explanation) -> str:
    """Say what one answer changes, largest change first.

    Parameters
    ----------
    answer
        An explanation of length 1, as ``explanation[3]`` gives.
    """
    before = answer.class_names[int(answer.predicted[0])]
    wanted = answer.class_names[int(answer.target[0])]
    p = float(answer.probability[0])
    if answer.status[0] == "unchanged":
        return f"The model already says {wanted} (probability {p:.2f}); nothing has to change."
    if not answer.valid[0] or answer.status[0] == "not_found":
        opening = f"No change was found that makes the model say {wanted} instead of {before}"
        why = str(answer.reason[0]).rstrip(".")
        return f"{opening}: {why}." if why else f"{opening}; the best attempt reached a probability of {p:.2f}."
    opening = f"The model would say {wanted} (probability {p:.2f}) instead of {before} if "
    stretches = _stretches(answer)
    told = "; ".join(stretches[:MOST])
    rest = len(stretches) - MOST
    more = f"; and {rest} smaller change{'s' if rest > 1 else ''}" if rest > 0 else ""
    return f"{opening}{told}{more}. {100 * float(answer.share_changed[0]):.3g} % of the values that may change do."


def _stretches(answer: Explanation) -> list[str]:
    """Describe every changed stretch, the largest (in standard deviations times steps) first."""
    found = find_segments(answer.changed[:1])
    delta = answer.counterfactual[0].astype(np.float64) - answer.query[0]  # (time, features)
    changes = [delta[s:e, f] for f, s, e in zip(found.feature, found.start, found.end, strict=True)]
    scale = answer.info.scaler.scale[found.feature]
    weight = np.array([np.abs(c).sum() for c in changes]) / scale
    lines = []
    for i in np.argsort(-weight, kind="stable"):
        feature, start, end = int(found.feature[i]), int(found.start[i]), int(found.end[i])
        unit = f" {answer.info.units[feature]}" if answer.info.units and answer.info.units[feature] else ""
        how = _how(changes[i], unit)
        lines.append(f"{answer.feature_names[feature]} were {how} {_when(start, end, answer.info.sampling_rate)}")
    return lines


def _how(change: FloatArray, unit: str) -> str:
    if change.min() < 0 < change.max():  # its mean would hide what happens, or be none at all
        return f"changed by {change.min():+.3g} to {change.max():+.3g}{unit}"
    return f"{abs(change.mean()):.3g}{unit} {'higher' if change.mean() > 0 else 'lower'}"


def _when(start: int, end: int, rate: float | None) -> str:
    if rate:
        return f"from {start / rate:.2f} to {end / rate:.2f} s"
    return f"in step {start}" if end - start == 1 else f"in steps {start} to {end - 1}"
