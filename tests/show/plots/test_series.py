"""Figures of answers and of trainings: axes, labels and data; no images are compared."""

import io
import math
import sys

import numpy as np
import pytest
from matplotlib import rcParams

from sparcets.core.errors import DataError, MissingExtraError, ShapeError
from sparcets.core.explanation import join
from sparcets.show.plots import plot_answer, plot_answers, plot_history


def draw(figure):
    figure.savefig(io.BytesIO(), dpi=30)


def spans(axes):
    return [tuple(box(patch).intervalx) for patch in axes.patches]


def box(patch):
    """Return the box of a span, which is a polygon before matplotlib 3.9, and a rectangle since."""
    return patch.get_path().get_extents(patch.get_patch_transform())


def test_changed_features_are_drawn_as_curves_before_and_after(answer):
    e = answer({(3, 0): 1.0, (4, 0): 2.0, (8, 0): -1.0, (0, 2): 5.0})
    *curves, _, _ = plot_answer(e).axes
    assert [c.get_ylabel() for c in curves] == ["f0\n(no unit)", "f2\n(no unit)"], "in the order of the features"
    after, before = curves[0].lines  # the recording is drawn over the counterfactual
    assert (before.get_label(), after.get_label()) == ("recorded", "attempt (? doubtful)")
    assert before.get_xdata().tolist() == list(range(10))
    assert before.get_ydata().tolist() == e.query[0, :, 0].tolist()
    assert after.get_ydata().tolist() == e.counterfactual[0, :, 0].tolist()
    assert spans(curves[0]) == [(2.5, 4.5), (7.5, 8.5)], "half a step around what changed"
    assert [t.get_text() for t in curves[0].get_legend().get_texts()] == ["recorded", "attempt (? doubtful)", "changed"]
    assert curves[1].get_legend() is None and curves[1].get_xlabel() == "time (steps)" and curves[0].get_xlabel() == ""


def test_the_map_shows_every_change_in_standard_deviations_and_leaves_the_rest_white(answer):
    *_, grid, _ = plot_answer(answer({(3, 0): 2.0, (0, 2): -8.0})).axes
    (image,) = grid.images
    drawn = np.ma.filled(image.get_array(), np.nan)  # (features, time)
    assert drawn.shape == (3, 10) and drawn[0, 3] == 0.5 and drawn[2, 0] == -2.0
    assert np.isnan(drawn).sum() == 28
    assert image.get_clim() == (-2.0, 2.0), "symmetric about 0"
    assert [t.get_text() for t in grid.get_yticklabels()] == ["f0", "f1", "f2"]
    assert image.get_extent() == [-0.5, 9.5, 2.5, -0.5]


def test_units_seconds_and_title(answer):
    e = answer({(4, 1): 1.0}, info={"units": ("", "m/s²", ""), "sampling_rate": 2.0})
    figure = plot_answer(e)
    curve, grid, _ = figure.axes
    assert curve.get_ylabel() == "f1\n(m/s²)" and curve.get_xlabel() == grid.get_xlabel() == "time (s)"
    assert curve.lines[0].get_xdata().tolist() == [t / 2 for t in range(10)]
    assert spans(curve) == [(1.75, 2.25)] and grid.images[0].get_extent()[:2] == [-0.25, 4.75]
    assert figure.get_suptitle().strip() == "sick → well   p(well) 0.10 → 0.80   3.3 % changed   (nearest)"


def test_the_five_features_that_change_most_are_curves_or_some_if_none_does(answer):
    e = answer({(0, f): float(1 + (f * 3) % 7) for f in range(7)}, n_features=7)  # 1 4 7 3 6 2 5
    *curves, _, _ = plot_answer(e).axes
    assert [c.get_ylabel() for c in curves] == [f"f{i}\n(no unit)" for i in (1, 2, 3, 4, 6)]
    figure = plot_answer(answer({}, status=np.array(["unchanged"]), proba_before=np.array([[0.2, 0.8]])))
    draw(figure)
    *curves, grid, _ = figure.axes
    assert len(curves) == 3 and not any(c.patches for c in curves) and grid.images[0].get_clim() == (-1.0, 1.0)
    assert figure.get_suptitle().strip().startswith("well, already the target   p(well) 0.80 → 0.80   0 % changed")


def test_names_are_not_read_as_formulas(answer):
    names = ("cost $a_{$", "weight_$", "f$\\frac$")
    figure = plot_answer(answer({(0, 0): 1.0, (0, 1): 1.0, (0, 2): 1.0}, info={"feature_names": names}))
    draw(figure)


def test_figures_leave_the_global_state_as_it_was(answer):
    import matplotlib.pyplot as plt

    before = dict(rcParams)
    draw(answer({(0, 0): 1.0}).plot(0))
    assert dict(rcParams) == before and plt.get_fignums() == []


def test_without_matplotlib_the_error_says_what_to_install(answer, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"plots need matplotlib. .*: pip install 'sparcets\[plots\]'"):
        plot_answer(answer({}))


def test_other_numbers_of_answers_than_a_figure_shows_raise(answer):
    with pytest.raises(ShapeError, match="one answer, got 2"):
        plot_answer(answer({(0, 0): 1.0})[[0, 0]])
    both = join([answer({(0, 0): 1.0}), answer({(0, 0): 1.0}, query_index=np.array([1]))])
    with pytest.raises(ShapeError, match="those to 2"):
        plot_answers(both)


def test_every_value_of_a_history_has_a_panel_with_its_unit():
    history = {"generator": [3.0, 2.0, 1.0], "sparsity": [0.5, math.nan, 0.25], "held_out_valid": [1.0] * 15}
    first, second = plot_history(history).axes
    assert first.lines[0].get_xdata().tolist() == [1, 2, 3] and first.lines[0].get_ydata().tolist() == [3.0, 2.0, 1.0]
    labels = (first.get_title(loc="left"), first.get_xlabel(), first.get_ylabel())
    assert labels == ("generator", "epoch", "loss (no unit)") and second.get_title(loc="left") == "sparsity"
    (share,) = plot_history({"validation_error": [0.5]}).axes
    assert share.get_title(loc="left") == "validation error" and share.get_ylabel() == "share (of 1)"


@pytest.mark.parametrize("history", [{}, {"a": []}, {"a": [math.nan]}, {"held_out_valid": [1.0]}])
def test_nothing_to_draw(history):
    with pytest.raises(DataError, match="no training to draw"):
        plot_history(history)
