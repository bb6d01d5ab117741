"""Colours, line styles and fonts of all figures, from the colour-blind safe palette of Okabe and Ito."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from sparcets.core.registry import require_extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BEFORE = "#5b5b5b"
AFTER = "#0072b2"
MARK = "#e69f00"
FIXED = "#b0b0b0"
LOCKED = "#e6e6e6"  # background of immutable features
# Colour map of falls (blue) and rises (red). Even the smallest change is far from white, which means no change at all.
CHANGES = (
    (0.0, "#053061"), (0.25, "#2b75b5"), (0.5, "#a6cfe4"),
    (0.5, "#f7bda1"), (0.75, "#cb4942"), (1.0, "#67001f"),
)  # fmt: skip
# Colour map of shares, in one hue; white means 0.
SHARES = ((0.0, "#fde0b6"), (0.35, "#f0a04b"), (0.7, "#b8560f"), (1.0, "#5c2503"))

# The palette of Okabe and Ito without its yellow, which is hard to see on white, and a brown.
BLUE, ORANGE, GREEN, PURPLE = "#0072b2", "#e69f00", "#009e73", "#cc79a7"
SKY, VERMILION, BLACK, BROWN = "#56b4e9", "#d55e00", "#000000", "#8c510a"

RC = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.frameon": False,
    "figure.dpi": 110,
}
DPI = 150  # figures of nine inches remain readable when shown 1,000 pixels wide
SHOWN_DPI = 80  # pixels per inch on the page of a notebook; the image has more, for sharp screens
TICKS = 8  # font size of tick labels


def escape_mathtext(text: str) -> str:
    """Escape dollar signs, which matplotlib would read as delimiters of a formula."""
    return text.replace("$", r"\$")


@contextmanager
def new_figure(width: float, height: float, *, layout: Any = "constrained") -> Iterator[Figure]:
    """Yield an empty figure of this size in inches, with the package's style active.

    A Figure instead of pyplot, so that nothing is registered globally and no window opens.
    """
    matplotlib = require_extra("matplotlib", "plots", "plots")
    with matplotlib.rc_context(RC):
        figure: Figure = _picture_class()(figsize=(width, height), dpi=DPI, layout=layout)
        yield figure
        for axes in figure.axes:
            axes.tick_params(labelsize=TICKS)  # ticks are created on drawing, after the style has ended


@cache
def _picture_class() -> Any:
    """Return the class of all figures: one that is not registered with pyplot, and that a notebook shows once."""
    from matplotlib.figure import Figure

    class Picture(Figure):
        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            """Return the image and its size on the page, as IPython asks for them."""
            image = BytesIO()
            self.savefig(image, format="png")
            width, height = (round(SHOWN_DPI * float(inches)) for inches in self.get_size_inches())
            return image.getvalue(), {"width": width, "height": height}

    return Picture
