"""Stick figures: a recorded movement and its counterfactual side by side, at a few moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sparcets.arrays import BoolArray, FloatArray
from sparcets.errors import CapabilityError, OutOfRangeError
from sparcets.explanation import Explanation
from sparcets.plots import style
from sparcets.plots.labels import n_steps_of, only_answer, title_of
from sparcets.skeletons import Limb, find_skeleton

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOMENTS = 6
OUTLINE: tuple[Limb, ...] = (("LeftShoulder", "RightShoulder"), ("LeftShoulder", "Head"), ("RightShoulder", "Head"))
BALL = "Center"  # of catching
SIDES = ("recorded", "counterfactual")


@dataclass(frozen=True, eq=False)
class Body:
    """The points of a body over time, seen from the side on which it moves most.

    Attributes
    ----------
    query, counterfactual
        Positions (time, 2) of each point, by its name.
    changed
        Whether a point is moved (time,), by its name.
    limbs, outline
        Pairs of points that bones join, and pairs that only help the eye.
    axes
        Names of the two coordinates that are drawn.
    unit
        What they are measured in; empty where it is not known.
    """

    query: Mapping[str, FloatArray]
    counterfactual: Mapping[str, FloatArray]
    changed: Mapping[str, BoolArray]
    limbs: tuple[Limb, ...]
    outline: tuple[Limb, ...]
    axes: tuple[str, str]
    unit: str

    def frame(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of the body, with a margin; a ball may come from outside."""
        of_body = [p for side in (self.query, self.counterfactual) for name, p in side.items() if name != BALL]
        points = np.concatenate(of_body)  # (points * time, 2)
        low, high = points.min(0), points.max(0)
        margin = 0.12 * float((high - low).max() or 1.0)
        return low - margin, high + margin

    def legend(self) -> str:
        """Return what the signs mean."""
        signs = ["orange: points that are moved", "grey: the recording again"]
        if any(a.startswith("Right") for a, _ in self.limbs):
            signs.append("dashed: the right arm")
        if BALL in self.query:
            signs.append("ring: the ball")
        return "; ".join(signs)


def find_body(answer: Explanation) -> Body | None:
    """Return the body that one answer's features describe, as ``catching`` and ``ui_prmd`` name them; None without one.

    Of three coordinates, the two in which the points move and differ most are drawn.
    """
    names = list(answer.feature_names)
    skeleton = find_skeleton(names)
    if skeleton is None:
        return None
    points = dict(skeleton.points)
    for extra in ("Head", BALL):
        if f"{extra}_x" in names and f"{extra}_y" in names:
            points[extra] = (names.index(f"{extra}_x"), names.index(f"{extra}_y"))
    size = min(len(places) for places in points.values())
    n_steps = n_steps_of(answer)
    of_limbs = np.stack([answer.query[0, :n_steps, list(places[:size])] for places in skeleton.points.values()])
    spread = of_limbs.std((0, 2))  # over points and time; an index list puts its axis first: (points, size, time)
    drawn = sorted(np.argsort(-spread, kind="stable")[:2].tolist())

    def positions(series: FloatArray) -> dict[str, FloatArray]:
        return {name: series[:n_steps, [places[k] for k in drawn]] for name, places in points.items()}

    units, changed = answer.info.units, answer.changed[0, :n_steps]  # (time, features)
    return Body(
        query=positions(answer.query[0]),
        counterfactual=positions(answer.counterfactual[0]),
        changed={name: np.any(changed[:, list(places)], axis=1) for name, places in points.items()},
        limbs=skeleton.limbs,
        outline=tuple(pair for pair in OUTLINE if all(point in points for point in pair)),
        axes=("xyz"[drawn[0]], "xyz"[drawn[1]]),
        unit="" if units is None else units[next(iter(points.values()))[0]],
    )


def plot_body(answer: Explanation, *, moments: int = MOMENTS) -> Figure:
    """Draw the body at several moments, the recording above its counterfactual.

    Parameters
    ----------
    answer
        An explanation of length 1 whose features are points of a body (``LeftElbow_x``, ``LeftElbow_y``, …).
    moments
        How many, spread evenly over the time in which something changes, and a little before and after.

    Returns
    -------
    figure
        Two rows of axes; points that are moved are marked in orange, and in the lower row the recording is repeated in
        grey.
    """
    body = find_body(only_answer(answer))
    if body is None:
        raise CapabilityError(
            "a stick figure needs features that name points of a body, such as LeftElbow_x and LeftElbow_y, of "
            f"neighbouring points; these are {', '.join(answer.feature_names[:4])}, …"
        )
    n_steps = n_steps_of(answer)
    if not 1 <= moments <= n_steps:
        raise OutOfRangeError(f"moments must be from 1 to the number of steps, {n_steps}, got {moments}.")
    steps = _moments(np.any(answer.changed[0, :n_steps], axis=1), moments)
    low, high = body.frame()
    shape = float((high - low)[1] / (high - low)[0])
    width = min(12.0, 1.0 + 1.9 * moments)
    with style.new_figure(width, min(14.0, 1.4 + 2 * (width - 1) / moments * shape)) as figure:
        axes = np.asarray(figure.subplots(2, moments, sharex=True, sharey=True, squeeze=False))
        for column, step in enumerate(steps):
            _draw(axes[0, column], body, body.query, step, style.BEFORE)
            _draw(axes[1, column], body, body.query, step, style.FIXED, ghost=True)
            _draw(axes[1, column], body, body.counterfactual, step, style.AFTER, marked=True)
            rate = answer.info.sampling_rate
            axes[0, column].set_title(f"{step / rate:.2f} s" if rate else f"step {step}", loc="left")
            axes[1, column].set_xlabel(f"{body.axes[0]} ({body.unit or 'no unit'})")
        for row, side in enumerate(SIDES):
            axes[row, 0].set_ylabel(f"{side}\n{body.axes[1]} ({body.unit or 'no unit'})")
        axes[0, 0].set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        for place in axes.flat:
            place.set_aspect("equal", adjustable="box")
        figure.suptitle(style.plain(title_of(answer)), x=0.01, ha="left", fontweight="bold")
        figure.supxlabel(body.legend(), fontsize=style.TICKS)
    return figure


def _moments(touched: BoolArray, n: int) -> list[int]:
    """Return steps from a little before the first change to a little after the last; over all where nothing changes.

    >>> _moments(np.arange(100) // 20 == 2, 5), _moments(np.zeros(9, dtype=bool), 3)
    ([30, 40, 50, 59, 69], [0, 4, 8])
    """
    last = len(touched) - 1
    found = np.flatnonzero(touched)
    around = len(touched) // 10
    start, end = (max(0, found[0] - around), min(last, found[-1] + around)) if len(found) else (0, last)
    if end - start + 1 < n:  # too few steps: take more of those beside them
        start, end = max(0, end - n + 1), min(last, start + n - 1)
    steps: list[int] = np.linspace(start, end, n).round().astype(int).tolist()
    return steps


def _draw(
    axes: Axes,
    body: Body,
    points: Mapping[str, FloatArray],
    step: int,
    colour: str,
    *,
    ghost: bool = False,
    marked: bool = False,
) -> None:
    thin = 1.0 if ghost else 2.0
    for a, b in body.outline:
        axes.plot(*zip(points[a][step], points[b][step], strict=True), color=colour, lw=0.8, ls=":", zorder=1)
    for a, b in body.limbs:
        axes.plot(
            *zip(points[a][step], points[b][step], strict=True),
            color=colour,
            lw=thin,
            ls=(0, (3, 1)) if a.startswith("Right") else "-",
            zorder=2,
            solid_capstyle="round",
        )
    for name, place in points.items():
        if name == BALL:
            if not ghost:
                axes.plot(*place[step], "o", mfc="none", mec=style.BLACK, ms=7, mew=1.2, zorder=3)
        elif not ghost:
            moved = marked and bool(body.changed[name][step])
            axes.plot(*place[step], "o", color=style.MARK if moved else colour, ms=5 if moved else 3.5, zorder=3)
