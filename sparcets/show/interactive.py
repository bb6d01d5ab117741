"""Interactive figures as dictionaries of plain values for plotly.js, and static ones as SVG.

``show(curves_figure(e[0]))`` returns a plotly figure for a notebook.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np

from sparcets.core.evidence import VERDICTS
from sparcets.core.explanation import Explanation
from sparcets.core.registry import require_extra
from sparcets.core.series import FloatArray, Series
from sparcets.core.words import seconds, signed
from sparcets.show import drawing, style
from sparcets.show.changes import only_answer

PageFigure: TypeAlias = dict[str, Any]  # data, layout and optional frames, as plotly.js expects them

PANEL, GAP = 92, 30  # pixels: height of a panel, gap between two
TOP, BOTTOM = 84, 46  # pixels: margins above, with room for the toolbar and the legend, and below
MAX_COLUMNS = 400  # of a map, about the resolution of a screen
GRID = {"gridcolor": "#ececec", "zeroline": False}
FONT = {"family": "system-ui, sans-serif", "size": 12, "color": "#222222"}
NOTE = {"font": {"size": 12}, "x": 0, "xref": "paper", "y": 0.98}  # the title of a figure
BEHIND = {"type": "rect", "layer": "below", "line": {"width": 0}}  # shading behind curves and maps
MARKED = {**BEHIND, "fillcolor": style.MARK, "opacity": 0.2}
SVG_WIDTH, SVG_LEFT, SVG_RIGHT = 720.0, 60.0, 10.0  # pixels: whole picture, and margins beside the panels
SVG_TOP, SVG_PANEL, SVG_GAP, SVG_BOTTOM = 34.0, 52.0, 20.0, 34.0
MAX_POINTS = 400  # of a curve in SVG: about what a page can show
MAX_TICKS = 6  # of its time axis
SVG_DASHES = {
    "solid": "",
    "dash": ' stroke-dasharray="7 3"',
    "dot": ' stroke-dasharray="2 2"',
    "longdash": ' stroke-dasharray="9 5"',
}
SVG_MARK = f'fill="{style.MARK}" fill-opacity="0.25"'


def curves_figure(answer: Explanation, *, min_height: int = 0) -> PageFigure:
    """Return the curves of the most changed features of one answer before and after, changed segments marked.

    Parameters
    ----------
    answer
        An explanation of length 1.
    min_height
        Smallest height of the figure in pixels, such as the height of the figure beside it.

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
    curves = drawing.curves_of(answer)
    data, layout = [], _panels(curves, min_height)
    for row, panel in enumerate(curves.panels):
        data += [*_made(curves, row), _recorded(curves, row)]
        mark = {**MARKED, "xref": "x", "yref": f"y{row + 1 if row else ''} domain"}
        layout["shapes"] += [
            {**mark, "x0": round(float(start), 5), "x1": round(float(end), 5), "y0": 0, "y1": 1}
            for start, end in panel.curves[0].spans
        ]
    return {"data": data, "layout": layout}


def answers_figure(answers: Explanation) -> PageFigure:
    """Return several answers to one query over its recording, each drawn where it changes a feature."""
    curves = drawing.curves_of_several(answers)
    data = [trace for row in range(len(curves.panels)) for trace in (_recorded(curves, row), *_made(curves, row))]
    layout, lines = _panels(curves), 18 * len(curves.panels[0].curves)  # of the legend, in pixels
    layout["margin"]["t"] += lines
    layout["height"] += lines
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
    answer = only_answer(answer)
    n_steps, names = answer.query.shape[1], [escape(name, quote=False) for name in answer.feature_names]
    delta = answer.delta[0] / answer.info.scaler.scale  # (time, features)
    every = -(-n_steps // MAX_COLUMNS)
    if every > 1:
        padded = np.pad(delta, ((0, -n_steps % every), (0, 0))).reshape(-1, every, len(names))
        largest = np.abs(padded).argmax(1)[:, None]
        delta = np.take_along_axis(padded, largest, axis=1)[:, 0]
    limit = float(np.abs(delta).max()) or 1.0
    unit = "s" if answer.info.sampling_rate else "steps"
    trace = {
        "type": "heatmap",
        "x": rounded(drawing.times_of(answer)[::every]),
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
        "xaxis": {**frame, "title": {"text": drawing.time_label(answer)}},
        "yaxis": {**frame, "autorange": "reversed", "automargin": True, "tickfont": {"size": 10}},
        "title": {**NOTE, "text": f"white: no change{grey}"},
        "shapes": locked,
        "showlegend": False,
    }
    if len(names) <= MAX_COLUMNS // 8:  # for more names, plotly.js chooses the ticks
        layout["yaxis"] |= {"tickmode": "array", "tickvals": names, "ticktext": ticks}
    return {"data": [trace], "layout": layout}


def frequency_figure(answers: Explanation) -> PageFigure:
    """Return a heat map of the share of valid answers that change each entry; entries that never change are white.

    With unequal lengths, the share is over the series that have the entry.
    """
    found = answers[answers.valid & (answers.status != "unchanged")]
    n_steps = found.query.shape[1]
    every = -(-n_steps // MAX_COLUMNS)
    padded = np.pad(found.changed, ((0, 0), (0, -n_steps % every), (0, 0)))
    binned = padded.reshape(len(found), -1, every, answers.info.n_features).any(2)
    inside = Series(found.query, found.lengths).inside[:, ::every].sum(0)[:, None]  # (time, 1)
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


def _trace(curves: drawing.Curves, row: int, values: FloatArray, name: str, **line: Any) -> PageFigure:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": rounded(curves.times),
        "y": rounded(values),
        "xaxis": "x",
        "yaxis": f"y{row + 1 if row else ''}",
        "name": name,
        "legendgroup": name,
        "showlegend": row == 0,
        "line": line,
        "connectgaps": False,
    }


def _recorded(curves: drawing.Curves, row: int) -> PageFigure:
    return _trace(curves, row, curves.panels[row].recorded, "recorded", color=style.BEFORE, width=1.6)


def _made(curves: drawing.Curves, row: int) -> list[PageFigure]:
    return [
        _trace(curves, row, values, line_style.name, color=line_style.colour, width=2, dash=line_style.dash)
        for values, _, line_style in curves.panels[row].curves
    ]


def _panels(curves: drawing.Curves, min_height: int = 0) -> PageFigure:
    """Return the layout of stacked panels, each with the name and unit of its feature above it."""
    around, n = TOP + BOTTOM, len(curves.panels)
    panel_height = max(PANEL, (min_height - around + GAP) / n - GAP)
    height = n * (panel_height + GAP) - GAP
    legend = {"orientation": "h", "traceorder": "reversed", "x": 1, "xanchor": "right"}
    layout = {
        **base_layout(round(height) + around),
        "xaxis": {"title": {"text": curves.time_label}, "anchor": f"y{n if n > 1 else ''}", **GRID},
        "shapes": [],
        "legend": {**legend, "y": 1 + 22 / height, "yanchor": "bottom"},
        "hovermode": "x unified",
        "annotations": [],
    }
    at = {"x": 0, "xref": "paper", "xanchor": "left", "yref": "paper", "yanchor": "bottom", "showarrow": False}
    for row, panel in enumerate(curves.panels):
        top = 1 - row * (panel_height + GAP) / height
        domain = [max(0.0, top - panel_height / height), top]
        layout[f"yaxis{row + 1 if row else ''}"] = {"domain": domain, **GRID, "nticks": 4, "automargin": True}
        layout["annotations"].append({"text": escape(f"{panel.name} {panel.unit}", quote=False), "y": top, **at})
    return layout


def base_layout(height: int) -> PageFigure:
    """Return the common layout of all figures."""
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 48, "r": 12, "t": TOP, "b": BOTTOM},
        "font": FONT,
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "template": {},
    }


def agreement_figure(agreement: drawing.AgreementCurve) -> PageFigure:
    """Return the agreement curve of one answer: changed values against the smallest support of other models."""
    best = {"x": rounded(agreement.share), "y": rounded(agreement.best), "hoverinfo": "skip", "name": drawing.BEST}
    line = {"color": style.BEFORE, "width": 1.6, "shape": "hv"}
    data: list[PageFigure] = [{"type": "scatter", "mode": "lines", "line": line, **best}]
    for word, symbol in (("believed", "circle"), ("doubtful", "diamond-open"), ("not reached", "x-thin-open")):
        if (chosen := agreement.word == word).any():
            marker = {"color": VERDICTS[word].colour, "size": 8, "symbol": symbol}
            at = {"x": rounded(agreement.share[chosen]), "y": rounded(agreement.support[chosen])}
            hover = "%{x:.3g} % changed, %{y:.3g} % agree<extra></extra>"
            more = {"hovertemplate": hover, "name": drawing.MEANINGS[word]}
            data.append({"type": "scatter", "mode": "markers", "marker": marker, **at, **more})
    shapes: list[PageFigure] = [
        {**BEHIND, "xref": "paper", "x0": 0, "x1": 1, "y0": 50, "y1": 104, "fillcolor": VERDICTS["believed"].tint}
    ]
    for x, dash in zip(rounded(np.array(agreement.limits)), ("dot", "dash"), strict=True):
        if x is not None:
            line_style = {"color": style.BEFORE, "width": 1, "dash": dash}
            shapes.append({"type": "line", "x0": x, "x1": x, "yref": "paper", "y0": 0, "y1": 1, "line": line_style})
    label = "agreement of the least<br>convinced other models (%)"
    layout = {
        **base_layout(360),
        "xaxis": {**GRID, "title": {"text": drawing.SHARE}, "rangemode": "tozero"},
        "yaxis": {**GRID, "title": {"text": label}, "range": [-4, 104]},
        "shapes": shapes,
        "legend": {"orientation": "h", "x": 0, "y": -0.3, "yanchor": "top"},
        "title": {**NOTE, "text": agreement.title},
    }
    return {"data": data, "layout": layout}


def curves_svg(answer: Explanation) -> str:
    """Return the curves of :func:`curves_figure` as an SVG element of an HTML page, for paper and PDF."""
    curves = drawing.curves_of(answer)
    line_style = curves.panels[0].curves[0].line_style
    height = SVG_TOP + len(curves.panels) * (SVG_PANEL + SVG_GAP) - SVG_GAP + SVG_BOTTOM
    parts = [
        f'<svg viewBox="0 0 {SVG_WIDTH:g} {height:g}" role="img" '
        f'aria-label="{escape(line_style.name)}" font-family="system-ui, sans-serif" font-size="10" fill="#222">',
    ]
    x = SVG_LEFT
    for colour, dash, text in (
        (style.BEFORE, "", "recorded"),
        (line_style.colour, SVG_DASHES[line_style.dash], line_style.name),
    ):
        parts.append(
            f'<line x1="{x:g}" x2="{x + 26:g}" y1="7" y2="7" stroke="{colour}" stroke-width="2"{dash}/>'
            f'<text x="{x + 31:g}" y="10">{escape(text)}</text>'
        )
        x += 46 + 6 * len(text)
    parts.append(f'<rect x="{x:g}" y="1" width="14" height="11" {SVG_MARK}/><text x="{x + 19:g}" y="10">changed</text>')
    for row, panel in enumerate(curves.panels):
        parts += _svg_panel(curves, panel, SVG_TOP + row * (SVG_PANEL + SVG_GAP))
    return "".join([*parts, *_svg_time_axis(curves, height - SVG_BOTTOM), "</svg>"])


def _svg_x(curves: drawing.Curves, times: Any) -> Any:
    """Return the pixels of times."""
    ends = (float(curves.times[0]) - curves.half, float(curves.times[-1]) + curves.half)
    return np.interp(times, ends, (SVG_LEFT, SVG_WIDTH - SVG_RIGHT))


def _svg_panel(curves: drawing.Curves, panel: drawing.Panel, top: float) -> Iterator[str]:
    """Yield one feature: changed segments shaded, both curves, its name and the range of its values."""
    ((values, spans, line_style),) = panel.curves
    before, after = panel.recorded.astype(np.float64), values.astype(np.float64)
    low, high = float(np.nanmin([before, after])), float(np.nanmax([before, after]))
    for start, end in spans:
        left, right = _svg_x(curves, (start, end))
        yield f'<rect x="{left:.1f}" y="{top:g}" width="{right - left:.1f}" height="{SVG_PANEL:g}" {SVG_MARK}/>'
    frame = f"M{SVG_LEFT:g} {top:g}V{top + SVG_PANEL:g}H{SVG_WIDTH - SVG_RIGHT:g}"
    yield f'<path d="{frame}" fill="none" stroke="{style.FIXED}"/>'
    limits, pixels = (low, high if high > low else low + 1), (top + SVG_PANEL - 2, top + 2)
    every = -(-len(before) // MAX_POINTS)
    times = _svg_x(curves, curves.times[::every]).tolist()
    for drawn, colour, dash in ((after, line_style.colour, SVG_DASHES[line_style.dash]), (before, style.BEFORE, "")):
        points = zip(times, np.interp(drawn[::every], limits, pixels).tolist(), strict=True)
        for missing, run in groupby(points, lambda point: point[1] != point[1]):  # where a curve is interrupted
            if not missing:
                line = " ".join(f"{t:.1f},{y:.1f}" for t, y in run)
                yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>'
    yield f'<text x="{SVG_LEFT:g}" y="{top - 4:g}">{escape(f"{panel.name} {panel.unit}")}</text>'
    for text, at in zip(signed(high, low), (top + 8, top + SVG_PANEL), strict=True):
        yield f'<text x="{SVG_LEFT - 4:g}" y="{at:g}" text-anchor="end">{text}</text>'


def _svg_time_axis(curves: drawing.Curves, top: float) -> Iterator[str]:
    times = curves.times.tolist()
    ticks = sorted({round(k * (len(times) - 1) / (MAX_TICKS - 1)) for k in range(MAX_TICKS)})
    for k, written in zip(ticks, seconds(*(times[k] for k in ticks)), strict=True):
        at, text = _svg_x(curves, times[k]), written.rstrip("0").rstrip(".")
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{top:g}" y2="{top + 4:g}" stroke="{style.FIXED}"/>'
        yield f'<text x="{at:.1f}" y="{top + 14:g}" text-anchor="middle">{text}</text>'
    middle = (SVG_LEFT + SVG_WIDTH - SVG_RIGHT) / 2
    yield f'<text x="{middle:g}" y="{top + 28:g}" text-anchor="middle">{curves.time_label}</text>'
