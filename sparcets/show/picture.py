"""Picture: a figure of matplotlib that a notebook shows, as the value of a cell, without any setup.

Imported when the first figure is drawn, since it needs matplotlib.
"""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

SHOWN_DPI = 80  # pixels per inch on the page; the image itself has more, for sharp screens


class Picture(Figure):
    """A figure that is not registered with pyplot: it opens no window, and a notebook shows it once, not twice."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the image and its size on the page, as IPython asks for them."""
        image = BytesIO()
        self.savefig(image, format="png")
        width, height = (round(SHOWN_DPI * float(inches)) for inches in self.get_size_inches())
        return image.getvalue(), {"width": width, "height": height}
