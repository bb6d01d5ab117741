"""Recognising body points, limbs and joints among the features."""

import pytest

from sparcets.core.errors import UnknownNameError
from sparcets.data import ui_prmd
from sparcets.motion import catching
from sparcets.motion.skeleton import CATCHING_ARMS, body_part, coordinate_groups, coordinates, find_skeleton


def test_arms_of_the_data_sets():
    found = find_skeleton(catching.FEATURES)
    hands = (("LeftWrist", "LeftHand"), ("RightWrist", "RightHand"))
    assert set(found.limbs) == {*CATCHING_ARMS, *hands} and len(found.limbs) == 6
    assert found.joints == tuple(
        (f"{side}{a}", f"{side}{b}", f"{side}{c}")
        for side in ("Left", "Right")
        for a, b, c in (("Shoulder", "Elbow", "Wrist"), ("Elbow", "Wrist", "Hand"))
    )
    points = {f"{side}{point}" for side in ("Left", "Right") for point in ("Shoulder", "Elbow", "Wrist", "Hand")}
    assert set(found.points) == points  # neither head nor ball
    assert found.points["LeftElbow"] == (6, 7)  # after head and shoulders
    found = find_skeleton(ui_prmd.FEATURES)
    assert found.points == {"shoulder": (0, 1, 2), "elbow": (3, 4, 5), "wrist": (6, 7, 8), "finger": (9, 10, 11)}
    assert found.limbs == (("shoulder", "elbow"), ("elbow", "wrist"), ("wrist", "finger"))
    assert found.joints == (("shoulder", "elbow", "wrist"), ("elbow", "wrist", "finger"))
    less = find_skeleton([name for name in ui_prmd.FEATURES if not name.startswith("shoulder")])
    assert (less.limbs, less.joints) == (found.limbs[1:], found.joints[1:])
    lone = find_skeleton([*ui_prmd.FEATURES, "hip_x", "hip_y"])
    assert lone.points == found.points, "a point without a neighbour is of no limb"


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("f0", "f1"),
        ("elbow_x", "elbow_y"),  # a single point forms no limb
        ("shoulder_x", "shoulder_y", "wrist_x", "wrist_y"),  # shoulder and wrist are not neighbours
        ("elbow_x", "wrist_x"),  # one coordinate is not enough for a point
        ("elbow_x", "elbow_y", "elbow_z", "wrist_x", "wrist_y"),  # a distance needs the same coordinates of both
        ("elbow_x", "elbow_z", "wrist_x", "wrist_z", "Elbow_y"),
    ],
)
def test_no_limb_no_skeleton(names):
    assert find_skeleton(names) is None


@pytest.mark.parametrize("write", ["{side}{point}_{axis}", "{point}_{s}.{axis}", "{s}_{point}_{axis}"], ids=str)
def test_other_writings_and_legs(write):
    points = ("Hip", "Knee", "Ankle", "Toe")
    parts = [(side, point, axis) for side in ("Left", "Right") for point in points for axis in "xyz"]
    names = [write.format(side=side, s=side[0], point=point, axis=axis) for side, point, axis in parts]
    found = find_skeleton(names)
    assert len(found.points) == 8
    assert len(found.limbs) == 6 and len(found.joints) == 4
    assert list(found.points.values())[:2] == [(0, 1, 2), (3, 4, 5)]


def test_what_is_no_length_is_no_position():
    names = ["hip_x", "hip_y", "knee_x", "knee_y"]
    assert find_skeleton(names, ["mm"] * 4) is not None and find_skeleton(names) is not None
    for unit in ("°", "rad", "m/s"):
        assert find_skeleton(names, [unit] * 4) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LeftWrist_x", ("wrist", "left", "x", "arm")),
        ("R_KNEE_angle", ("knee angle", "right", "", "leg")),
        ("hip_flexion_l", ("hip flexion", "left", "", "leg")),
        ("userAcceleration.z", ("user acceleration", "", "z", "")),
        ("left", ("left", "left", "", "")),
        ("f0", ("f 0", "", "", "")),
    ],
)
def test_parts_of_a_name(name, expected):
    part = body_part(name)
    assert (part.point, part.side, part.axis, part.limb) == expected


def test_unknown_points_and_axes_alone():
    with pytest.raises(UnknownNameError, match=r"no point 'Elbow'\. Did you mean 'LeftElbow'"):
        coordinates("Elbow", ["LeftElbow_x", "LeftElbow_y"])
    names = ["gravity.x", "gravity.y", "attitude.roll", "attitude.pitch", "body_1", "body_2", "_x", "_y", "alone_x"]
    assert coordinate_groups(names) == {"gravity": [0, 1], "attitude": [2, 3]}
