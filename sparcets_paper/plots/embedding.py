"""t-SNE maps of queries, real series of the target class and counterfactuals: figure 3 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import ShapeError
from sparcets.evaluation.embedding import Points
from sparcets.show import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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


WHISKERS = (1, 99)  # percentiles; a few outliers among thousands of steps would compress the boxes
DISTANCE_COLUMNS = 4


def plot_distances(lengths: Mapping[str, Mapping[str, Any]], *, unit: str = "m") -> Figure:
    """Draw box plots of distances between body points, one panel per pair of points, one box per method.

    The length of a limb is fixed, so boxes that are wider than or shifted from the originals are implausible.

    Parameters
    ----------
    lengths
        For each pair of points, and for the originals and each method, the distances at all steps of all series, of any
        shape. The first entry of a pair is the reference, whose median is drawn as a dotted line.
    unit
        Unit of the distances.

    Returns
    -------
    figure
        One axes per pair of points, four per row.

    Examples
    --------
    >>> figure = plot_distances({"shoulder–elbow": {"originals": [0.3, 0.3, 0.31], "SPARCE": [0.2, 0.3, 0.4]}})
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['originals', 'SPARCE']
    """
    if not lengths or not all(lengths.values()):
        raise ShapeError("there is no distance to draw, got an empty mapping. Pass {limb: {method: distances}}.")
    n_columns = min(DISTANCE_COLUMNS, len(lengths))
    n_rows = -(-len(lengths) // n_columns)
    boxes = max(len(by_method) for by_method in lengths.values())
    width = max(3.2, min(9.0, n_columns * (0.7 + 0.5 * boxes)))
    with style.new_figure(width, 0.3 + 3.0 * n_rows) as figure:
        grid = figure.add_gridspec(n_rows, n_columns)
        for i, (limb, by_method) in enumerate(lengths.items()):
            axes = figure.add_subplot(grid[i // n_columns, i % n_columns])
            _draw(axes, by_method)
            axes.set_title(style.escape_mathtext(limb), loc="left", fontsize=9)
            if i % n_columns == 0:
                axes.set_ylabel(f"distance ({unit})")
        figure.supxlabel("box: quartiles; whiskers: 1st to 99th percentile", fontsize=style.TICKS)
    return figure


def _draw(axes: Axes, by_method: Mapping[str, Any]) -> None:
    names = list(by_method)
    colours = [style.BEFORE, *(look.colour for look in style.method_styles(names[1:]).values())]
    values = [np.asarray(by_method[name], dtype=float).ravel() for name in names]
    drawn = axes.boxplot(values, whis=WHISKERS, showfliers=False, widths=0.6, patch_artist=True)
    for box, median, colour in zip(drawn["boxes"], drawn["medians"], colours, strict=True):
        box.set(facecolor=colour, edgecolor=colour, alpha=0.75)
        median.set(color="white", linewidth=1.6)
    for part in ("whiskers", "caps"):
        for i, line in enumerate(drawn[part]):
            line.set(color=colours[i // 2])
    axes.axhline(float(np.median(values[0])), color=style.BEFORE, lw=0.9, ls=":", zorder=0)
    labels = [style.escape_mathtext(name) for name in names]
    axes.set_xticks(range(1, len(names) + 1), labels, rotation=30, ha="right", rotation_mode="anchor")
