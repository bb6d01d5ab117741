"""Interactive figures as dictionaries of plain values for plotly.js.

``show(curves_figure(e[0]))`` returns a plotly figure for a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from sparcets.core.arrays import FloatArray, length_mask
from sparcets.core.evidence import VERDICTS, find_segments
from sparcets.core.explanation import Explanation
from sparcets.core.registry import require_extra
from sparcets.show import style
from sparcets.show.plots import (
    BEST,
    MAX_ANSWERS,
    MEANINGS,
    answer_label,
    curve_points,
    limits_of,
    look_of,
    most_changed,
    n_steps_of,
    name_of,
    only_answer,
    shade_of,
    time_label,
    times_of,
    unit_of,
)

PageFigure: TypeAlias = dict[str, Any]  # data, layout and optional frames, as plotly.js expects them

PANEL, GAP = 92, 30  # pixels: height of a panel, gap between two
TOP, BOTTOM = 84, 46  # pixels: margins above, with room for the toolbar and the legend, and below
MAX_COLUMNS = 400  # of a map, about the resolution of a screen
DASHES = ("solid", "dash", "dashdot", "dot")  # of several answers, as in the matplotlib figures
GRID = "#ececec"
FONT = {"family": "system-ui, sans-serif", "size": 12, "color": "#222222"}
BEHIND = {"type": "rect", "layer": "below", "line": {"width": 0}}  # shading behind curves and maps


def curves_figure(answer: Explanation, *, min_height: int = 0) -> PageFigure:
    """Return the curves of the most changed features of one answer before and after, changed segments marked.

    Parameters
    ----------
    answer
        An explanation of length 1.
    min_height
        Least height of the figure in pixels, such as that of the one beside it.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> from sparcets.testing.mocks import mean_proba
    >>> X, y = make_series(60)
    >>> e = sp.Nearest(sp.wrap(mean_proba)).fit(X, y).explain(X[y == 0][:2], target=1)
    >>> [trace["name"] for trace in curves_figure(e[0])["data"][:2]]
    ['attempt (? doubtful)', 'recorded']
    """
    shown, look = most_changed(only_answer(answer)), look_of(answer)
    times = rounded(times_of(answer))
    data, shapes = [], []
    for row, feature in enumerate(shown):
        after = rounded(answer.counterfactual[0, : len(times), feature])
        data.append(_trace(times, after, row, name_of(answer), {"color": look.colour, "width": 2, "dash": look.dash}))
        data.append(_recorded(answer, feature, row))
        shapes += _changed_shapes(answer, feature, row)
    return {"data": data, "layout": _panels(answer, shown, shapes, min_height)}


def answers_figure(answers: Explanation) -> PageFigure:
    """Return several answers to one query over its recording, each drawn where it changes something."""
    found = answers[np.isin(answers.status, ["generated", "refined", "neighbour"])][:MAX_ANSWERS]
    shown = most_changed(found if len(found) else answers)
    times = rounded(times_of(answers[0]))
    data = []
    for row, feature in enumerate(shown):
        data.append(_recorded(answers[0], feature, row))
        for number, answer in enumerate(found):
            changed = answer.changed[0, : len(times), feature]
            near = changed | np.append(changed[1:], False) | np.append(False, changed[:-1])
            drawn = np.where(near, answer.counterfactual[0, : len(times), feature], np.nan)
            line = {"color": shade_of(answer, number), "width": 2, "dash": DASHES[number]}
            data.append(_trace(times, rounded(drawn), row, answer_label(answer, number), line))
    layout = _panels(answers[0], shown, [])
    layout["margin"]["t"] += 18 * len(found)
    layout["height"] += 18 * len(found)
    layout["legend"] |= {"orientation": "v", "traceorder": "normal"}
    return {"data": data, "layout": layout}


def map_figure(answer: Explanation) -> PageFigure:
    """Return a heat map of the changes of one answer in standard deviations; exact zeros are white.

    For long series, each column shows the largest change of several steps.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(30)
    >>> e = sp.Nearest(sp.wrap(mocks.mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1)
    >>> map_figure(e)["data"][0]["type"]
    'heatmap'
    """
    only_answer(answer)
    n_steps, names = n_steps_of(answer), [_escape(name) for name in answer.feature_names]
    delta = answer.delta[0, :n_steps] / answer.info.scaler.scale  # (time, features)
    every = -(-n_steps // MAX_COLUMNS)
    if every > 1:
        padded = np.pad(delta, ((0, -n_steps % every), (0, 0))).reshape(-1, every, len(names))
        largest = np.abs(padded).argmax(1)[:, None]
        delta = np.take_along_axis(padded, largest, axis=1)[:, 0]
    limit = float(np.abs(delta).max()) or 1.0
    unit = "s" if answer.info.sampling_rate else "steps"
    trace = {
        "type": "heatmap",
        "x": rounded(times_of(answer)[::every]),
        "y": names,
        "z": [rounded(np.where(row == 0, np.nan, row)) for row in delta.T],
        "zmin": -limit,
        "zmax": limit,
        "colorscale": [list(stop) for stop in style.CHANGES],
        "colorbar": {"title": {"text": "change (standard deviations)", "side": "right"}, "thickness": 12},
        "hovertemplate": f"%{{y}}<br>%{{x}} {unit}: %{{z:.2f}} standard deviations<extra></extra>",
        "hoverongaps": False,
    }
    grey = "" if answer.mutable.all() else "; grey: not allowed to change"
    ticks = [
        name if free else f'<span style="color:{style.FIXED}">{name}</span>'
        for name, free in zip(names, answer.mutable, strict=True)
    ]
    locked = [
        {**BEHIND, "xref": "paper", "x0": 0, "x1": 1, "y0": row - 0.5, "y1": row + 0.5, "fillcolor": style.LOCKED}
        for row in np.flatnonzero(~answer.mutable).tolist()
    ]
    # No grid, because white areas are data.
    frame = {"mirror": True, "showline": True, "linecolor": style.FIXED, "showgrid": False, "zeroline": False}
    layout = {
        **base_layout(max(300, min(900, 15 * len(names) + TOP + BOTTOM))),
        "xaxis": {**frame, "title": {"text": time_label(answer)}},
        "yaxis": {**frame, "autorange": "reversed", "automargin": True, "tickfont": {"size": 10}},
        "title": {"text": f"white: no change{grey}", "font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.98},
        "shapes": locked,
        "showlegend": False,
    }
    if len(names) <= MAX_COLUMNS // 8:  # for more names, plotly.js chooses the ticks
        layout["yaxis"] |= {"tickmode": "array", "tickvals": names, "ticktext": ticks}
    return {"data": [trace], "layout": layout}


def frequency_figure(answers: Explanation) -> PageFigure:
    """Return a heat map of the share of valid answers that change each entry; entries that never change are white.

    Of series of unequal length, those count that have the entry.
    """
    found = answers[answers.valid & (answers.status != "unchanged")]
    n_steps = found.query.shape[1]
    every = -(-n_steps // MAX_COLUMNS)
    padded = np.pad(found.changed, ((0, 0), (0, -n_steps % every), (0, 0)))
    binned = padded.reshape(len(found), -1, every, answers.info.n_features).any(2)
    inside = length_mask(found.lengths, len(found), n_steps)[:, ::every].sum(0)[:, None]  # (time, 1)
    share = 100 * binned.sum(0) / np.maximum(inside, 1)  # (time, features)
    step = every / (answers.info.sampling_rate or 1.0)
    figure = map_figure(answers[0])
    trace, layout = figure["data"][0], figure["layout"]
    trace |= {
        "x": rounded(np.arange(len(share)) * step),
        "z": [rounded(np.where(row == 0, np.nan, row), 3) for row in share.T],
        "zmin": 0,
        "zmax": max(float(share.max()), 1.0),
        "colorscale": [list(stop) for stop in style.SHARES],
        "colorbar": {"title": {"text": "answers that change it (%)", "side": "right"}, "thickness": 12},
        "hovertemplate": "%{y}, %{x}: %{z:.3g} % of the answers<extra></extra>",
    }
    layout["title"]["text"] = layout["title"]["text"].replace("no change", "never changed")
    return figure


def show(figure: PageFigure) -> Any:
    """Return a figure of this module as a ``plotly.graph_objects.Figure``; needs ``sparcets[plots]``.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing import data, mocks
    >>> X, y = data.make_series(30)
    >>> e = sp.Nearest(sp.wrap(mocks.mean_proba)).fit(X, y).explain(X[y == 0][:1], target=1)
    >>> type(show(map_figure(e))).__name__
    'Figure'
    """
    graph = require_extra("plotly.graph_objects", "plots", "plots")
    return graph.Figure(data=figure["data"], layout=figure["layout"], frames=figure.get("frames"))


def plotly_js() -> str:
    """Return the source of plotly.js from the installed plotly; needs ``sparcets[plots]``."""
    source: str = require_extra("plotly.offline", "reports", "plots").get_plotlyjs()
    return source


def rounded(values: FloatArray, figures: int = 5) -> list[float | None]:
    """Return numbers for JSON rounded to ``figures`` significant digits; NaN becomes None.

    >>> rounded(np.array([0.123456789, np.nan, 12345678.0, 0.0]))
    [0.12346, None, 12346000.0, 0.0]
    """
    return [None if v != v else float(f"{v:.{figures}g}") for v in values.tolist()]


def _trace(times: list[float | None], values: list[float | None], row: int, name: str, line: Any) -> PageFigure:
    number = "" if row == 0 else str(row + 1)
    return {
        "type": "scatter",
        "mode": "lines",
        "x": times,
        "y": values,
        "xaxis": "x",
        "yaxis": f"y{number}",
        "name": name,
        "legendgroup": name,
        "showlegend": row == 0,
        "line": line,
        "connectgaps": False,
    }


def _recorded(answer: Explanation, feature: int, row: int) -> PageFigure:
    times = rounded(times_of(answer))
    values = rounded(answer.query[0, : len(times), feature])
    return _trace(times, values, row, "recorded", {"color": style.BEFORE, "width": 1.6})


def _changed_shapes(answer: Explanation, feature: int, row: int) -> list[PageFigure]:
    step = 1 / (answer.info.sampling_rate or 1.0)
    found = find_segments(answer.changed[:1, : n_steps_of(answer), [feature]])
    return [
        {
            **BEHIND,
            "xref": "x",
            "yref": f"y{row + 1 if row else ''} domain",
            "x0": round((start - 0.5) * step, 5),
            "x1": round((end - 0.5) * step, 5),
            "y0": 0,
            "y1": 1,
            "fillcolor": style.MARK,
            "opacity": 0.2,
        }
        for start, end in zip(found.start.tolist(), found.end.tolist(), strict=True)
    ]


def _panels(answer: Explanation, shown: Sequence[int], shapes: list[PageFigure], min_height: int = 0) -> PageFigure:
    """Return the layout of stacked panels, each with the name and unit of its feature above it."""
    around = TOP + BOTTOM
    panel = max(PANEL, (min_height - around + GAP) / len(shown) - GAP)
    height = len(shown) * (panel + GAP) - GAP
    layout = {
        **base_layout(round(height) + around),
        "xaxis": {
            "title": {"text": time_label(answer)},
            "anchor": f"y{len(shown) if len(shown) > 1 else ''}",
            "gridcolor": GRID,
            "zeroline": False,
        },
        "shapes": shapes,
        "legend": {
            "orientation": "h",
            "traceorder": "reversed",
            "x": 1,
            "xanchor": "right",
            "y": 1 + 22 / height,
            "yanchor": "bottom",
        },
        "hovermode": "x unified",
        "annotations": [],
    }
    for row, feature in enumerate(shown):
        top = 1 - row * (panel + GAP) / height
        layout[f"yaxis{row + 1 if row else ''}"] = {
            "domain": [max(0.0, top - panel / height), top],
            "gridcolor": GRID,
            "zeroline": False,
            "nticks": 4,
            "automargin": True,
        }
        layout["annotations"].append(
            {
                "text": _escape(f"{answer.feature_names[feature]} {unit_of(answer, feature)}"),
                "x": 0,
                "xref": "paper",
                "xanchor": "left",
                "y": top,
                "yref": "paper",
                "yanchor": "bottom",
                "showarrow": False,
            }
        )
    return layout


def base_layout(height: int) -> PageFigure:
    """Return what the layouts of all figures share."""
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 48, "r": 12, "t": TOP, "b": BOTTOM},
        "font": FONT,
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "template": {},
    }


def _escape(text: str) -> str:
    """Escape characters that plotly.js would read as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


SYMBOLS = {"believed": "circle", "doubtful": "diamond-open", "not reached": "x-thin-open"}  # on the curve of belief


def belief_figure(answer: Explanation) -> PageFigure:
    """Return the curve of belief of one answer: changed values against the least convinced kind of other models."""
    points = curve_points(only_answer(answer))
    axis = {"gridcolor": GRID, "zeroline": False}
    line: PageFigure = {
        "type": "scatter",
        "mode": "lines",
        "x": rounded(points.share),
        "y": rounded(points.best),
        "line": {"color": style.BEFORE, "width": 1.6, "shape": "hv"},
        "hoverinfo": "skip",
        "name": BEST,
    }
    data = [line]
    for word, symbol in SYMBOLS.items():
        chosen = points.word == word
        if chosen.any():
            marker = {"color": VERDICTS[word].colour, "size": 8, "symbol": symbol}
            at = {"x": rounded(points.share[chosen]), "y": rounded(points.support[chosen])}
            more = {"hovertemplate": "%{x:.3g} % changed, %{y:.3g} % agree<extra></extra>", "name": MEANINGS[word]}
            data.append({"type": "scatter", "mode": "markers", "marker": marker, **at, **more})
    shapes: list[PageFigure] = [
        {**BEHIND, "xref": "paper", "x0": 0, "x1": 1, "y0": 50, "y1": 104, "fillcolor": VERDICTS["believed"].tint}
    ]
    for share, dash in ((answer.flips_at[0], "dot"), (answer.least_believed[0], "dash")):
        if np.isfinite(share):
            x = rounded(np.array([100 * share]))[0]
            look = {"color": style.BEFORE, "width": 1, "dash": dash}
            shapes.append({"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": look})
    layout = {
        **base_layout(360),
        "xaxis": {**axis, "title": {"text": "changed values (% of those that may change)"}, "rangemode": "tozero"},
        "yaxis": {
            **axis,
            "title": {"text": "agreement of the least<br>convinced other models (%)"},
            "range": [-4, 104],
        },
        "shapes": shapes,
        "legend": {"orientation": "h", "x": 0, "y": -0.3, "yanchor": "top"},
        "title": {"text": limits_of(answer), "font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.98},
    }
    return {"data": data, "layout": layout}
