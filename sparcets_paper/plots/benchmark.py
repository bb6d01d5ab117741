"""Comparisons of methods: changed entries against transfer; figures 3 (t-SNE), 5 (ROC) and 6 (limbs) of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import ShapeError
from sparcets.core.series import FloatArray
from sparcets.show import style
from sparcets_paper.benchmark.embedding import Points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


METHODS = {
    "sparcets": style.MethodStyle(style.VERMILION, "p", (0, (5, 1))),
    "sparce": style.MethodStyle(style.BLUE, "o", "-"),
    "countergan": style.MethodStyle(style.ORANGE, "s", "--"),
    "gan": style.MethodStyle(style.GREEN, "^", "-."),
    "ics": style.MethodStyle(style.PURPLE, "D", ":"),
    "nearest": style.MethodStyle(style.SKY, "v", "--"),
}
OTHER_COLOURS = (
    style.VERMILION,
    style.BLACK,
    style.SKY,
    style.PURPLE,
    style.GREEN,
    style.ORANGE,
    style.BLUE,
    style.BROWN,
)
OTHER_MARKERS = ("P", "X", "<", ">", "h", "H", "d", "8")
OTHER_LINES = ((0, (6, 1, 1, 1, 1, 1)), "-", "--", "-.", ":")


def method_styles(labels: Iterable[str]) -> dict[str, style.MethodStyle]:
    """Return the style of each method; the package's methods have the same style in every figure.

    Other labels get the remaining colours, in order of appearance.

    >>> styles = method_styles(["other", "SPARCE"])
    >>> styles["other"].colour, styles["SPARCE"]
    ('#d55e00', MethodStyle(colour='#0072b2', marker='o', line='-'))
    """
    names = list(dict.fromkeys(labels))
    known = {name: METHODS[name.lower()] for name in names if name.lower() in METHODS}
    taken = {look.colour for look in known.values()}
    free = [colour for colour in OTHER_COLOURS if colour not in taken]
    found = dict(known)
    for i, name in enumerate(name for name in names if name not in known):
        cycle, k = divmod(i, len(OTHER_MARKERS))
        colour = free[(k + cycle) % len(free)]  # repeated markers get another colour
        found[name] = style.MethodStyle(colour, OTHER_MARKERS[k], OTHER_LINES[i % len(OTHER_LINES)])
    return {name: found[name] for name in names}


FONT_SIZE = 9
OFFSETS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))  # of a label relative to its marker


def plot_trade_off(points: Sequence[tuple[str, float, float]]) -> Figure:
    """Draw the share of changed entries against transfer, one labelled marker per method.

    Parameters
    ----------
    points
        For each method its label, the share of entries it changes, and its transfer: the share of its answers that
        held-out judges put into the target class too; both in [0, 1]. Methods with a NaN are listed below the axes
        instead.

    Returns
    -------
    figure
        One axes, in percent; the ideal corner, no change and full transfer, is marked.

    Examples
    --------
    >>> axes = plot_trade_off([("sparcets", 0.2, 0.95), ("GAN", 1.0, 0.4)]).axes[0]
    >>> [text.get_text() for text in axes.texts]
    ['ideal', 'sparcets', 'GAN']
    """
    shown = [(label, 100 * changed, 100 * transfer) for label, changed, transfer in points]
    missing = [label for label, *values in shown if not np.isfinite(values).all()]
    shown = [point for point in shown if point[0] not in missing]
    if not shown:
        raise ShapeError(
            f"there is no point to draw, got {list(points)}. Pass (label, changed, transfer), each in [0, 1]."
        )
    styles = method_styles(label for label, _, _ in points)
    with style.new_figure(7.0, 5.0, layout=None) as figure:
        axes = figure.add_axes((0.1, 0.15, 0.87, 0.8))  # fixed: labels are placed by the positions of the markers
        axes.set(xlim=(-4, 104), ylim=(-4, 106))
        axes.set_xlabel("changed entries (% of those that may change; fewer is sparser)")
        axes.set_ylabel("transfer (% of answers that judges confirm)")
        axes.grid(color="#ececec", lw=0.8)
        axes.set_axisbelow(True)
        axes.plot(0, 100, marker="*", ms=17, color=style.FIXED, mec=style.BEFORE, mew=0.6, ls="", zorder=1)
        axes.annotate(
            "ideal", (0, 100), (0, -11), textcoords="offset points", ha="center", va="top", color=style.BEFORE
        )
        for label, x, y in shown:
            look = styles[label]
            axes.plot(
                x,
                y,
                look.marker,
                color=look.colour,
                ms=8,
                mec="white",
                mew=0.6,
                zorder=3,
                label=style.escape_mathtext(label),
            )
        _label(axes, shown)
        if missing:
            note = f"no value: {', '.join(missing)}"
            figure.text(0.1, 0.02, style.escape_mathtext(note), fontsize=style.TICKS, color=style.BEFORE)
    return figure


def _label(axes: Axes, shown: Sequence[tuple[str, float, float]]) -> None:
    """Write each label beside its marker, at the position with the least overlap."""
    points = 72 / style.DPI  # per pixel
    markers = axes.transData.transform([(x, y) for _, x, y in shown]) * points  # (methods, 2), in points
    star = axes.transData.transform((0.0, 100.0)) * points
    frame = np.concatenate([axes.bbox.min, axes.bbox.max]) * points
    occupied = [_box(marker, 0, 0, 10, 10) for marker in markers] + [_box(star, 0, 0, 34, 36)]
    for (label, x, y), marker in zip(shown, markers, strict=True):
        width, height = 0.62 * FONT_SIZE * len(label), 1.3 * FONT_SIZE  # an estimate is enough to find overlaps
        options = [(dx, dy, far) for far in (1.0, 2.2) for dx, dy in OFFSETS]
        boxes = [_box(marker, dx * far, dy * far, width, height) for dx, dy, far in options]
        costs = [sum(_overlap(box, other) for other in occupied) + _outside(box, frame) for box in boxes]
        best = int(np.argmin(costs))
        dx, dy, far = options[best]
        occupied.append(boxes[best])
        axes.annotate(
            style.escape_mathtext(label),
            (x, y),
            (8 * dx * far, 8 * dy * far),
            textcoords="offset points",
            ha={1: "left", 0: "center", -1: "right"}[dx],
            va={1: "bottom", 0: "center", -1: "top"}[dy],
            fontsize=FONT_SIZE,
        )


def _box(marker: FloatArray, dx: float, dy: float, width: float, height: float) -> FloatArray:
    """Return left, bottom, right, top of a box whose nearest side or corner is 8 points from the marker."""
    x = marker[0] + 8 * dx + (np.sign(dx) - 1) / 2 * width
    y = marker[1] + 8 * dy + (np.sign(dy) - 1) / 2 * height
    return np.array([x, y, x + width, y + height])


def _overlap(a: FloatArray, b: FloatArray) -> float:
    shared = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    return float(np.prod(np.maximum(shared, 0)))


def _outside(box: FloatArray, frame: FloatArray) -> float:
    area = float(np.prod(box[2:] - box[:2]))
    return 10 * (area - _overlap(box, frame))


Curve = tuple[Any, Any, Any]  # false positive rates, mean true positive rates, their standard deviations; all (points,)


def plot_roc(curves: Mapping[str, Mapping[str, Curve]]) -> Figure:
    """Draw ROC curves with bands of one standard deviation over the repetitions, one panel per target class.

    Parameters
    ----------
    curves
        For each target class and each method ``(fpr, mean, std)``, each (points,): the mean and the standard deviation
        of the true positive rate at these false positive rates. The legend gives the area under the mean curve.

    Returns
    -------
    figure
        One axes per target.

    Examples
    --------
    >>> grid = np.linspace(0, 1, 5)
    >>> figure = plot_roc({"1": {"SPARCE": (grid, np.ones(5), np.zeros(5))}})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['SPARCE: 1.00', 'chance: 0.50']
    """
    if not curves:
        raise ShapeError("there is no curve to draw, got an empty mapping. Pass {target: {method: (fpr, mean, std)}}.")
    styles = method_styles(method for by_method in curves.values() for method in by_method)
    with style.new_figure(0.4 + 4.2 * len(curves), 4.3) as figure:
        axes = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
        for panel, (target, by_method) in zip(axes, curves.items(), strict=True):
            for method, curve in by_method.items():
                _draw_curve(panel, method, *_check(method, curve), look=styles[method])
            panel.plot([0, 1], [0, 1], color=style.FIXED, lw=1, ls=(0, (2, 2)), label="chance: 0.50", zorder=1)
            panel.set(aspect="equal", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="false positive rate")
            panel.set_title(style.escape_mathtext(f"target {target}"), loc="left")
            panel.legend(loc="lower right", title="area under the curve", alignment="left")
        axes[0].set_ylabel("true positive rate (band: ± 1 std)")
    return figure


def _check(method: str, curve: Curve) -> tuple[FloatArray, FloatArray, FloatArray]:
    fpr, mean, std = (np.asarray(values, dtype=float) for values in curve)
    if not fpr.shape == mean.shape == std.shape or fpr.ndim != 1:
        raise ShapeError(
            f"the curve of {method} must be three arrays (points,) of one length, got shapes {fpr.shape}, "
            f"{mean.shape}, {std.shape}. Interpolate all repetitions on one grid of false positive rates."
        )
    return fpr, mean, std


def _draw_curve(
    axes: Axes, method: str, fpr: FloatArray, mean: FloatArray, std: FloatArray, look: style.MethodStyle
) -> None:
    area = float(((mean[1:] + mean[:-1]) / 2 * np.diff(fpr)).sum())
    axes.fill_between(
        fpr, np.clip(mean - std, 0, 1), np.clip(mean + std, 0, 1), color=look.colour, alpha=0.18, lw=0, zorder=2
    )
    axes.plot(
        fpr,
        mean,
        color=look.colour,
        ls=look.line,
        lw=1.6,
        label=style.escape_mathtext(f"{method}: {area:.2f}"),
        zorder=3,
    )


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
            _draw_boxes(axes, by_method)
            axes.set_title(style.escape_mathtext(limb), loc="left", fontsize=9)
            if i % n_columns == 0:
                axes.set_ylabel(f"distance ({unit})")
        figure.supxlabel("box: quartiles; whiskers: 1st to 99th percentile", fontsize=style.TICKS)
    return figure


def _draw_boxes(axes: Axes, by_method: Mapping[str, Any]) -> None:
    names = list(by_method)
    colours = [style.BEFORE, *(look.colour for look in method_styles(names[1:]).values())]
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
