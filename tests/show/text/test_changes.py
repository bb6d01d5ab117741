"""Merging and grouping of changed segments: values computed by hand, and invariants."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparcets.core.explanation import Explanation
from sparcets.motion.skeleton import coordinate_groups
from sparcets.show.changes import Change, find_changes, find_groups

Make = Callable[..., Explanation]
HAND = ("hand_x", "hand_y", "load")


def positions(changes: list[Change]) -> list[tuple[str, int, int, int]]:
    return [(s.direction, s.feature, s.start, s.end) for change in changes for s in change.segments]


def test_a_small_gap_is_closed_and_a_wide_one_is_not(answer: Make) -> None:
    found = find_changes(answer({(1, 0): 1.0, (3, 0): 1.0, (6, 0): 1.5}))
    assert positions(found) == [("raise", 0, 1, 4), ("raise", 0, 6, 7)]
    assert found[0].segments[0].n_changed == 2 and found[0].segments[0].mean == 1.0, "the gap is not averaged in"


def test_a_rise_and_a_fall_are_two_changes(answer: Make) -> None:
    rise_and_fall = {(t, 0): 1.0 if t < 4 else -1.5 for t in range(8)}
    assert positions(find_changes(answer(rise_and_fall))) == [("lower", 0, 4, 8), ("raise", 0, 0, 4)]


def test_short_rises_and_falls_are_one_oscillation(answer: Make) -> None:
    (change,) = find_changes(answer({(2, 0): 3.0, (3, 0): -2.0, (4, 0): 3.0, (5, 0): -2.0}))
    (segment,) = change.segments
    assert (segment.direction, segment.start, segment.end) == ("change", 2, 6)
    assert (segment.lowest, segment.highest, segment.rise, segment.fall) == (-2.0, 3.0, 6.0, 4.0)


def test_a_minor_dip_does_not_split_a_rise(answer: Make) -> None:
    dip = {(t, 0): -0.1 if t == 4 else 1.0 for t in range(8)}
    assert positions(find_changes(answer(dip))) == [("raise", 0, 0, 8)]
    deep = {(t, 0): -2.0 if 3 <= t < 6 else 1.0 for t in range(9)}
    assert len(find_changes(answer(deep))) == 3


def test_weight_is_in_standard_deviations_times_steps(answer: Make) -> None:
    first, second = find_changes(answer({(0, 0): 3.0, (5, 1): 8.0}))
    assert (first.weight, second.weight) == (3.0, 2.0), "8 of a feature whose standard deviation is 4"


def test_coordinates_of_one_object_are_grouped_if_they_change_together(answer: Make) -> None:
    at_once = {**{(t, 0): 1.0 for t in range(2, 6)}, **{(t, 1): -2.0 for t in range(3, 6)}}
    (change,) = find_changes(answer(at_once, names=HAND))
    assert change.group == "hand" and (change.start, change.end) == (2, 6)
    assert positions([change]) == [("lower", 1, 3, 6), ("raise", 0, 2, 6)], "the larger first"
    longer = {**{(t, 0): 1.0 for t in range(2, 8)}, **{(t, 1): -2.0 for t in range(3, 7)}}
    assert [c.group for c in find_changes(answer(longer, names=HAND))] == [None, None], "no time is right for both"
    apart = {**{(t, 0): 1.0 for t in range(4)}, **{(t, 1): 1.0 for t in range(6, 10)}}
    assert [c.group for c in find_changes(answer(apart, names=HAND))] == [None, None]


def test_groups_of_the_constraints_come_first(answer: Make) -> None:
    constraints = {
        "explain": {"groups": {"lift": ["hand_y", "load"]}},
        "fit": {"groups": {"all": [0, 1, 2], "one": [0]}},
    }
    assert find_groups(answer({}, names=HAND, constraints=constraints)) == {"lift": [1, 2]}
    assert find_groups(answer({}, names=HAND)) == {"hand": [0, 1]}


def test_only_axes_make_a_group() -> None:
    names = ["gravity.x", "gravity.y", "attitude.roll", "attitude.pitch", "body_1", "body_2", "_x", "_y", "alone_x"]
    assert coordinate_groups(names) == {"gravity": [0, 1], "attitude": [2, 3]}


@given(values=st.lists(st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.05]), min_size=40, max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the fixture is a function without state
def test_every_change_is_in_exactly_one_segment(answer: Make, values: list[float]) -> None:
    moved = {(i // 2, i % 2): v for i, v in enumerate(values) if v}
    e = answer(moved, n_steps=20)
    segments = [s for change in find_changes(e) for s in change.segments]
    covered: Any = np.zeros((20, 2), dtype=int)
    for s in segments:
        covered[s.start : s.end, s.feature] += 1
    assert (covered <= 1).all() and (covered[e.changed[0]] == 1).all()
    assert sum(s.n_changed for s in segments) == len(moved)
    delta = e.counterfactual[0] - e.query[0]
    for feature in range(2):
        net = sum(s.rise - s.fall for s in segments if s.feature == feature)
        np.testing.assert_allclose(net, delta[:, feature].sum(), atol=1e-9)
    weights = [change.weight for change in find_changes(e)]
    assert weights == sorted(weights, reverse=True)
