"""Stick figures: a recorded movement and its counterfactual at several time steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import CapabilityError
from sparcets.core.explanation import Explanation
from sparcets.core.series import BoolArray, FloatArray
from sparcets.motion.skeleton import Limb, Skeleton, find_skeleton
from sparcets.show import style
from sparcets.show.changes import only_answer
from sparcets.show.drawing import line_style_of, moment_names
from sparcets.show.interactive import GRID, NOTE, PageFigure, base_layout, rounded
from sparcets.show.plots import add_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOMENTS = 6
MAX_NAMED = 5  # points of a body that are named in the figure; names of more would cover each other
OUTLINE: tuple[Limb, ...] = (("LeftShoulder", "RightShoulder"), ("LeftShoulder", "Head"), ("RightShoulder", "Head"))
RIGHT: Any = (0, (3, 1))  # line style of the right limbs
BALL = "Center"  # its name in the catching data


@dataclass(frozen=True, eq=False)
class Body:
    """The points of a body over time, projected onto the two coordinates that change most."""

    query: Mapping[str, FloatArray]  # positions (time, 2) of each point, by name
    counterfactual: Mapping[str, FloatArray]
    changed: Mapping[str, BoolArray]  # whether each point is moved (time,), by name
    limbs: tuple[Limb, ...]
    outline: tuple[Limb, ...]  # pairs of points joined by dotted lines for orientation
    axes: tuple[str, str]  # names of the two drawn coordinates
    hidden: str  # name of the third; empty if there is none
    unit: str  # of all; empty where it is not known

    def frame(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower left and the upper right corner of the body, with a margin; the ball may lie outside."""
        of_body = [p for side in (self.query, self.counterfactual) for name, p in side.items() if name != BALL]
        points = np.concatenate(of_body)  # (points * time, 2)
        low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)  # some may be missing
        margin = 0.12 * float((high - low).max() or 1.0)
        return low - margin, high + margin

    def legend(self) -> str:
        """Return the meaning of colours and line styles."""
        signs = ["orange: points that are moved", "grey: the recording again"]
        if any(a.startswith("Right") for a, _ in self.limbs):
            signs.append("dashed: the right arm")
        if BALL in self.query:
            signs.append("ring: the ball")
        if self.hidden:
            signs.append(f"{self.hidden}, which changes least, is not drawn")
        return "; ".join(signs)


def drawn_points(skeleton: Skeleton, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return the features that are coordinates of what is drawn: of the points of a body, its head, and the ball."""
    found = dict(skeleton.points)
    for extra in ("Head", BALL):
        if f"{extra}_x" in names and f"{extra}_y" in names:
            found[extra] = (names.index(f"{extra}_x"), names.index(f"{extra}_y"))
    return found


def find_body(answer: Explanation) -> Body | None:
    """Return the body whose points the features name, as in ``catching`` and ``ui_prmd``; None if they name none.

    Of three coordinates, the two that change most are drawn; where nothing changes, those that move most.
    """
    answer, names = only_answer(answer), list(answer.feature_names)
    skeleton = find_skeleton(names, answer.info.units)
    if skeleton is None:
        return None
    points = drawn_points(skeleton, names)
    size = min(len(indices) for indices in points.values())
    of_limbs = np.array([indices[:size] for indices in skeleton.points.values()])  # (points, size)
    change = np.nansum(np.abs(answer.delta[0]), axis=0)[of_limbs].sum(0)  # (size,)
    moving = np.nanstd(answer.query[0][:, of_limbs], (0, 1))
    drawn = sorted(np.lexsort((-moving, -change))[:2].tolist())

    def positions(series: FloatArray) -> dict[str, FloatArray]:
        return {name: series[:, [indices[k] for k in drawn]] for name, indices in points.items()}

    units, changed = answer.info.units, answer.changed[0]  # (time, features)
    return Body(
        query=positions(answer.query[0]),
        counterfactual=positions(answer.counterfactual[0]),
        changed={name: np.any(changed[:, list(indices)], axis=1) for name, indices in points.items()},
        limbs=skeleton.limbs,
        outline=tuple(pair for pair in OUTLINE if all(point in points for point in pair)),
        axes=("xyz"[drawn[0]], "xyz"[drawn[1]]),
        hidden="xyz"[3 - sum(drawn)] if size == 3 else "",
        unit="" if units is None else units[next(iter(points.values()))[0]],
    )


def plot_body(answer: Explanation) -> Figure:
    """Draw the body at several time steps, the recording above its counterfactual.

    Parameters
    ----------
    answer
        An explanation of length 1 whose features are points of a body (``LeftElbow_x``, ``LeftElbow_y``, …).

    Returns
    -------
    figure
        Two rows of axes, one column for each of six equal parts of the changed time: the step at which most changes.
        In the lower row, moved points are orange and the recording is repeated in grey.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(30)
    >>> names = ["LeftElbow_x", "LeftElbow_y", "LeftWrist_x", "LeftWrist_y"]
    >>> ds = sp.Dataset.from_arrays(X, y, feature_names=names)
    >>> e = sp.Nearest(sp.wrap(mocks.mean_proba)).fit(ds).explain(X[y == 0][:1], target="1")
    >>> len(plot_body(e).axes)
    12
    """
    answer = only_answer(answer)
    body = find_body(answer)
    if body is None:
        raise CapabilityError(
            "a stick figure needs features that name points of a body joined by limbs, such as LeftElbow_x and "
            f"LeftElbow_y; these are {', '.join(answer.feature_names[:4])}, …"
        )
    moments = min(MOMENTS, answer.query.shape[1])
    size = np.where(answer.changed[0], np.abs(answer.delta[0] / answer.info.scaler.scale), 0.0)  # (time, features)
    steps = _moments(size.sum(1), moments)
    low, high = body.frame()
    shape = float((high - low)[1] / (high - low)[0])
    width = min(12.0, 1.0 + 1.9 * moments)
    with style.new_figure(width, min(14.0, 1.8 + 2 * (width - 1) / moments * shape)) as figure:
        axes = np.asarray(figure.subplots(2, moments, sharex=True, sharey=True, squeeze=False))
        line_style = line_style_of(answer)
        for column, (step, moment) in enumerate(zip(steps, moment_names(answer, steps), strict=True)):
            _draw(axes[0, column], body, body.query, step, style.BEFORE)
            _draw(axes[1, column], body, body.query, step, style.FIXED, ghost=True)
            _draw(axes[1, column], body, body.counterfactual, step, line_style.colour, marked=True)
            axes[0, column].set_title(moment, loc="left")
            axes[1, column].set_xlabel(f"{body.axes[0]} ({body.unit or 'no unit'})")
        if len(body.query) <= MAX_NAMED:
            for name, position in body.query.items():
                axes[0, 0].annotate(name, position[steps[0]], (4, 3), textcoords="offset points", fontsize=style.TICKS)
        for row, side in enumerate(("recorded", line_style.name)):
            axes[row, 0].set_ylabel(f"{side}\n{body.axes[1]} ({body.unit or 'no unit'})")
        axes[0, 0].set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        for panel in axes.flat:
            panel.set_aspect("equal", adjustable="box")
        add_title(figure, answer, body.legend())
    return figure


def _moments(change: FloatArray, n: int) -> list[int]:
    """Return ``n`` steps from shortly before the first change to shortly after the last; of all steps if none changes.

    That time is divided into ``n`` parts, of which the step that changes most, by ``change`` (time,), is shown, or else
    the middle one.

    >>> change = np.zeros(100)
    >>> change[40:60] = 1.0
    >>> change[52] = 2.0
    >>> _moments(change, 5), _moments(np.zeros(9), 3)
    ([33, 40, 52, 54, 65], [1, 4, 7])
    """
    last = len(change) - 1
    found = np.flatnonzero(change)
    around = len(change) // 10
    start, end = (max(0, found[0] - around), min(last, found[-1] + around)) if len(found) else (0, last)
    if end - start + 1 < n:  # too few steps: add neighbouring ones
        start, end = max(0, end - n + 1), min(last, start + n - 1)
    parts = np.array_split(np.arange(start, end + 1), n)
    return [int(part[change[part].argmax()] if change[part].any() else part[(len(part) - 1) // 2]) for part in parts]


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
    limbs = [(pair, 0.8, ":") for pair in body.outline]
    limbs += [(pair, 1.0 if ghost else 2.0, RIGHT if pair[0].startswith("Right") else "-") for pair in body.limbs]
    for (a, b), width, line in limbs:
        ends = zip(points[a][step], points[b][step], strict=True)
        order = 1 if line == ":" else 2
        axes.plot(*ends, color=colour, lw=width, ls=line, zorder=order, solid_capstyle="round")
    for name, position in points.items() if not ghost else ():
        if name == BALL:
            axes.plot(*position[step], "o", mfc="none", mec=style.BLACK, ms=7, mew=1.2, zorder=3)
        else:
            moved = marked and bool(body.changed[name][step])
            axes.plot(*position[step], "o", color=style.MARK if moved else colour, ms=5 if moved else 3.5, zorder=3)


MAX_FRAMES = 120  # longer series are subsampled
HEIGHT = 500  # pixels
FRAME_DURATION = 40  # milliseconds, when played
GAP = (np.nan, np.nan)  # between one line and the next


def body_figure(answer: Explanation) -> PageFigure | None:
    """Return the animated stick figure of one answer; None if its features name no body."""
    answer = only_answer(answer)
    body = find_body(answer)
    if body is None:
        return None
    n_steps, line_style = answer.query.shape[1], line_style_of(answer)
    steps = list(range(0, n_steps, -(-n_steps // MAX_FRAMES)))
    labels = moment_names(answer, steps)
    frames = [
        {"name": label, "data": [_moving_parts(trace) for trace in _traces(body, step, line_style.colour)]}
        for label, step in zip(labels, steps, strict=True)
    ]
    moved = np.abs(answer.delta[0, steps] / answer.info.scaler.scale).sum(1)  # (frames,)
    first = int(moved.argmax())  # the step that changes most
    layout = _layout(body, labels, first, line_style.name)
    return {"data": list(_traces(body, steps[first], line_style.colour)), "layout": layout, "frames": frames}


def _traces(body: Body, step: int, made_colour: str) -> Iterator[PageFigure]:
    """Yield the traces of one step, always the same ones in the same order, as plotly.js requires of frames."""
    right = [limb for limb in body.limbs if limb[0].startswith("Right")]
    others = [limb for limb in body.limbs if limb not in right]
    for axis, points, colour in (("", body.query, style.BEFORE), ("2", body.counterfactual, made_colour)):
        lines = [
            (body.outline, points, {"color": colour, "width": 1, "dash": "dot"}),
            (others, points, {"color": colour, "width": 3, "dash": "solid"}),
            (right, points, {"color": colour, "width": 3, "dash": "dash"}),
        ]
        if axis:  # the recording again, in grey
            again = {"color": style.FIXED, "width": 1.2, "dash": "solid"}
            lines.insert(0, ([*body.limbs, *body.outline], body.query, again))
        for limbs, ends, line in lines:
            corners = [corner for a, b in limbs for corner in (ends[a][step], ends[b][step], GAP)]
            x, y = np.array(corners).reshape(-1, 2).T
            yield {**_trace("lines", axis, rounded(x, 4), rounded(y, 4)), "hoverinfo": "skip", "line": line}
        names = [name for name in points if name != BALL]
        moved = [bool(axis) and bool(body.changed[name][step]) for name in names]
        at = np.array([points[name][step] for name in names])  # (points, 2)
        yield {
            **_trace("markers", axis, rounded(at[:, 0], 4), rounded(at[:, 1], 4)),
            "text": names,
            "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>",
            "marker": {"color": [style.MARK if m else colour for m in moved], "size": [10 if m else 7 for m in moved]},
        }
        if BALL in points:
            ball = rounded(points[BALL][step], 4)
            yield {
                **_trace("markers", axis, ball[:1], ball[1:]),
                "hovertemplate": "ball<extra></extra>",
                "marker": {"color": "white", "size": 13, "line": {"color": style.BLACK, "width": 1.5}},
            }


def _trace(mode: str, axis: str, x: list[float | None], y: list[float | None]) -> PageFigure:
    return {"type": "scatter", "mode": mode, "x": x, "y": y, "xaxis": f"x{axis}", "yaxis": f"y{axis}"}


def _moving_parts(trace: PageFigure) -> PageFigure:
    """Return the parts of a trace that change over time."""
    return {key: trace[key] for key in ("x", "y", *(["marker"] if "text" in trace else []))}


def _layout(body: Body, labels: Sequence[str], first: int, name: str) -> PageFigure:
    low, high = body.frame()

    def axis(k: int, **more: Any) -> PageFigure:
        title = {"text": f"{body.axes[k]} ({body.unit or 'no unit'})"}
        return {"range": rounded(np.array([low[k], high[k]]), 4), **GRID, "title": title, "constrain": "domain", **more}

    go: PageFigure = {"mode": "immediate", "transition": {"duration": 0}}
    above = {"xref": "paper", "y": 1.02, "yref": "paper", "yanchor": "bottom", "showarrow": False}
    slider = {
        "active": first,
        "x": 0.14,
        "len": 0.86,
        "pad": {"t": 62},
        "currentvalue": {"prefix": "time: ", "font": {"size": 12}},
        "steps": [
            {"label": label, "method": "animate", "args": [[label], go | {"frame": {"duration": 0}}]}
            for label in labels
        ],
    }
    play = go | {"frame": {"duration": FRAME_DURATION}, "fromcurrent": True}
    menu = {
        "type": "buttons",
        "showactive": False,
        "x": 0.0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "top",
        "pad": {"t": 76},
        "buttons": [{"label": "play", "method": "animate", "args": [None, play]}],
    }
    return {
        **base_layout(HEIGHT),
        "showlegend": False,
        "margin": {"l": 52, "r": 12, "t": 64, "b": 40},
        "xaxis": axis(0, domain=[0.0, 0.46], anchor="y"),
        "yaxis": axis(1, scaleanchor="x", anchor="x"),
        "xaxis2": axis(0, domain=[0.54, 1.0], anchor="y2"),
        "yaxis2": axis(1, scaleanchor="x2", anchor="x2"),
        "title": {**NOTE, "text": body.legend()},
        "annotations": [{"text": side, "x": x, **above} for side, x in (("recorded", 0.23), (name, 0.77))],
        "sliders": [slider],
        "updatemenus": [menu],
    }
