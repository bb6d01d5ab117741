"""The curve of belief in figures: how much may change against who believes it, as ``explain(curve=True)`` measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.arrays import FloatArray, StrArray
from sparcets.explanation.amounts import percent
from sparcets.explanation.evidence import MAJORITY
from sparcets.explanation.result import Explanation
from sparcets.explanation.verdict import VERDICTS
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEST = "best with at most so many changes"
MEANINGS = {
    "believed": "model and all others agree",
    "doubtful": "the model flips, not all others follow",
    "not reached": "the model does not flip",
}
MARKERS = {"believed": "o", "doubtful": "D", "not reached": "x"}


def has_curve(answer: Explanation) -> bool:
    """Return whether it was measured how few changes of an answer are enough."""
    return bool(np.isfinite(answer.curve["share"]).any())


class Points(NamedTuple):
    """The points of a curve of belief, by increasing share.

    Attributes
    ----------
    share, support
        Changed values, and the least convinced kind of other models, in percent.
    word
        A verdict: ``believed`` where the model predicts the target and every kind of other models agrees, ``doubtful``
        where not all of them do, ``not reached`` where the model does not.
    best
        The best support of any change up to this share that the model accepts; 0 if it accepts none.
    """

    share: FloatArray
    support: FloatArray
    word: StrArray
    best: FloatArray


def curve_points(answer: Explanation) -> Points:
    """Return the points of the curve of an explanation of length 1."""
    known = np.isfinite(answer.curve["share"][0])
    share, support, valid = (answer.curve[name][0][known] for name in ("share", "support", "valid"))
    order = np.lexsort((support, share))
    share, support, valid = 100 * share[order], 100 * support[order], valid[order] == 1
    words = np.where(~valid, "not reached", np.where(support > 100 * MAJORITY, "believed", "doubtful"))
    return Points(share, support, words, np.maximum.accumulate(np.where(valid, np.nan_to_num(support), 0.0)))


def limits_of(answer: Explanation) -> str:
    """Return in words from which share of changes on the model, and all others, say the target."""
    flips, believed = float(answer.flips_at[0]), float(answer.least_believed[0])
    if not np.isfinite(flips):
        return "the model never flips"
    others = (
        f"all others follow at {percent(believed)} (dashed)" if np.isfinite(believed) else "others never all follow"
    )
    return f"the model flips at {percent(flips)} (dotted), {others}"


def draw_belief(axes: Axes, answer: Explanation) -> None:
    """Draw the curve of belief of one answer into axes."""
    points = curve_points(answer)
    axes.axhspan(100 * MAJORITY, 104, color=VERDICTS["believed"].tint, lw=0, zorder=0)
    axes.step(points.share, points.best, where="post", color=style.BEFORE, lw=1.4, label=BEST, zorder=1)
    for word, marker in MARKERS.items():
        chosen = points.word == word
        if chosen.any():
            colour = VERDICTS[word].colour
            face = colour if word == "believed" else "white"
            look: dict[str, Any] = {
                "color": colour,
                "mfc": face,
                "ms": 4,
                "ls": "",
                "zorder": 2,
                "label": MEANINGS[word],
            }
            axes.plot(points.share[chosen], points.support[chosen], marker, **look)
    for share, line in ((answer.flips_at[0], ":"), (answer.least_believed[0], "--")):
        if np.isfinite(share):
            axes.axvline(100 * float(share), color=style.BEFORE, lw=1, ls=line, zorder=0.5)
    axes.set(xlabel="changed values (% of those that may change)", ylim=(-6, 104))
    axes.set_xlim(left=0)
    axes.set_ylabel("agreement of the\nleast convinced kind\nof other models (%)")
    axes.set_title(limits_of(answer).replace("), ", "),\n"), loc="left", fontsize=style.TICKS)
    axes.legend(loc="upper right", bbox_to_anchor=(1, -0.22), fontsize=style.TICKS)
