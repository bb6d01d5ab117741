"""The trade-off curve of a fit: places on lines by loudness, the default ringed."""

import pytest

from sparcets.errors import DataError
from sparcets.explainers.sparcets.operating_point import Place, knee
from sparcets.plots.trade_off import plot_trade_off_curve

PLACES = [
    Place(strength=0.0, loudness=1.0, valid=0.9, transfer=0.8, changed=0.2),
    Place(strength=0.0, loudness=1.3, valid=1.0, transfer=0.9, changed=0.6),
    Place(strength=-1.0, loudness=1.0, valid=0.5, transfer=0.4, changed=0.1),
    Place(strength=-1.0, loudness=1.3, valid=0.95, transfer=0.7, changed=0.5),
]


def test_lines_places_and_the_default() -> None:
    figure = plot_trade_off_curve(PLACES)
    valid, transfer = figure.axes
    plain, loud, chosen = valid.lines
    assert plain.get_xdata().tolist() == [10.0, 20.0] and plain.get_ydata().tolist() == [50.0, 90.0], "by what changes"
    assert plain.get_label() == "as generated" and loud.get_label() == "changes × 1.3"
    assert transfer.lines[1].get_ydata().tolist() == [70.0, 90.0]
    best = knee(PLACES)
    assert chosen.get_xdata().tolist() == [100 * best.changed] and chosen.get_ydata().tolist() == [100 * best.valid]
    assert "%" in valid.get_xlabel() and "%" in valid.get_ylabel() and "witness" in transfer.get_ylabel()
    assert len({line.get_linestyle() for line in (plain, loud)}) == 2, "not told apart by colour alone"


def test_nothing_to_draw() -> None:
    with pytest.raises(DataError, match="no trade-off to draw"):
        plot_trade_off_curve([])
