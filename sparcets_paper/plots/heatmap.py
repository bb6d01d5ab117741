"""Series as heat maps with features on the x axis and time downwards: figures 1, 4 and 7 of the paper."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import ShapeError
from sparcets.core.series import FloatArray
from sparcets.show import style
from sparcets_paper.plots.benchmark import method_styles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Panel = tuple[str, Any]  # a title, and an array (time, features)
UNIT = "standard deviations"


def plot_heatmaps(
    panels: Sequence[Panel],
    *,
    feature_names: Sequence[str] | None = None,
    sampling_rate: float | None = None,
    unit: str = UNIT,
) -> Figure:
    """Draw series side by side as heat maps on one colour scale, each above the curve of one feature (figure 1).

    Parameters
    ----------
    panels
        Titles and series (time, features) of one shape, in one unit; the first is the query, whose curve is repeated in
        grey under the others. The curves are those of the feature that differs most between the first and last panel.
    feature_names
        Names of the features, for the label of the curves.
    sampling_rate
        Steps per second; without it, time is in steps.
    unit
        Unit of the values.

    Returns
    -------
    figure
        Its axes are the heat maps, the curves and the colour bar.

    Examples
    --------
    >>> figure = plot_heatmaps([("query", np.zeros((9, 4))), ("SPARCE", np.eye(9, 4))])
    >>> [axes.get_title(loc="left") for axes in figure.axes[:2]]
    ['query', 'SPARCE']
    """
    titles, arrays = _check([panels])[0]
    stack = np.stack(arrays)  # (panels, time, features)
    shown = int(np.abs(stack[-1] - stack[0]).sum(0).argmax())
    name = feature_names[shown] if feature_names is not None else f"feature {shown}"
    time = "time (s)" if sampling_rate else "time step"
    times = np.arange(stack.shape[1]) / (sampling_rate or 1.0)
    styles = method_styles(titles[1:])
    n = len(titles)
    with style.new_figure(min(9.0, 2.4 + 2.0 * n), 4.2) as figure:
        axes = np.asarray(figure.subplots(2, n, squeeze=False, sharey="row", height_ratios=[2, 1]))  # (2, panels)
        for i, (title, series) in enumerate(zip(titles, stack, strict=True)):
            image = _draw(
                axes[0, i], series, title, cmap=style.VALUES, clim=_range(stack), step=1 / (sampling_rate or 1)
            )
            # A marker above the map shows which column is drawn as a curve below.
            axes[0, i].plot(
                shown, 1.025, "v", color=style.BLACK, ms=5, clip_on=False, transform=axes[0, i].get_xaxis_transform()
            )
            if i > 0:
                axes[1, i].plot(times, stack[0, :, shown], color=style.FIXED, lw=1.2)
            axes[1, i].plot(
                times, series[:, shown], color=styles[title].colour if i > 0 else style.BEFORE, lw=1.4, label=title
            )
            axes[1, i].set_xlabel(time)
            axes[1, i].set_xlim(times[0], times[-1])
        axes[0, 0].set_ylabel(time)
        axes[1, 0].set_title(style.escape_mathtext(f"▼ {name}"), loc="left")
        axes[1, 0].set_ylabel(f"value\n({unit})".replace("standard deviations", "standard\ndeviations"))
        figure.colorbar(image, ax=axes[0].tolist(), fraction=0.05, pad=0.02, label=f"value ({unit})")
    return figure


def plot_saliency(rows: Sequence[Sequence[Panel]], *, unit: str = UNIT) -> Figure:
    """Draw the changes of each method beside the salient entries, one query per row (figures 4 and 7).

    Parameters
    ----------
    rows
        For each query its panels, titles and arrays (time, features): the query, the mask of salient entries, and the
        residual δ (or its absolute value) of each method. Exact zeros of δ are white, and all residuals of a row share
        one colour scale.
    unit
        Unit of query and residuals.

    Returns
    -------
    figure
        Its axes are the panels row by row, then for each row the colour bars of the query and of the residuals.

    Examples
    --------
    >>> row = [("query", np.zeros((9, 4))), ("salient", np.eye(9, 4)), ("SPARCE", -np.eye(9, 4))]
    >>> figure = plot_saliency([row, row])
    >>> len(figure.axes), float(figure.axes[2].images[0].get_array().sum())
    (10, 4.0)
    """
    checked = _check(rows, at_least=3)
    n = len(checked[0][0])
    with style.new_figure(min(10.5, 1.9 + 1.35 * n), 0.6 + 1.65 * len(rows)) as figure:
        axes = np.asarray(figure.subplots(len(rows), n, squeeze=False, sharex=True, sharey=True))
        for i, (titles, (query, mask, *residuals)) in enumerate(checked):
            heading = [_wrapped(title) for title in titles] if i == 0 or titles != checked[0][0] else [""] * n
            values = _draw(axes[i, 0], query, heading[0], cmap=style.VALUES, clim=_range(query))
            _draw(axes[i, 1], np.asarray(mask) != 0, heading[1], cmap="Greys", clim=(0.0, 1.0))
            sizes = np.abs(np.stack(residuals))  # (methods, time, features)
            largest = float(sizes.max()) or 1.0
            for j, size in enumerate(sizes, start=2):
                drawn = np.where(size == 0, np.nan, size)  # NaN is white
                image = _draw(axes[i, j], drawn, heading[j], cmap=style.SIZES, clim=(0.0, largest))
            axes[i, 0].set_ylabel("time step")
            for drawn_image, label, panel in ((values, "value", axes[i, 0]), (image, "|δ|", axes[i, -1])):
                bar = figure.colorbar(drawn_image, ax=panel, fraction=0.06, pad=0.03, aspect=14)
                bar.ax.set_title(label, fontsize=style.TICKS, loc="left", pad=4)
        for panel in axes[:-1].flat:
            panel.set_xlabel("")
        figure.supxlabel(f"value and |δ| in {unit}; white: no change; black: salient", fontsize=style.TICKS)
    return figure


def _check(rows: Sequence[Sequence[Panel]], at_least: int = 1) -> list[tuple[list[str], list[FloatArray]]]:
    """Split the panels into titles and arrays, and check that all have the same shape."""
    checked = [([title for title, _ in row], [np.asarray(array, dtype=float) for _, array in row]) for row in rows]
    sizes = {len(titles) for titles, _ in checked}
    if len(sizes) != 1 or min(sizes) < at_least:
        raise ShapeError(
            f"every row must hold the same number of panels, {at_least} or more, got {sorted(sizes) or 'no row'}. "
            "Pass one (title, array) pair per panel."
        )
    shapes = {array.shape for _, arrays in checked for array in arrays}
    if len(shapes) != 1 or len(next(iter(shapes))) != 2:
        raise ShapeError(
            f"all panels must be (time, features) of one shape, got {', '.join(map(str, sorted(shapes)))}. "
            "Pass one series per panel, such as explanation.query[0]."
        )
    return checked


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
    image = axes.imshow(
        series,
        aspect="auto",
        cmap=cmap,
        vmin=clim[0],
        vmax=clim[1],
        interpolation="nearest",
        extent=(-0.5, n_features - 0.5, (n_steps - 0.5) * step, -0.5 * step),
    )
    axes.set_title(style.escape_mathtext(title), loc="left", pad=11)
    axes.set_xlabel("feature")
    for spine in axes.spines.values():
        spine.set(visible=True, color=style.FIXED, linewidth=0.6)  # a frame, because white areas are data
    return image
