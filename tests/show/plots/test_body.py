"""Stick figures: which points are drawn where, and what is marked."""

import io

import numpy as np
import pytest
from matplotlib import colors

from sparcets.core.errors import CapabilityError
from sparcets.core.evidence import VERDICTS
from sparcets.motion.stick_figure import body_figure, find_body, plot_body
from sparcets.show import style

AMBER = VERDICTS["doubtful"].colour  # no other models were asked
FLAT = tuple(f"{point}_{axis}" for point in ("LeftShoulder", "LeftElbow", "LeftWrist", "Center") for axis in "xy")
DEEP = tuple(f"{point}_{axis}" for point in ("shoulder", "elbow", "wrist") for axis in "xyz")


def test_points_limbs_and_what_moves_in_the_frame_and_plane_that_show_it(answer):
    e = answer({(4, 2): 5.0}, n_features=8, info={"feature_names": FLAT, "units": ("m",) * 8})
    body = find_body(e)
    assert body.axes == ("x", "y") and body.unit == "m"
    assert body.limbs == (("LeftShoulder", "LeftElbow"), ("LeftElbow", "LeftWrist"))
    assert body.query["LeftElbow"].tolist() == e.query[0][:, 2:4].tolist()
    assert body.counterfactual["LeftElbow"][4].tolist() == [e.query[0, 4, 2] + 5.0, e.query[0, 4, 3]]
    assert np.flatnonzero(body.changed["LeftElbow"]).tolist() == [4] and not body.changed["LeftWrist"].any()
    e = answer({}, n_features=8, info={"feature_names": FLAT})
    e.query[0, :, 6] = e.counterfactual[0, :, 6] = 1e6
    body = find_body(e)
    assert "Center" in body.query and body.frame()[1].max() < 1e3
    e = answer({(4, 4): 5.0, (4, 8): 5.0}, n_features=9, info={"feature_names": DEEP})
    body = find_body(e)
    assert body.axes == ("y", "z") and body.hidden == "x"
    assert body.legend().endswith("; x, which changes least, is not drawn")


def test_a_row_for_the_recording_and_one_for_the_counterfactual(answer, monkeypatch):
    monkeypatch.setattr("sparcets.motion.stick_figure.MOMENTS", 3)
    info = {"feature_names": FLAT, "units": ("m",) * 8, "sampling_rate": 5.0}
    figure = plot_body(answer({(4, 2): 5.0}, n_features=8, info=info))
    figure.savefig(io.BytesIO(), dpi=30)
    above, below = figure.axes[:3], figure.axes[3:]
    assert [a.get_title(loc="left") for a in above] == ["0.60 s", "0.80 s", "1.00 s"], "around step 4"
    assert above[0].get_ylabel() == "recorded\ny (m)" and below[0].get_ylabel() == "attempt (? doubtful)\ny (m)"
    assert below[0].get_xlabel() == "x (m)" and below[0].get_aspect() == 1.0
    assert [text.get_text() for text in above[0].texts] == ["LeftShoulder", "LeftElbow", "LeftWrist", "Center"]
    marked = [sum(colors.same_color(line.get_color(), style.MARK) for line in axes.lines) for axes in (*above, *below)]
    assert marked == [0, 0, 0, 0, 1, 0], "only the elbow at step 4, and only in the counterfactual"


def test_features_without_a_body_raise(answer):
    e = answer({(0, 0): 1.0})
    assert find_body(e) is None and body_figure(e) is None
    with pytest.raises(CapabilityError, match="LeftElbow_x"):
        plot_body(e)


def test_the_moving_figure_has_one_frame_per_step_of_the_same_traces(answer):
    e = answer({(4, 2): 5.0, (5, 2): 1.0}, n_features=8, info={"feature_names": FLAT})
    figure = body_figure(e)
    assert [frame["name"] for frame in figure["frames"]] == [f"step {t}" for t in range(10)]
    assert {len(frame["data"]) for frame in figure["frames"]} == {len(figure["data"])}
    assert figure["layout"]["sliders"][0]["active"] == 4, "it starts at the step that changes most"
    points = [trace for trace in figure["frames"][4]["data"] if "marker" in trace]
    assert points[0]["marker"]["color"] == [style.BEFORE] * 3
    assert points[1]["marker"]["color"] == [AMBER, style.MARK, AMBER]
    assert points[1]["x"][1] == points[0]["x"][1] + 5.0
