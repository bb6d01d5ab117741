"""Changed entries against transfer: markers, labels that do not overlap, and the ideal corner."""

from __future__ import annotations

import io
from typing import Any

import pytest

from sparcets.core.errors import ShapeError
from sparcets_paper.plots.benchmark import METHODS, method_styles, plot_trade_off

CROWD = [("sparcets", 0.30, 0.44), ("comte", 0.32, 0.45), ("guide", 0.31, 0.42), ("gan", 1.0, 0.45), ("ics", 1.0, 0.43)]


def markers(axes: Any) -> dict[str, tuple[float, float]]:
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    return {line.get_label(): (line.get_xdata()[0], line.get_ydata()[0]) for line in lines}


def test_each_method_has_a_marker_and_a_label() -> None:
    (axes,) = plot_trade_off([("SPARCE", 0.25, 0.75), ("GAN", 1.0, 0.5)]).axes
    assert markers(axes) == {"SPARCE": (25.0, 75.0), "GAN": (100.0, 50.0)}
    assert [(t.get_text(), t.xy) for t in axes.texts[1:]] == [("SPARCE", (25.0, 75.0)), ("GAN", (100.0, 50.0))]
    assert axes.get_xlabel().startswith("changed entries (%") and axes.get_ylabel().startswith("transfer (%")


@pytest.mark.parametrize("points", [CROWD, [("sparcets", 0.01, 0.99), ("nearest", 1.0, 1.0), ("x" * 30, 1.0, 0.0)]])
def test_labels_overlap_neither_each_other_nor_markers_nor_the_border(points: list[tuple[str, float, float]]) -> None:
    figure = plot_trade_off(points)
    figure.canvas.draw()
    (axes,) = figure.axes
    boxes = [text.get_tightbbox() for text in axes.texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        for x, y in markers(axes).values():
            px, py = axes.transData.transform((x, y))
            assert not (box.x0 < px < box.x1 and box.y0 < py < box.y1)
        assert box.x0 > 0 and box.x1 < figure.bbox.x1 and box.y0 > 0 and box.y1 < figure.bbox.y1


def test_methods_without_a_value_are_listed_below() -> None:
    figure = plot_trade_off([("SPARCE", 0.25, 0.75), ("lost $", float("nan"), 0.5)])
    figure.savefig(io.BytesIO(), dpi=30)
    assert list(markers(figure.axes[0])) == ["SPARCE"]
    assert [t.get_text() for t in figure.texts] == [r"no value: lost \$"]
    with pytest.raises(ShapeError, match="no point to draw"):
        plot_trade_off([("lost", 0.5, float("nan"))])


@pytest.mark.parametrize("own", range(7))
def test_no_two_methods_have_the_same_style(own: int) -> None:
    names = [*list(METHODS)[:own], *(f"peer {i}" for i in range(14))]
    found = method_styles(names)
    assert list(found) == names
    assert len({(look.colour, look.marker) for look in found.values()}) == len(names)
    assert len({look.marker for look in list(found.values())[: own + 8]}) == own + 8
    assert "*" not in {look.marker for look in found.values()}, "the star marks the ideal"
