"""Comparisons of methods: changed entries against transfer; figures 3 (t-SNE), 5 (ROC) and 6 (limbs) of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcets.show import style
from sparcets_paper.benchmark.figure_numbers import Points

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class MethodStyle(NamedTuple):
    """Colour, marker and line style of one method, so that methods never differ by colour alone."""

    colour: str
    marker: str
    line: Any  # a name or a dash pattern of matplotlib


METHODS = {
    "sparcets": MethodStyle(style.VERMILION, "p", (0, (5, 1))),
    "sparce": MethodStyle(style.BLUE, "o", "-"),
    "countergan": MethodStyle(style.ORANGE, "s", "--"),
    "gan": MethodStyle(style.GREEN, "^", "-."),
    "ics": MethodStyle(style.PURPLE, "D", ":"),
    "nearest": MethodStyle(style.SKY, "v", "--"),
}
# Of other methods, in order of appearance; their markers are none of those above.
COLOURS = (style.BROWN, style.BLACK, style.SKY, style.PURPLE, style.GREEN, style.ORANGE, style.BLUE, style.VERMILION)
MARKERS = ("P", "X", "<", ">", "h", "H", "d", "8")
KINDS = {
    "queries": MethodStyle(style.VERMILION, "o", ""),
    "targets": MethodStyle(style.GREEN, "^", ""),
    "counterfactuals": MethodStyle(style.BLUE, "x", ""),
}
WHISKERS = (1, 99)  # percentiles; a few outliers among thousands of steps would compress the boxes


def method_styles(labels: Iterable[str]) -> dict[str, MethodStyle]:
    """Return the style of each method, no two the same; the package's methods have theirs in every figure.

    >>> styles = method_styles(["other", "SPARCE"])
    >>> styles["other"].colour, styles["SPARCE"]
    ('#8c510a', MethodStyle(colour='#0072b2', marker='o', line='-'))
    """
    others = (
        MethodStyle(COLOURS[(k + cycle) % len(COLOURS)], marker, (0, (6, 1, 1, 1)))
        for cycle in range(len(COLOURS))  # repeated markers get another colour
        for k, marker in enumerate(MARKERS)
    )
    free, found = dict(METHODS), dict[str, MethodStyle]()
    for name in dict.fromkeys(labels):
        found[name] = free.pop(name.lower()) if name.lower() in free else next(others)
    return found


def plot_trade_off(points: Sequence[tuple[str, float, float]]) -> Figure:
    """Draw the share of changed entries against transfer, one marker per method.

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
    >>> [text.get_text() for text in axes.get_legend().get_texts()]
    ['sparcets', 'GAN', 'ideal']
    """
    styles = method_styles(label for label, _, _ in points)
    missing = [label for label, *values in points if not np.isfinite(values).all()]
    with style.new_figure(8.0, 4.6) as figure:
        axes = figure.add_subplot()
        axes.set(xlim=(-4, 104), ylim=(-4, 106))
        axes.set_xlabel("changed entries (% of those that may change; fewer is sparser)")
        axes.set_ylabel("transfer (% of answers that judges confirm)")
        axes.grid(color="#ececec", lw=0.8)
        axes.set_axisbelow(True)
        for label, changed, transfer in points:
            if label not in missing:
                colour, marker, _ = styles[label]
                name = style.escape_mathtext(label)
                axes.plot(100 * changed, 100 * transfer, marker, color=colour, ms=8, mec="white", mew=0.6, label=name)
        axes.plot(0, 100, "*", ms=17, color=style.FIXED, mec=style.BEFORE, mew=0.6, label="ideal", zorder=1)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        if missing:
            note = style.escape_mathtext(f"no value: {', '.join(missing)}")
            figure.supxlabel(note, fontsize=style.TICKS, color=style.BEFORE)
    return figure


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
    styles = method_styles(method for by_method in curves.values() for method in by_method)
    with style.new_figure(0.4 + 4.2 * len(curves), 4.3) as figure:
        axes = figure.subplots(1, len(curves), squeeze=False, sharey=True)[0]
        for panel, (target, by_method) in zip(axes, curves.items(), strict=True):
            for method, (fpr, mean, std) in by_method.items():
                colour, _, line = styles[method]
                low, high = np.clip(mean - std, 0, 1), np.clip(mean + std, 0, 1)
                area = float(((mean[1:] + mean[:-1]) / 2 * np.diff(fpr)).sum())
                label = style.escape_mathtext(f"{method}: {area:.2f}")
                panel.fill_between(fpr, low, high, color=colour, alpha=0.18, lw=0, zorder=2)
                panel.plot(fpr, mean, color=colour, ls=line, lw=1.6, label=label, zorder=3)
            panel.plot([0, 1], [0, 1], color=style.FIXED, lw=1, ls=(0, (2, 2)), label="chance: 0.50", zorder=1)
            panel.set(aspect="equal", xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xlabel="false positive rate")
            panel.set_title(style.escape_mathtext(f"target {target}"), loc="left")
            panel.legend(loc="lower right", title="area under the curve", alignment="left")
        axes[0].set_ylabel("true positive rate (band: ± 1 std)")
    return figure


def plot_embedding(points: Mapping[str, Points]) -> Figure:
    """Draw the maps returned by :func:`embed` side by side, by method.

    The axes have no ticks: t-SNE preserves neighbourhoods, not distances.

    >>> here = np.zeros((3, 2))
    >>> [axes.get_title(loc="left") for axes in plot_embedding({"SPARCE": Points(here, here + 1, here + 2)}).axes]
    ['SPARCE']
    """
    with style.new_figure(max(4.2, 2.3 * len(points)), 2.9) as figure:
        panels = figure.subplots(1, len(points), squeeze=False)[0]
        for axes, (method, positions) in zip(panels, points.items(), strict=True):
            for (kind, look), xy in zip(KINDS.items(), positions, strict=True):
                # Counterfactuals overlap their queries where little changed: small markers keep both visible.
                size = 8 if kind == "counterfactuals" else 22
                axes.scatter(*xy.T, s=size, c=look.colour, marker=look.marker, lw=0.9, alpha=0.75, label=kind)
            axes.set_title(style.escape_mathtext(method), loc="left")
            axes.set(xticks=[], yticks=[], xlabel="t-SNE 1 (no unit)")
        panels[0].set_ylabel("t-SNE 2 (no unit)")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(KINDS), markerscale=1.4)
    return figure


def plot_distances(lengths: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw box plots of distances between body points, one panel per pair of points, one box per method.

    The length of a limb is fixed, so boxes that are wider than or shifted from the originals are implausible.

    Parameters
    ----------
    lengths
        For each pair of points, and for the originals and each method, the distances in metres at all steps of all
        series, of any shape. The first entry of a pair is the reference, whose median is drawn as a dotted line.

    Returns
    -------
    figure
        One axes per pair of points.

    Examples
    --------
    >>> figure = plot_distances({"shoulder–elbow": {"originals": [0.3, 0.3, 0.31], "SPARCE": [0.2, 0.3, 0.4]}})
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['originals', 'SPARCE']
    """
    n_boxes = max(len(by_method) for by_method in lengths.values())
    width = max(3.2, min(9.0, len(lengths) * (0.7 + 0.5 * n_boxes)))
    with style.new_figure(width, 3.3) as figure:
        panels = figure.subplots(1, len(lengths), squeeze=False)[0]
        for axes, (limb, by_method) in zip(panels, lengths.items(), strict=True):
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
            axes.set_title(style.escape_mathtext(limb), loc="left", fontsize=9)
        panels[0].set_ylabel("distance (m)")
        figure.supxlabel("box: quartiles; whiskers: 1st to 99th percentile", fontsize=style.TICKS)
    return figure
