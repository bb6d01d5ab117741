"""Distances between body points in queries and counterfactuals: figure 6 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.errors import ShapeError
from sparcets.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WHISKERS = (1, 99)  # percentiles; a few outliers among thousands of steps would compress the boxes
COLUMNS = 4


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
    n_columns = min(COLUMNS, len(lengths))
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
