"""The trade-off of a fitted Sparce: the more it changes, the more are convinced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparcets.errors import DataError
from sparcets.plots import style
from sparcets.trade_off import Place, knee

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDES = {
    "valid": "the classifier says the target (% of answers)",
    "transfer": "an independent witness does (% of answers)",
}


def plot_trade_off_curve(places: Sequence[Place]) -> Figure:
    """Draw how many answers convince, against how much they change; the default is ringed.

    Parameters
    ----------
    places
        ``explainer.trade_off_`` of a fitted :class:`~sparcets.Sparce`: measured on training series that were held out.

    Returns
    -------
    figure
        Two axes, for the classifier itself and for a witness; one line per loudness, over the strengths.
    """
    if not places:
        raise DataError(
            "there is no trade-off to draw: it is empty. Pass trade_off_ of a fitted Sparce with the default recipe."
        )
    chosen = knee(places)
    factors = sorted({place.loudness for place in places})
    found = dict(zip(factors, style.ANSWERS * (1 + len(factors) // len(style.ANSWERS)), strict=False))
    with style.new_figure(9, 4.0) as figure:
        all_axes = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, (name, label) in zip(all_axes, SIDES.items(), strict=True):
            for factor in factors:
                on_line = sorted((p for p in places if p.loudness == factor), key=lambda p: p.changed)
                axes.plot(
                    [100 * p.changed for p in on_line],
                    [100 * getattr(p, name) for p in on_line],
                    color=found[factor].colour,
                    marker=found[factor].marker,
                    ls=found[factor].line,
                    lw=1.3,
                    ms=5,
                    label="as generated" if factor == 1 else f"changes × {factor:g}",
                )
            axes.plot(
                100 * chosen.changed,
                100 * getattr(chosen, name),
                "o",
                ms=13,
                mfc="none",
                mec=style.BLACK,
                mew=1.4,
                ls="",
                label="default",
            )
            axes.set_xlabel("changed entries (% of those that may change)")
            axes.set_ylabel(label)
            axes.grid(color="#ececec", lw=0.8)
            axes.set_ylim(-4, 104)
            axes.set_xlim(0, 105 * max(place.changed for place in places) or 1)
            axes.tick_params(labelleft=True)
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure
