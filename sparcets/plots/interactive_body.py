"""Animated stick figure for plotly.js: recording and counterfactual side by side, with a time slider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray
from sparcets.explanation.result import Explanation
from sparcets.plots import style
from sparcets.plots.body import BALL, Body, find_body
from sparcets.plots.interactive import FONT, GRID, PageFigure, rounded
from sparcets.plots.labels import n_steps_of, only_answer
from sparcets.plots.trust import look_of, name_of

MAX_FRAMES = 120  # longer series are subsampled
HEIGHT = 500  # pixels
FRAME_DURATION = 40  # milliseconds, when played


def body_figure(answer: Explanation) -> PageFigure | None:
    """Return the animated stick figure of one answer; None if its features name no body."""
    body = find_body(only_answer(answer))
    if body is None:
        return None
    steps = list(range(0, n_steps_of(answer), -(-n_steps_of(answer) // MAX_FRAMES)))
    rate, colour = answer.info.sampling_rate, look_of(answer).colour
    labels = [f"{step / rate:.2f} s" if rate else f"step {step}" for step in steps]
    frames = [
        {"name": label, "data": [_frame_data(trace) for trace in _traces(body, step, colour)]}
        for label, step in zip(labels, steps, strict=True)
    ]
    moved = np.abs(answer.delta[0, steps] / answer.info.scaler.scale).sum(1)  # (frames,)
    first = int(moved.argmax())  # the step that changes most
    layout = _layout(body, labels, first, name_of(answer))
    return {"data": list(_traces(body, steps[first], colour)), "layout": layout, "frames": frames}


def _traces(body: Body, step: int, made_colour: str) -> Iterator[PageFigure]:
    """Yield the traces of one step, always the same ones in the same order, as plotly.js requires of frames."""
    for side, (axis, points, colour) in enumerate(
        (("", body.query, style.BEFORE), ("2", body.counterfactual, made_colour))
    ):
        if side == 1:
            yield _lines([*body.limbs, *body.outline], body.query, step, axis, style.FIXED, 1.2, "solid")
        yield _lines(body.outline, points, step, axis, colour, 1, "dot")
        right = [limb for limb in body.limbs if limb[0].startswith("Right")]
        yield _lines([limb for limb in body.limbs if limb not in right], points, step, axis, colour, 3, "solid")
        yield _lines(right, points, step, axis, colour, 3, "dash")
        names = [name for name in points if name != BALL]
        moved = [side == 1 and bool(body.changed[name][step]) for name in names]
        at = np.array([points[name][step] for name in names])  # (points, 2)
        yield {
            "type": "scatter",
            "mode": "markers",
            "x": rounded(at[:, 0], 4),
            "y": rounded(at[:, 1], 4),
            "text": names,
            "hovertemplate": "%{text}<br>%{x}, %{y}<extra></extra>",
            "marker": {"color": [style.MARK if m else colour for m in moved], "size": [10 if m else 7 for m in moved]},
            "xaxis": f"x{axis}",
            "yaxis": f"y{axis}",
        }
        if BALL in points:
            ball = points[BALL][step]
            yield {
                "type": "scatter",
                "mode": "markers",
                "x": rounded(ball[:1], 4),
                "y": rounded(ball[1:], 4),
                "hovertemplate": "ball<extra></extra>",
                "marker": {"color": "white", "size": 13, "line": {"color": style.BLACK, "width": 1.5}},
                "xaxis": f"x{axis}",
                "yaxis": f"y{axis}",
            }


def _lines(
    limbs: Sequence[tuple[str, str]],
    points: Mapping[str, FloatArray],
    step: int,
    axis: str,
    colour: str,
    width: float,
    dash: str,
) -> PageFigure:
    corners: list[list[float | None]] = [[], []]
    for limb in limbs:
        for k in range(2):
            corners[k] += [*rounded(np.array([points[point][step][k] for point in limb]), 4), None]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": corners[0],
        "y": corners[1],
        "hoverinfo": "skip",
        "line": {"color": colour, "width": width, "dash": dash},
        "xaxis": f"x{axis}",
        "yaxis": f"y{axis}",
    }


def _frame_data(trace: PageFigure) -> PageFigure:
    """Return the parts of a trace that change over time."""
    kept = {key: trace[key] for key in ("x", "y")}
    return kept | ({"marker": trace["marker"]} if "text" in trace else {})


def _layout(body: Body, labels: Sequence[str], first: int, name: str) -> PageFigure:
    low, high = body.frame()
    unit = body.unit or "no unit"

    def axis(k: int, **more: Any) -> PageFigure:
        shared = {"range": rounded(np.array([low[k], high[k]]), 4), "gridcolor": GRID, "zeroline": False}
        return {**shared, "title": {"text": f"{body.axes[k]} ({unit})"}, **more}

    go: PageFigure = {"mode": "immediate", "transition": {"duration": 0}}
    return {
        "height": HEIGHT,
        "autosize": True,
        "showlegend": False,
        "margin": {"l": 52, "r": 12, "t": 64, "b": 40},
        "font": FONT,
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "template": {},
        "xaxis": axis(0, domain=[0.0, 0.46], constrain="domain", anchor="y"),
        "yaxis": axis(1, scaleanchor="x", constrain="domain", anchor="x"),
        "xaxis2": axis(0, domain=[0.54, 1.0], constrain="domain", anchor="y2"),
        "yaxis2": axis(1, scaleanchor="x2", constrain="domain", anchor="x2"),
        "title": {"text": body.legend(), "font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.98},
        "annotations": [
            {"text": side, "x": x, "xref": "paper", "y": 1.02, "yref": "paper", "yanchor": "bottom", "showarrow": False}
            for side, x in (("recorded", 0.23), (name, 0.77))
        ],
        "sliders": [
            {
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
        ],
        "updatemenus": [
            {
                "type": "buttons",
                "showactive": False,
                "x": 0.0,
                "y": 0,
                "xanchor": "left",
                "yanchor": "top",
                "pad": {"t": 76},
                "buttons": [
                    {
                        "label": "play",
                        "method": "animate",
                        "args": [None, go | {"frame": {"duration": FRAME_DURATION}, "fromcurrent": True}],
                    }
                ],
            }
        ],
    }
