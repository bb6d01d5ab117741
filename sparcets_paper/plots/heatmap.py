"""Series as heat maps with features on the x axis and time downwards: figures 1, 4 and 7 of the paper."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.series import FloatArray
from sparcets.show import style
from sparcets_paper.plots.benchmark import method_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Panel = tuple[str, Any]  # a title, and an array (time, features)
VALUES = "viridis"  # colour map of recorded values
SIZES = "plasma_r"  # colour map of |δ|: even the smallest is far from white, which means exactly 0


def plot_heatmaps(
    panels: Sequence[Panel], *, feature_names: Sequence[str], sampling_rate: float | None = None
) -> Figure:
    """Draw series side by side as heat maps on one colour scale, each above the curve of one feature (figure 1).

    Parameters
    ----------
    panels
        Titles and series (time, features), standardised; the first is the query, whose curve is repeated in grey under
        the others. The curves are those of the feature that differs most between the first and last panel.
    feature_names
        Names of the features, for the label of the curves.
    sampling_rate
        Steps per second; without it, time is in steps.

    Returns
    -------
    figure
        Its axes are the heat maps, the curves and the colour bar.

    Examples
    --------
    >>> figure = plot_heatmaps([("query", np.zeros((9, 2))), ("SPARCE", np.eye(9, 2))], feature_names=["a", "b"])
    >>> [axes.get_title(loc="left") for axes in figure.axes[:2]]
    ['query', 'SPARCE']
    """
    stack = np.stack([series for _, series in panels])  # (panels, time, features)
    shown = int(np.abs(stack[-1] - stack[0]).sum(0).argmax())
    time = "time (s)" if sampling_rate else "time step"
    seconds = 1 / (sampling_rate or 1.0)
    times = np.arange(stack.shape[1]) * seconds
    styles = method_styles(title for title, _ in panels[1:])
    n = len(panels)
    with style.new_figure(min(9.0, 2.4 + 2.0 * n), 4.2) as figure:
        axes = np.asarray(figure.subplots(2, n, squeeze=False, sharey="row", height_ratios=[2, 1]))  # (2, panels)
        for i, (title, series) in enumerate(panels):
            image = _draw(axes[0, i], series, title, cmap=VALUES, clim=_range(stack), step=seconds)
            # A marker above the map shows which column is drawn as a curve below.
            above = axes[0, i].get_xaxis_transform()
            axes[0, i].plot(shown, 1.025, "v", color=style.BLACK, ms=5, clip_on=False, transform=above)
            if i > 0:
                axes[1, i].plot(times, stack[0, :, shown], color=style.FIXED, lw=1.2)
            colour = styles[title].colour if i > 0 else style.BEFORE
            axes[1, i].plot(times, series[:, shown], color=colour, lw=1.4)
            axes[1, i].set(xlabel=time, xlim=(times[0], times[-1]))
        axes[0, 0].set_ylabel(time)
        axes[1, 0].set_title(style.escape_mathtext(f"▼ {feature_names[shown]}"), loc="left")
        axes[1, 0].set_ylabel("value\n(standard\ndeviations)")
        label = "value (standard deviations)"
        figure.colorbar(image, ax=axes[0].tolist(), fraction=0.05, pad=0.02, label=label)
    return figure


def plot_saliency(rows: Sequence[Sequence[Panel]]) -> Figure:
    """Draw the changes of each method beside the salient entries, one query per row (figures 4 and 7).

    Parameters
    ----------
    rows
        For each query its panels, titles and arrays (time, features): the query, the mask of salient entries, and the
        absolute residual |δ| of each method, standardised. Exact zeros of δ are white, and all residuals of a row share
        one colour scale.

    Returns
    -------
    figure
        Its axes are the panels row by row, then for each row the colour bars of the query and of the residuals.

    Examples
    --------
    >>> row = [("query", np.zeros((9, 4))), ("salient", np.eye(9, 4)), ("SPARCE", np.eye(9, 4))]
    >>> figure = plot_saliency([row, row])
    >>> len(figure.axes), float(figure.axes[2].images[0].get_array().sum())
    (10, 4.0)
    """
    n = len(rows[0])
    with style.new_figure(min(10.5, 1.9 + 1.35 * n), 0.6 + 1.65 * len(rows)) as figure:
        axes = np.asarray(figure.subplots(len(rows), n, squeeze=False, sharex=True, sharey=True))
        for i, row in enumerate(rows):
            titles = [_wrapped(title) if i == 0 else "" for title, _ in row]
            query, mask, *sizes = (array for _, array in row)
            values = _draw(axes[i, 0], query, titles[0], cmap=VALUES, clim=_range(query))
            _draw(axes[i, 1], mask, titles[1], cmap="Greys", clim=(0.0, 1.0))
            largest = float(np.max(sizes)) or 1.0
            for panel, size, title in zip(axes[i, 2:], sizes, titles[2:], strict=True):
                drawn = np.where(size == 0, np.nan, size)  # NaN is white
                image = _draw(panel, drawn, title, cmap=SIZES, clim=(0.0, largest))
            axes[i, 0].set_ylabel("time step")
            for drawn_image, label, panel in ((values, "value", axes[i, 0]), (image, "|δ|", axes[i, -1])):
                bar = figure.colorbar(drawn_image, ax=panel, fraction=0.06, pad=0.03, aspect=14)
                bar.ax.set_title(label, fontsize=style.TICKS, loc="left", pad=4)
        for panel in axes[:-1].flat:
            panel.set_xlabel("")
        note = "value and |δ| in standard deviations; white: no change; black: salient"
        figure.supxlabel(note, fontsize=style.TICKS)
    return figure


def _wrapped(title: str) -> str:
    """Wrap a title to the width of its panel."""
    return "\n".join(textwrap.fill(line, 14) for line in title.splitlines())


def _range(values: FloatArray) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return (low, high) if low < high else (low - 1.0, high + 1.0)


def _draw(
    axes: Axes, series: FloatArray, title: str, *, cmap: str, clim: tuple[float, float], step: float = 1.0
) -> AxesImage:
    """Draw ``series[t, f]`` at x = f, y = t, with the time axis downwards."""
    n_steps, n_features = series.shape
    extent = (-0.5, n_features - 0.5, (n_steps - 0.5) * step, -0.5 * step)
    low, high = clim
    image = axes.imshow(series, aspect="auto", cmap=cmap, vmin=low, vmax=high, interpolation="nearest", extent=extent)
    axes.set_title(style.escape_mathtext(title), loc="left", pad=11)
    axes.set_xlabel("feature")
    for spine in axes.spines.values():
        spine.set(visible=True, color=style.FIXED, linewidth=0.6)  # a frame, because white areas are data
    return image
