"""One answer as a few sentences, in the data's own units."""

from __future__ import annotations

import numpy as np

from sparcets.explanation import Explanation

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
    if not answer.valid[0]:
        opening = f"No change was found that makes the model say {wanted} instead of {before}"
        why = str(answer.reason[0]).rstrip(".")
        return f"{opening}: {why}." if why else f"{opening}; the best attempt reached a probability of {p:.2f}."
    opening = f"The model would say {wanted} (probability {p:.2f}) instead of {before} if "
    stretches = _stretches(answer)
    told = "; ".join(stretches[:MOST])
    more = f"; and {len(stretches) - MOST} smaller changes" if len(stretches) > MOST else ""
    return f"{opening}{told}{more}. {100 * float(answer.share_changed[0]):.0f} % of the values that may change do."


def _stretches(answer: Explanation) -> list[str]:
    """Describe every changed stretch, the largest (in standard deviations times steps) first."""
    table = answer.to_frame()
    scale = dict(zip(answer.feature_names, answer.info.scaler.scale, strict=True))
    steps = (table["end"] - table["start"]).to_numpy()
    weight = np.abs(table["mean_change"].to_numpy()) * steps / np.array([scale[f] for f in table["feature"]])
    rate = answer.info.sampling_rate
    lines = []
    for row in table.iloc[np.argsort(-weight, kind="stable")].itertuples():
        way = "higher" if row.mean_change > 0 else "lower"
        unit = f" {row.units}" if row.units else ""
        if rate:
            when = f"from {row.start / rate:.2f} to {row.end / rate:.2f} s"
        else:
            when = f"in step {row.start}" if row.end - row.start == 1 else f"in steps {row.start} to {row.end - 1}"
        lines.append(f"{row.feature} were {abs(row.mean_change):.3g}{unit} {way} {when}")
    return lines
