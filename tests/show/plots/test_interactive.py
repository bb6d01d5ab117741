"""Interactive figures: JSON values that plotly accepts, with the same data as the matplotlib figures."""

import json

import numpy as np
import pytest

from sparcets.core.explanation import join
from sparcets.show.interactive import answers_figure, curves_figure, curves_svg, frequency_figure, map_figure, show
from sparcets.show.plots import plot_answer


def test_curves_with_shading_names_and_units(answer):
    e = answer({(3, 0): 1.0, (4, 0): 2.0, (0, 2): 5.0}, info={"units": ("m", "", "s"), "sampling_rate": 2.0})
    figure = curves_figure(e)
    after, before = figure["data"][:2]
    assert (before["name"], before["y"]) == ("recorded", e.query[0, :, 0].tolist())
    assert (after["name"], after["y"]) == ("attempt (? doubtful)", e.counterfactual[0, :, 0].tolist())
    assert before["x"] == [t / 2 for t in range(10)] and before["line"] != after["line"]
    layout = figure["layout"]
    shapes = [(s["x0"], s["x1"], s["yref"]) for s in layout["shapes"]]
    assert shapes == [(1.25, 2.25, "y domain"), (-0.25, 0.25, "y2 domain")]
    assert [a["text"] for a in layout["annotations"]] == ["f0 (m)", "f2 (s)"]
    assert layout["xaxis"]["title"]["text"] == "time (s)" and layout["xaxis"]["anchor"] == "y2"
    top, bottom = layout["yaxis"]["domain"], layout["yaxis2"]["domain"]
    assert top[0] > bottom[1] and top[1] == 1 and bottom[0] == pytest.approx(0)


def test_names_are_no_markup_and_exact_zeros_are_empty(answer):
    names = ("<b>a</b>", "b & c", "d")
    e = answer({(0, 0): 1.0, (0, 1): 1.0}, info={"feature_names": names})
    assert curves_figure(e)["layout"]["annotations"][0]["text"].startswith("&lt;b&gt;a&lt;/b&gt;")
    assert "<b>" not in json.dumps(map_figure(e))
    figure = map_figure(answer({(3, 0): 2.0, (0, 2): -8.0}, mutable=np.array([True, False, True])))
    (trace,) = figure["data"]
    assert trace["z"][0] == [None] * 3 + [0.5] + [None] * 6 and trace["z"][2][0] == -2.0
    assert (trace["zmin"], trace["zmax"], trace["y"]) == (-2.0, 2.0, ["f0", "f1", "f2"])
    assert "standard deviations" in trace["colorbar"]["title"]["text"]
    assert "grey" in figure["layout"]["title"]["text"] and "span" in figure["layout"]["yaxis"]["ticktext"][1]
    assert [(s["y0"], s["y1"], s["layer"]) for s in figure["layout"]["shapes"]] == [(0.5, 1.5, "below")]


def test_frequency_of_changes_over_valid_answers_that_have_the_step(answer):
    missed = {"proba_after": np.array([[0.9, 0.1]]), "status": np.array(["not_found"])}
    e = join([answer({(2, 0): 4.0}), answer({(2, 0): 1.0, (3, 0): 1.0}), answer({(9, 1): 9.0}, **missed)])
    trace = frequency_figure(e)["data"][0]
    assert trace["z"][0] == [None, None, 100.0, 50.0] + [None] * 6 and trace["z"][1] == [None] * 10
    short, whole = answer({(2, 0): 4.0}, lengths=np.array([3])), answer({(3, 0): 1.0}, lengths=np.array([10]))
    assert frequency_figure(join([short, whole]))["data"][0]["z"][0] == [None, None, 50.0, 100.0] + [None] * 6


def test_figures_are_json_accepted_by_plotly_and_end_before_padding(answer):
    e = answer({(3, 0): 1.0})
    for figure in (curves_figure(e), map_figure(e), answers_figure(e), frequency_figure(e)):
        assert json.loads(json.dumps(figure, allow_nan=False)) == figure
        assert len(show(figure).data) == len(figure["data"])
    e = answer({(2, 0): 1.0}, lengths=np.array([6]))
    assert len(curves_figure(e)["data"][0]["x"]) == len(map_figure(e)["data"][0]["z"][0]) == 6
    curve, grid, _ = plot_answer(e).axes
    assert len(curve.lines[0].get_xdata()) == 6 and grid.images[0].get_array().shape == (3, 6)
    assert ">5<" in curves_svg(e) and ">6<" not in curves_svg(e), "the last time"
