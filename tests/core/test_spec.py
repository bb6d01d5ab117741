"""Constraints: each kind by hand, combinations, and one message for all problems."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sparcets.core.constraints import Constraints
from sparcets.core.enforcement import BoundConstraints
from sparcets.core.errors import ConstraintError
from sparcets.core.info import SeriesInfo

# Six steps of three features with training values in 0..1, so changes below 1e-6 are negligible.
TRAINING = np.zeros((3, 6, 3))
TRAINING[1], TRAINING[2] = 1.0, 0.5


def bind(mutable: tuple[bool, ...] = (True, True, True), **constraints: Any) -> BoundConstraints:
    info = replace(SeriesInfo.from_series(TRAINING, ("sick", "well")), mutable=np.array(mutable))
    return Constraints(**constraints).bind(info)


def enforce(
    constraints: dict[str, Any], f0: list[float], f1: list[float] | None = None, **more: Any
) -> list[list[float]]:
    """Return f0 and f1 of the result for an all-zero query and a proposal with these values (f2 as f0)."""
    query = more.pop("query", np.zeros((1, 6, 3)))
    proposal = np.stack([f0, f1 or f0, f0], axis=-1)[None]
    result = bind(**constraints, **more).enforce(query, proposal)
    return [result[0, :, 0].tolist(), result[0, :, 1].tolist()]


RAMP = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
NONE = [0.0] * 6


def test_no_constraints_return_the_proposal() -> None:
    assert enforce({}, RAMP) == [RAMP, RAMP]


@pytest.mark.parametrize("feature", [0, np.int64(0), "f0"])
def test_immutable(feature: Any) -> None:
    assert enforce({"immutable": [feature]}, RAMP) == [NONE, RAMP]
    assert bind(immutable=[feature]).mutable.tolist() == [False, True, True]


def test_immutable_features_of_the_data_set() -> None:
    assert enforce({}, RAMP, mutable=(True, False, True)) == [RAMP, NONE]


def test_frozen_windows_are_half_open() -> None:
    assert enforce({"frozen": [(0, 2), (4, 5)]}, RAMP)[0] == [0, 0, 3, 4, 0, 6]


def test_ranges_bound_changed_entries_only() -> None:
    query = np.full((1, 6, 3), 9.0)  # outside the range, and allowed to stay there
    assert enforce({"ranges": {"f0": (2.5, 4)}}, [1, 3, 5, 9, 9, 4], query=query)[0] == [2.5, 3, 4, 9, 9, 4]


def test_ranges_may_be_open_at_one_end() -> None:
    assert enforce({"ranges": {"f0": (-np.inf, 2)}}, [-50, 3, 2, 0, 1, 9])[0] == [-50, 2, 2, 0, 1, 2]
    assert enforce({"ranges": {"f0": np.array([2, np.inf])}}, [-50, 3, 2, 0, 1, 9])[0] == [2, 3, 2, 0, 2, 9]
    assert enforce({"ranges": {"f0": (2, None)}}, [-50, 3, 2, 0, 1, 9])[0] == [2, 3, 2, 0, 2, 9]
    given = Constraints(ranges={"f0": (None, 2)})
    assert given.to_dict()["ranges"] == [["f0", [None, 2.0]]]
    assert Constraints.from_dict(given.to_dict()).ranges == {"f0": (-np.inf, 2.0)}


def test_direction() -> None:
    proposal = [1.0, -1.0, 0.0, 2.0, -2.0, 3.0]
    up, down = enforce({"direction": {"f0": "up", "f1": "down"}}, proposal)
    assert up == [1, 0, 0, 2, 0, 3] and down == [0, -1, 0, 0, -2, 0]


def test_max_step_moves_entries_back_to_a_ramp() -> None:
    assert enforce({"max_step": {"f0": 2}}, [0, 0, 9, 9, 0, 0])[0] == [0, 0, 2, 2, 0, 0]
    assert enforce({"max_step": {"f0": 2}}, [0, -9, -9, -9, 0, 0])[0] == [0, -2, -4, -2, 0, 0]
    assert enforce({"max_step": {"f0": 1}}, RAMP)[0] == RAMP, "the first value is not limited"


def test_max_step_allows_the_querys_own_steps() -> None:
    query = np.zeros((1, 6, 3))
    query[0, 3:] = 7.0
    lifted = [1.0, 1.0, 1.0, 8.0, 8.0, 8.0]
    assert enforce({"max_step": {"f0": 0.5}}, lifted, query=query)[0] == lifted
    more = [1.0, 1.0, 1.0, 9.0, 9.0, 9.0]  # a step of 8 where the query has one of 7
    assert enforce({"max_step": {"f0": 0.5}}, more, query=query)[0] == [1, 1, 1, 8, 8.5, 9]


def test_max_step_ignores_padding() -> None:
    query, proposal = np.zeros((1, 6, 3)), np.full((1, 6, 3), 5.0)
    result = bind(max_step={"f0": 1}).enforce(query, proposal, np.array([4]))
    assert result[0, :, 0].tolist() == [5, 5, 5, 5, 0, 0], "the step into the padding is not limited"


def test_groups_change_together_or_not_at_all() -> None:
    f0, f1 = [1.0, 1.0, 0.0, 0.0, 1.0, 1e-9], [2.0, 0.0, 2.0, 0.0, -2.0, 2.0]
    assert enforce({"groups": {"arm": ["f0", 1]}}, f0, f1) == [[1, 0, 0, 0, 1, 0], [2, 0, 0, 0, -2, 0]]


@pytest.mark.parametrize("immutable", [{"immutable": ["f1"]}, {"mutable": (True, False, True)}])
def test_one_immutable_member_freezes_its_group(immutable: dict[str, Any]) -> None:
    constraints = {"groups": {"arm": ["f0", "f1"]}, **immutable}
    assert enforce(constraints, RAMP) == [NONE, NONE]
    assert bind(**constraints).mutable.tolist() == [False, False, True]


def test_constraints_on_one_member_apply_to_the_group() -> None:
    group = {"groups": {"arm": ["f0", "f1"]}}
    proposal = [1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    assert enforce({**group, "direction": {"f1": "up"}}, proposal) == [[1, 0, 1, 1, 1, 1]] * 2
    # f1 may only be 0, its current value, so neither f1 nor f0 can change.
    assert enforce({**group, "ranges": {"f1": (0, 0)}}, proposal) == [NONE, NONE]
    # f1 cannot leave the frozen 0 with steps of size 0, so f0 must not change either.
    lag = {**group, "frozen": [(0, 1)], "max_step": {"f1": 0.0}}
    assert enforce(lag, proposal) == [NONE, NONE]


def test_range_that_the_step_limit_cannot_reach() -> None:
    # Changed entries must be at least 5, which steps of 1 cannot reach from the frozen ends.
    constraints = {"ranges": {"f0": (5, 9)}, "max_step": {"f0": 1}, "frozen": [(0, 1), (5, 6)]}
    assert enforce(constraints, [0, 6, 6, 6, 6, 0])[0] == NONE
    constraints = {"ranges": {"f0": (2, 9)}, "max_step": {"f0": 2}, "frozen": [(0, 1), (5, 6)]}
    assert enforce(constraints, [0, 6, 6, 6, 6, 0])[0] == [0, 2, 4, 4, 2, 0]


PROBLEMS: list[tuple[dict[str, Any], str]] = [
    ({"immutable": ["F1"]}, "immutable: no feature 'F1'. Did you mean 'f1'? Known: f0, f1, f2"),
    ({"immutable": [3]}, "immutable: no feature 3"),
    ({"immutable": [-1]}, "immutable: no feature -1"),
    ({"immutable": [True]}, "immutable: no feature True"),
    ({"immutable": "f0"}, "immutable must be a list of features, got 'f0'"),
    ({"immutable": None}, "got None"),
    ({"immutable": np.int64(1)}, "got 1"),
    ({"immutable": [0, 1, 2]}, "together they leave nothing that may change; free at least one feature and step"),
    ({"frozen": [(0, 6)]}, "together"),
    ({"frozen": [(0, 3), (3, 6)]}, "together"),
    ({"frozen": [(3, 3)]}, "frozen window (3, 3) must satisfy 0 <= start < stop <= 6 (steps)"),
    ({"frozen": [(4, 2)]}, "frozen window (4, 2)"),
    ({"frozen": [(-1, 2)]}, "frozen window (-1, 2)"),
    ({"frozen": [(0, 7)]}, "frozen window (0, 7)"),
    ({"frozen": [(0.5, 2)]}, "a frozen window must be (start, stop) in whole steps, got (0.5, 2)"),
    ({"frozen": ["02"]}, "got '02'"),
    ({"frozen": [(0, 1, 2)]}, "got (0, 1, 2)"),
    ({"frozen": (0, 2)}, "frozen must be a list of windows [(start, stop), …], got (0, 2)"),
    ({"frozen": 3}, "got 3"),
    ({"ranges": {"f0": (2, 1)}}, "ranges of 'f0' must have lowest <= highest: 2 > 1"),
    ({"ranges": {"f0": (2,)}}, "ranges of 'f0' must be (lowest, highest), None for an open end, got (2,)"),
    ({"ranges": {"f0": (0, np.nan)}}, "got (0, nan)"),
    ({"ranges": {"f0": ("0", "1")}}, "got ('0', '1')"),
    ({"ranges": {"f0": 3.0}}, "got 3.0"),
    ({"ranges": {"f0": np.array(3.0)}}, "got 3.0"),
    ({"ranges": [("f0", (0, 1))]}, "ranges must map features to values, got [('f0', (0, 1))]"),
    ({"ranges": {"f0": (0, 1), 0: (0, 2)}}, "ranges gives 'f0' twice, as (0, 1) and (0, 2)"),
    ({"max_step": {"f0": -1}}, "max_step of 'f0' must be a number >= 0, got -1"),
    ({"max_step": {"f0": np.inf}}, "got inf"),
    ({"max_step": {"f0": True}}, "got True"),
    ({"max_step": {"g0": 1}}, "max_step: no feature 'g0'"),
    ({"direction": {"f0": "left"}}, "direction of 'f0' must be 'up' or 'down', got 'left'"),
    ({"direction": {"f0": "up", 0: "down"}}, "direction gives 'f0' twice, as 'up' and 'down'"),
    (
        {"direction": {"f0": "up"}, "immutable": [0]},
        "'f0' has a direction but may not change at all: it is immutable, or in a group with an immutable feature",
    ),
    ({"direction": {"f0": "up"}, "groups": {"arm": [0, 1]}, "immutable": [1]}, "'f0' has a direction"),
    ({"groups": {"arm": [0, 1], "leg": [1, 2]}}, "'f1' is in two groups, 'arm' and 'leg'"),
    ({"groups": {"arm": "f0"}}, "groups['arm'] must be a list of features, got 'f0'"),
    ({"groups": {"arm": ["f0", "x"]}}, "groups['arm']: no feature 'x'"),
    ({"groups": [["f0", "f1"]]}, "groups must map names to lists of features, got [['f0', 'f1']]"),
]


@pytest.mark.parametrize(("constraints", "message"), PROBLEMS, ids=[m[:45] for _, m in PROBLEMS])
def test_each_problem(constraints: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=f"1 problem in the constraints: .*{re.escape(message)}"):
        bind(**constraints)


def test_all_problems_are_in_one_message() -> None:
    with pytest.raises(ConstraintError) as caught:
        bind(
            immutable=["f8"],
            frozen=[(9, 2)],
            ranges={"f0": (2, 1)},
            max_step={"f1": -1},
            direction={"f2": "left"},
            groups={"arm": ["f7"]},
        )
    message = str(caught.value)
    assert message.startswith("6 problems in the constraints: ") and message.endswith(".")
    for part in ["immutable: no", "frozen window", "ranges of", "max_step of", "direction of", "groups['arm']: no"]:
        assert part in message


def test_same_value_by_name_and_by_index() -> None:
    assert bind(ranges={"f0": (0, 1), 0: (0, 1)}).high.tolist() == [1, np.inf, np.inf]


def test_json_round_trip() -> None:
    constraints = Constraints(
        immutable=[np.int64(2), "f1"],
        frozen=[(np.int64(0), 2)],
        ranges={"f0": (-np.inf, np.float32(2)), 1: (0, np.inf)},
        max_step={0: 1},
        direction={"f0": "up"},
        groups={"arm": ["f0"]},
    )
    plain = json.loads(json.dumps(constraints.to_dict(), allow_nan=False))
    assert {name: value for name, value in plain.items() if value} == {
        "immutable": [2, "f1"],
        "frozen": [[0, 2]],
        "ranges": [["f0", [None, 2.0]], [1, [0.0, None]]],
        "max_step": [[0, 1.0]],
        "direction": [["f0", "up"]],
        "groups": {"arm": ["f0"]},
    }
    again = Constraints.from_dict(plain)
    assert again == Constraints.from_dict(again.to_dict()) and again.to_dict() == plain
    assert again.ranges == {"f0": (-np.inf, 2.0), 1: (0.0, np.inf)} and again.frozen == [(0, 2)]


def test_conjunction() -> None:
    one = bind(immutable=["f2"], ranges={"f0": (0, 5)}, max_step={"f0": 3}, direction={"f1": "up"}, frozen=[(0, 1)])
    two = bind(ranges={"f0": (-1, 4)}, max_step={"f0": 2}, frozen=[(5, 6)])
    both = one.combine(two)
    assert (both.low[0], both.high[0], both.limit[0], both.sign[1]) == (0, 4, 2, 1)
    assert both.mutable.tolist() == [True, True, False]
    result = both.enforce(np.zeros((1, 6, 3)), np.full((1, 6, 3), 9.0))
    assert result[0, :, 0].tolist() == [0, 2, 4, 4, 2, 0] and result[0, :, 1].tolist() == [0, 9, 9, 9, 9, 0]


def test_opposite_directions_freeze_a_feature() -> None:
    both = bind(direction={"f0": "up"}).combine(bind(direction={"f0": "down"}))
    assert both.mutable.tolist() == [False, True, True]
    assert not both.enforce(np.zeros((1, 6, 3)), np.ones((1, 6, 3)))[..., 0].any()


def test_immutable_member_freezes_a_group_of_the_other_set() -> None:
    both = bind(groups={"a": [0, 1]}).combine(bind(immutable=[2], groups={"b": [1, 2]}))
    assert both.mutable.tolist() == [False, False, False]
    assert not both.editable.any()


def test_a_frozen_member_freezes_its_group_there() -> None:
    alone = bind(frozen={"f0": [(0, 2)]}, groups={"a": [0, 1]})
    assert alone.allowed.T.tolist() == [[False] * 2 + [True] * 4] * 2 + [[True] * 6]
    both = bind(groups={"a": [0, 1]}).combine(bind(frozen={"f2": [(4, None)]}, groups={"b": [1, 2]}))
    assert both.allowed.T.tolist() == [[True] * 4 + [False] * 2] * 3


def test_a_feature_that_is_frozen_throughout_is_an_active_constraint() -> None:
    """One pass on the GPU is for calls without frozen steps."""
    assert bind(frozen={"f0": [(None, None)]}).active_kinds() == ["frozen steps"]
    assert bind(frozen={"f0": [(0, 2)]}, immutable=["f0"]).active_kinds() == ["immutable features"]


def test_constant_features_are_left_alone_unless_they_are_named_with_others() -> None:
    X = np.random.default_rng(0).normal(size=(4, 5, 4)).astype(np.float32)
    X[..., 1], X[..., 2] = 3.0, 1e4 + 1e-3 * (X[..., 2] > 0)  # the second by the last bit of its values
    info = SeriesInfo.from_series(X, ("a", "b"))
    assert info.constant.tolist() == [False, True, True, False]
    assert Constraints().bind(info).editable.any(0).tolist() == [True, False, False, True]
    assert Constraints().bind(info).active_kinds() == []
    grouped = Constraints(groups={"g": [0, 1]}, fixed_sum=[(2, 3)]).bind(info)
    assert grouped.editable.all()
    assert Constraints().bind(SeriesInfo.from_series(X[..., 1:3], ("a", "b"))).editable.all()  # there is nothing else


def test_misspelt_constraints_are_named() -> None:
    with pytest.raises(
        ConstraintError, match=r"no constraint 'imutable'. Did you mean 'immutable'\? Known: immutable,"
    ):
        Constraints(imutable=[1])
    with pytest.raises(ConstraintError, match=r"constraints are given by name, got \['a'\]. Known: immutable"):
        Constraints(["a"])
    assert list(inspect.signature(Constraints).parameters)[:2] == ["immutable", "frozen"]


def test_a_largest_step_beyond_all_numbers_is_none() -> None:
    assert bind(max_step={0: 1e300, 1: 2.0}).limit.tolist() == [np.inf, 2.0, np.inf]
