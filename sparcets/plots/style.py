"""Colours, markers and fonts of all pictures, chosen so that colour-blind readers tell them apart (Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from sparcets.registry import require_extra

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

BEFORE = "#5b5b5b"
AFTER = "#0072b2"
MARK = "#e69f00"
FIXED = "#b0b0b0"
LOCKED = "#e6e6e6"  # behind what may not change
# Places and colours of falls (blue) and rises (red): even the smallest is far from white, which is exactly no change.
CHANGES = (
    (0.0, "#053061"),
    (0.25, "#2b75b5"),
    (0.5, "#a6cfe4"),
    (0.5, "#f7bda1"),
    (0.75, "#cb4942"),
    (1.0, "#67001f"),
)
# Shares from few to all, in one hue; white stands for none.
SHARES = ((0.0, "#fde0b6"), (0.35, "#f0a04b"), (0.7, "#b8560f"), (1.0, "#5c2503"))
VALUES = "viridis"  # recorded values
SIZES = "plasma_r"  # sizes of changes: even the smallest is far from white, which stands for exactly none

# The palette of Okabe and Ito, without its yellow, which is lost on white paper.
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, VERMILION, BLACK = "#56b4e9", "#d55e00", "#000000"

RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.frameon": False,
    "figure.dpi": 110,
}
DPI = 150  # of the figures made for pages; nine inches are still readable when shown 1,000 pixels wide
TICKS = 8  # size of the numbers along the axes


class Look(NamedTuple):
    """How one method is drawn: never by its colour alone."""

    colour: str
    marker: str
    line: Any  # a word or a pattern of dashes


METHODS = {
    "sparce": Look(BLUE, "o", "-"),
    "countergan": Look(ORANGE, "s", "--"),
    "gan": Look(GREEN, "^", "-."),
    "ics": Look(PURPLE, "D", ":"),
    "nearest": Look(SKY, "v", "--"),
}
ANSWERS = (Look(BLUE, "o", "-"), Look(VERMILION, "s", "--"), Look(GREEN, "^", "-."), Look(PURPLE, "D", ":"))
OTHER_COLOURS = (VERMILION, BLACK, SKY, PURPLE, GREEN, ORANGE, BLUE)
OTHER_MARKERS = ("P", "X", "<", ">", "h", "p", "d", "8")
OTHER_LINES = ((0, (6, 1, 1, 1, 1, 1)), "-", "--", "-.", ":")


def looks(labels: Iterable[str]) -> dict[str, Look]:
    """Return how each method is drawn; the package's own methods look the same in every picture.

    Labels of other methods take the colours that are left, in the order in which they come.

    >>> found = looks(["theirs", "SPARCE"])
    >>> found["theirs"].colour, found["SPARCE"]
    ('#d55e00', Look(colour='#0072b2', marker='o', line='-'))
    """
    names = list(dict.fromkeys(labels))
    known = {name: METHODS[name.lower()] for name in names if name.lower() in METHODS}
    taken = {look.colour for look in known.values()}
    free = [colour for colour in OTHER_COLOURS if colour not in taken]
    found = dict(known)
    for i, name in enumerate(name for name in names if name not in known):
        again, place = divmod(i, len(OTHER_MARKERS))
        # Where the markers come again, they come in another colour.
        colour = free[(place + again) % len(free)]
        found[name] = Look(colour, OTHER_MARKERS[place], OTHER_LINES[i % len(OTHER_LINES)])
    return {name: found[name] for name in names}


def changes_map() -> Colormap:
    """Return the colours of changes: blue falls, red rises, and no white between them; what is not drawn is white."""
    colors = require_extra("matplotlib.colors", "plots", "plots")
    found: Colormap = colors.LinearSegmentedColormap.from_list("changes", CHANGES).with_extremes(bad="white")
    return found


def plain(text: str) -> str:
    """Keep matplotlib from reading what stands between two dollar signs as a formula."""
    return text.replace("$", r"\$")


@contextmanager
def new_figure(width: float, height: float, *, layout: Any = "constrained") -> Iterator[Figure]:
    """Give an empty figure of this size in inches, to be drawn on in the package's style.

    A Figure instead of pyplot: nothing is registered globally, and no window can open.
    """
    matplotlib = require_extra("matplotlib", "plots", "plots")
    figures = require_extra("matplotlib.figure", "plots", "plots")
    with matplotlib.rc_context(RC):
        figure: Figure = figures.Figure(figsize=(width, height), dpi=DPI, layout=layout)
        yield figure
        for axes in figure.axes:
            axes.tick_params(labelsize=TICKS)  # ticks are made when drawn, when the style holds no more
