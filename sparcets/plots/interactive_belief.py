"""The curve of belief for plotly.js: how much may change against who believes it."""

from __future__ import annotations

import numpy as np

from sparcets.explanation.result import Explanation
from sparcets.explanation.verdict import VERDICTS
from sparcets.plots import style
from sparcets.plots.belief import BEST, MEANINGS, curve_points, limits_of
from sparcets.plots.interactive import BEHIND, GRID, PageFigure, base_layout, rounded
from sparcets.plots.labels import only_answer

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
