"""Pictures of one answer: axes, labels and the data drawn; no image is compared."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib import colors, rcParams
from matplotlib.figure import Figure

from sparcets.errors import MissingExtraError
from sparcets.explanation import Explanation
from sparcets.plots import style
from sparcets.plots.series import plot_answer
from sparcets.series_info import SeriesInfo

SCALE = 4.0  # every feature's standard deviation


def answer(changes: dict[tuple[int, int], float], *, n_features: int = 3, **other: Any) -> Explanation:
    """One answer over ten steps that moves the entries (step, feature) by these amounts."""
    info = SeriesInfo.measure(np.array([[[0.0] * n_features], [[2 * SCALE] * n_features]]), ("sick", "well"))
    query = np.arange(10.0 * n_features).reshape(1, 10, n_features)
    counterfactual = query.copy()
    for place, change in changes.items():
        counterfactual[0][place] += change
    values: dict[str, Any] = {
        "query": query,
        "counterfactual": counterfactual,
        "target": np.array([1]),
        "status": np.array(["generated"]),
        "reason": np.array([""]),
        "query_index": np.array([0]),
        "proba_before": np.array([[0.9, 0.1]]),
        "proba_after": np.array([[0.2, 0.8]]),
        "info": replace(info, **other.pop("info", {})),
        "mutable": np.ones(n_features, dtype=bool),
        "method": "nearest",
    }
    return Explanation(**{**values, **other})


def draw(figure: Figure) -> None:
    figure.savefig(io.BytesIO(), dpi=30)


def spans(axes: Any) -> list[tuple[float, float]]:
    return [(p.get_x(), p.get_x() + p.get_width()) for p in axes.patches]


def test_only_what_changed_is_drawn_as_curves_before_and_after() -> None:
    e = answer({(3, 0): 1.0, (4, 0): 2.0, (8, 0): -1.0, (0, 2): 5.0})
    *curves, _, _ = plot_answer(e).axes
    assert [c.get_ylabel() for c in curves] == ["f0", "f2"], "in the order of the features"
    before, after = curves[0].lines
    assert (before.get_label(), after.get_label()) == ("recorded", "counterfactual")
    assert before.get_xdata().tolist() == list(range(10))
    assert before.get_ydata().tolist() == e.query[0, :, 0].tolist()
    assert after.get_ydata().tolist() == e.counterfactual[0, :, 0].tolist()
    assert spans(curves[0]) == [(2.5, 4.5), (7.5, 8.5)], "half a step around what changed"
    assert [t.get_text() for t in curves[0].get_legend().get_texts()] == ["recorded", "counterfactual"]
    assert curves[1].get_legend() is None and curves[1].get_xlabel() == "time step" and curves[0].get_xlabel() == ""


def test_the_map_shows_every_change_in_standard_deviations_and_leaves_the_rest_white() -> None:
    *_, grid, _ = plot_answer(answer({(3, 0): 2.0, (0, 2): -8.0})).axes
    (image,) = grid.images
    drawn = np.ma.filled(image.get_array(), np.nan)  # (features, time)
    assert drawn.shape == (3, 10) and drawn[0, 3] == 0.5 and drawn[2, 0] == -2.0
    assert np.isnan(drawn).sum() == 28
    assert image.get_clim() == (-2.0, 2.0), "no change lies in the middle of the colours"
    assert [t.get_text() for t in grid.get_yticklabels()] == ["f0", "f1", "f2"]
    assert image.get_extent() == [-0.5, 9.5, 2.5, -0.5]


def test_units_seconds_and_title() -> None:
    e = answer({(4, 1): 1.0}, info={"units": ("", "m/s²", ""), "sampling_rate": 2.0})
    figure = plot_answer(e)
    curve, grid, _ = figure.axes
    assert curve.get_ylabel() == "f1\n(m/s²)" and curve.get_xlabel() == grid.get_xlabel() == "time (s)"
    assert curve.lines[0].get_xdata().tolist() == [t / 2 for t in range(10)]
    assert spans(curve) == [(1.75, 2.25)] and grid.images[0].get_extent()[:2] == [-0.25, 4.75]
    assert figure.get_suptitle() == "sick → well   p(well) 0.10 → 0.80   3.33 % changed   (nearest)"


def test_at_most_five_curves_those_that_change_most() -> None:
    e = answer({(0, f): float(1 + (f * 3) % 7) for f in range(7)}, n_features=7)  # 1 4 7 3 6 2 5
    *curves, _, _ = plot_answer(e).axes
    assert [c.get_ylabel() for c in curves] == ["f1", "f2", "f3", "f4", "f6"]


def test_padding_is_not_drawn() -> None:
    curve, grid, _ = plot_answer(answer({(2, 0): 1.0}, lengths=np.array([6]))).axes
    assert len(curve.lines[0].get_xdata()) == 6 and grid.images[0].get_array().shape == (3, 6)


def test_features_that_may_not_change_are_named_in_grey() -> None:
    *_, grid, _ = plot_answer(answer({(2, 0): 1.0}, mutable=np.array([True, False, True]))).axes
    grey = [colors.same_color(t.get_color(), style.FIXED) for t in grid.get_yticklabels()]
    assert grey == [False, True, False]


def test_many_features_are_named_now_and_then() -> None:
    *_, grid, _ = plot_answer(answer({(2, 0): 1.0}, n_features=60)).axes
    assert [t.get_text() for t in grid.get_yticklabels()] == [f"f{i}" for i in range(0, 60, 2)]


def test_an_unchanged_answer_is_drawn_too() -> None:
    figure = plot_answer(answer({}, status=np.array(["unchanged"]), proba_before=np.array([[0.2, 0.8]])))
    draw(figure)
    *curves, grid, _ = figure.axes
    assert len(curves) == 3 and not any(c.patches for c in curves) and grid.images[0].get_clim() == (-1.0, 1.0)
    assert figure.get_suptitle().startswith("well, as wanted   p(well) 0.80 → 0.80   0 % changed")


@pytest.mark.parametrize("changes", [{}, {(1, 1): 3.0}])
def test_an_answer_that_was_not_found_is_drawn_too(changes: dict[tuple[int, int], float]) -> None:
    missed = np.array([[0.7, 0.3]])
    figure = plot_answer(answer(changes, status=np.array(["not_found"]), proba_after=missed))
    draw(figure)
    assert figure.get_suptitle().startswith("sick → well, not reached   p(well) 0.10 → 0.30")
    copy = answer(changes, status=np.array(["not_found"]))  # the place of a missing answer may hold a valid one
    assert "not reached" in plot_answer(copy).get_suptitle()


def test_names_are_not_read_as_formulas() -> None:
    names = ("cost $a_{$", "weight_$", "f$\\frac$")
    figure = plot_answer(answer({(0, 0): 1.0, (0, 1): 1.0, (0, 2): 1.0}, info={"feature_names": names}))
    draw(figure)


def test_pictures_leave_no_trace() -> None:
    import matplotlib.pyplot as plt

    before = dict(rcParams)
    draw(answer({(0, 0): 1.0}).plot(0))
    assert dict(rcParams) == before and plt.get_fignums() == []


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError, match=r"plots need matplotlib. Install it with: pip install 'sparcets\[plots\]'"
    ):
        plot_answer(answer({}))
