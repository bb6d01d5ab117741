"""t-SNE maps of queries, real series of the target class and counterfactuals: figure 3 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sparcets.errors import ShapeError
from sparcets.metrics.embedding import Points
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 5

STYLES = {
    "queries": style.MethodStyle(style.VERMILION, "o", ""),
    "targets": style.MethodStyle(style.GREEN, "^", ""),
    "counterfactuals": style.MethodStyle(style.BLUE, "x", ""),
}


def plot_embedding(points: Mapping[str, Points]) -> Figure:
    """Draw the maps returned by :func:`embed` side by side.

    Parameters
    ----------
    points
        Positions of queries, targets and counterfactuals, each (samples, 2), by method.

    Returns
    -------
    figure
        One axes per method, five in a row. The axes have no ticks: t-SNE preserves neighbourhoods, not distances.

    Examples
    --------
    >>> here = np.zeros((3, 2))
    >>> [axes.get_title(loc="left") for axes in plot_embedding({"SPARCE": Points(here, here + 1, here + 2)}).axes]
    ['SPARCE']
    """
    if not points:
        raise ShapeError("there is no map to draw, got an empty mapping. Pass the result of embed(...).")
    n_columns = min(COLUMNS, len(points))
    n_rows = -(-len(points) // n_columns)
    with style.new_figure(max(4.2, 2.3 * n_columns), 0.5 + 2.4 * n_rows) as figure:
        grid = figure.add_gridspec(n_rows, n_columns)
        for i, (method, positions) in enumerate(points.items()):
            axes = figure.add_subplot(grid[i // n_columns, i % n_columns])
            for (kind, look), xy in zip(STYLES.items(), positions, strict=True):
                x, y = np.asarray(xy).T
                # Counterfactuals overlap their queries where little changed: small markers keep both visible.
                size = 8 if kind == "counterfactuals" else 22
                axes.scatter(x, y, s=size, c=look.colour, marker=look.marker, lw=0.9, alpha=0.75, label=kind)
            axes.set_title(style.escape_mathtext(method), loc="left")
            axes.set(xticks=[], yticks=[], xlabel="t-SNE 1 (no unit)")
            if i % n_columns == 0:
                axes.set_ylabel("t-SNE 2 (no unit)")
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(STYLES), markerscale=1.4)
    return figure
