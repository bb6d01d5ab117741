"""Constraints by hand: each kind, conjunctions, projections, JSON, and one message for all problems."""

import inspect
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.constraints import Constraints
from sparcets.core.errors import ConstraintError
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series

# Six steps of three features with training values in 0..1, so changes below 1e-6 are negligible.
TRAINING = np.zeros((3, 6, 3))
TRAINING[1], TRAINING[2] = 1.0, 0.5
ZERO = np.zeros((1, 6, 3))
RAMP = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
NONE = [0.0] * 6


def bind(training=TRAINING, mutable=(True, True, True), **given):
    info = replace(SeriesInfo.from_series(training, ("sick", "well")), mutable=np.array(mutable))
    return Constraints(**given).bind(info)


def enforce(proposal, query=ZERO, **given):
    """Return the features of the result for proposed ones: one for all, or a list of three, padded with zeros."""
    curves = proposal if isinstance(proposal[0], list) else [proposal] * 3
    proposed = np.array([curve + [0.0] * (6 - len(curve)) for curve in curves]).T[None]
    return [curve.tolist() for curve in bind(**given).enforce(Series(query), proposed)[0].T]


NINE = np.full((1, 6, 3), 9.0)  # outside the ranges, and allowed to stay there
STEP = np.zeros((1, 6, 3))
STEP[0, 3:] = 7.0


@pytest.mark.parametrize(
    ("given", "query", "proposal", "expected"),
    [
        ({}, ZERO, RAMP, RAMP),
        ({"immutable": [0]}, ZERO, RAMP, NONE),
        ({"immutable": ["f0"]}, ZERO, RAMP, NONE),
        ({"mutable": (False, True, True)}, ZERO, RAMP, NONE),
        ({"frozen": [(0, 2), (4, 5)]}, ZERO, RAMP, [0, 0, 3, 4, 0, 6]),
        ({"frozen": {"f0": [(None, 1)], 1: [(0, 6)]}}, ZERO, RAMP, [0, 2, 3, 4, 5, 6]),
        ({"frozen": {0: [(2, None), (0, 1)]}}, ZERO, RAMP, [0, 2, 0, 0, 0, 0]),
        ({"ranges": {"f0": (2.5, 4)}}, NINE, [1, 3, 5, 9, 9, 4], [2.5, 3, 4, 9, 9, 4]),
        ({"ranges": {"f0": (-np.inf, 2)}}, ZERO, [-50, 3, 2, 0, 1, 9], [-50, 2, 2, 0, 1, 2]),
        ({"ranges": {"f0": np.array([2, np.inf])}}, ZERO, [-50, 3, 2, 0, 1, 9], [2, 3, 2, 0, 2, 9]),
        ({"ranges": {"f0": (2, None)}}, ZERO, [-50, 3, 2, 0, 1, 9], [2, 3, 2, 0, 2, 9]),
        ({"direction": {"f0": "up"}}, ZERO, [1, -1, 0, 2, -2, 3], [1, 0, 0, 2, 0, 3]),
        ({"direction": {"f0": "down"}}, ZERO, [1, -1, 0, 2, -2, 3], [0, -1, 0, 0, -2, 0]),
        ({"max_step": {"f0": 2}}, ZERO, [0, 0, 9, 9, 0, 0], [0, 0, 2, 2, 0, 0]),
        ({"max_step": {"f0": 2}}, ZERO, [0, -9, -9, -9, 0, 0], [0, -2, -4, -2, 0, 0]),
        ({"max_step": {"f0": 1}}, ZERO, RAMP, RAMP),  # the first value is not limited
        ({"max_step": {"f0": 0.5}}, STEP, [1, 1, 1, 8, 8, 8], [1, 1, 1, 8, 8, 8]),  # the query's own step
        ({"max_step": {"f0": 0.5}}, STEP, [1, 1, 1, 9, 9, 9], [1, 1, 1, 8, 8.5, 9]),
        # Changed entries must be at least 5, which steps of 1 cannot reach from the frozen ends.
        ({"ranges": {0: (5, 9)}, "max_step": {0: 1}, "frozen": [(0, 1), (5, 6)]}, ZERO, [0, 6, 6, 6, 6, 0], NONE),
        (
            {"ranges": {0: (2, 9)}, "max_step": {0: 2}, "frozen": [(0, 1), (5, 6)]},
            ZERO,
            [0, 6, 6, 6],
            [0, 2, 4, 2, 0, 0],
        ),
        ({"integer": ["f0"]}, ZERO, [0.4, 0.6, -1.5, 7.0, 0, 0], [0, 1, -2, 7, 0, 0]),
        ({"integer": [0], "ranges": {0: (-0.5, 5.5)}}, ZERO, [0.4, 0.6, -1.5, 7.0, 0, 0], [0, 1, 0, 5, 0, 0]),
        ({"integer": [0], "max_step": {0: 0.5}}, ZERO, [0.9] * 6, [1] * 6),
        ({"integer": [0], "max_step": {0: 0.5}}, ZERO, [0, 0.9, 0, 0, 0, 0], NONE),
        ({"monotone": {"f0": "up"}}, ZERO, [1, 3, 2, 0, 0, 0], [1, 2.5, 2.5, 0, 0, 0]),
        ({"monotone": {"f0": "down"}}, ZERO, [4, 2, 3, 1, 0, 0], [4, 2.5, 2.5, 1, 0, 0]),
        ({"monotone": {"f0": "up"}}, ZERO, [5, 0, 1, 2, 0, 0], [5, 0, 1, 2, 0, 0]),  # two stretches
    ],
    ids=str,
)
def test_one_feature(given, query, proposal, expected):
    assert enforce([float(value) for value in proposal], query, **given)[0] == expected


def test_groups_change_together_or_not_at_all():
    f0, f1 = [1.0, 1.0, 0.0, 0.0, 1.0, 1e-9], [2.0, 0.0, 2.0, 0.0, -2.0, 2.0]
    found = enforce([f0, f1, NONE], groups={"arm": ["f0", 1]})
    assert found[:2] == [[1, 0, 0, 0, 1, 0], [2, 0, 0, 0, -2, 0]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"direction": {"f1": "up"}}, [1, 0, 1, 1, 1, 1]),
        ({"ranges": {"f1": (0, 0)}}, NONE),  # it may only be 0, its current value
        ({"frozen": [(0, 1)], "max_step": {"f1": 0.0}}, NONE),  # it cannot leave the frozen 0 with steps of size 0
    ],
)
def test_constraints_on_one_member_apply_to_the_group(given, expected):
    assert enforce([1.0, -1.0, 1.0, 1.0, 1.0, 1.0], groups={"arm": ["f0", "f1"]}, **given)[:2] == [expected] * 2


PROBLEMS = [
    ({"immutable": ["F1"]}, "immutable: no feature 'F1'. Did you mean 'f1'? Known: f0, f1, f2"),
    ({"immutable": [3]}, "immutable: no feature 3"),
    ({"immutable": "f0"}, "immutable must be a list of features, got 'f0'"),
    ({"immutable": [0, 1, 2]}, "together they leave nothing that may change; free at least one feature and step"),
    ({"frozen": [(3, 3)]}, "frozen window (3, 3) must satisfy 0 <= start < stop <= 6 (steps)"),
    ({"frozen": [(0.5, 2)]}, "a frozen window must be (start, stop) in whole steps, got (0.5, 2)"),
    ({"frozen": (0, 2)}, "frozen must be a list of windows [(start, stop), …], got (0, 2)"),
    ({"ranges": {"f0": (2, 1)}}, "ranges of 'f0' must have lowest <= highest: 2 > 1"),
    ({"ranges": {"f0": (2,)}}, "ranges of 'f0' must be (lowest, highest), None for an open end, got (2,)"),
    ({"ranges": [("f0", (0, 1))]}, "ranges must map features to values, got [('f0', (0, 1))]"),
    ({"ranges": {"f0": (0, 1), 0: (0, 2)}}, "ranges gives 'f0' twice, as (0, 1) and (0, 2)"),
    ({"max_step": {"f0": -1}}, "max_step of 'f0' must be a number >= 0, got -1"),
    ({"direction": {"f0": "left"}}, "direction of 'f0' must be 'up' or 'down', got 'left'"),
    ({"direction": {"f0": "up"}, "immutable": [0]}, "'f0' has a direction but may not change at all: it is immutable"),
    ({"direction": {"f0": "up"}, "groups": {"arm": [0, 1]}, "immutable": [1]}, "'f0' has a direction"),
    ({"groups": {"arm": [0, 1], "leg": [1, 2]}}, "'f1' is in two groups, 'arm' and 'leg'"),
    ({"groups": {"arm": "f0"}}, "groups['arm'] must be a list of features, got 'f0'"),
    ({"groups": [["f0", "f1"]]}, "groups must map names to lists of features, got [['f0', 'f1']]"),
    ({"max_features": 0}, "max_features must be a whole number >= 1, got 0"),
    ({"monotone": {0: "left"}}, "monotone of 'f0' must be 'up' or 'down', got 'left'"),
    ({"fixed_sum": [("f0",)]}, "fixed_sum needs at least two different features"),
    ({"fixed_sum": [("f0", "f1"), ("f1", "f2")]}, "a feature can be in one fixed_sum only"),
    ({"fixed_sum": "f0"}, "fixed_sum must be a list of tuples of features, got 'f0'"),
    ({"project": 3}, "project must be a function"),
    ({"frozen": {"f0": 3}}, "frozen of 'f0' must be a list of windows"),
]


@pytest.mark.parametrize(("constraints", "message"), PROBLEMS, ids=[m[:45] for _, m in PROBLEMS])
def test_each_problem(constraints, message):
    with pytest.raises(ConstraintError, match=f"1 problem in the constraints: .*{re.escape(message)}"):
        bind(**constraints)


def test_json_round_trip():
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
    more = {"max_features": 2, "integer": [1], "monotone": {"f0": "up"}, "fixed_sum": [("f0", "f1")]}
    whole = Constraints(immutable=[], frozen={"f0": [(0, None)]}, **more)
    assert Constraints.from_dict(whole.to_dict()) == whole
    with pytest.raises(ConstraintError, match="'halves' of the constraints cannot be stored"):
        Constraints.from_dict(Constraints(project=halves).to_dict())


def test_a_frozen_member_freezes_its_group_there():
    alone = bind(frozen={"f0": [(0, 2)]}, groups={"a": [0, 1]})
    assert alone.allowed.T.tolist() == [[False] * 2 + [True] * 4] * 2 + [[True] * 6]
    both = bind(groups={"a": [0, 1]}).combine(bind(frozen={"f2": [(4, None)]}, groups={"b": [1, 2]}))
    assert both.allowed.T.tolist() == [[True] * 4 + [False] * 2] * 3


def test_a_feature_that_is_frozen_throughout_is_an_active_constraint():
    """One pass on the GPU is for calls without frozen steps."""
    assert bind(frozen={"f0": [(None, None)]}).active_kinds() == ["frozen steps"]
    assert bind(frozen={"f0": [(0, 2)]}, immutable=["f0"]).active_kinds() == ["immutable features"]


def test_constant_features_are_left_alone_unless_they_are_named_with_others():
    X = np.random.default_rng(0).normal(size=(4, 5, 4)).astype(np.float32)
    X[..., 1], X[..., 2] = 3.0, 1e4 + 1e-3 * (X[..., 2] > 0)  # the second by the last bit of its values
    info = SeriesInfo.from_series(X, ("a", "b"))
    assert info.constant.tolist() == [False, True, True, False]
    assert Constraints().bind(info).editable.any(0).tolist() == [True, False, False, True]
    assert Constraints().bind(info).active_kinds() == []
    grouped = Constraints(groups={"g": [0, 1]}, fixed_sum=[(2, 3)]).bind(info)
    assert grouped.editable.all()
    assert Constraints().bind(SeriesInfo.from_series(X[..., 1:3], ("a", "b"))).editable.all()  # there is nothing else


def test_misspelt_constraints_are_named():
    with pytest.raises(ConstraintError, match=r"no constraint 'imutable'. Did you mean 'immutable'\? Known: immutable"):
        Constraints(imutable=[1])
    with pytest.raises(ConstraintError, match=r"constraints are given by name, got \['a'\]. Known: immutable"):
        Constraints(["a"])
    assert list(inspect.signature(Constraints).parameters)[:2] == ["immutable", "frozen"]


def test_features_of_zeros_and_ones_stay_such():
    training = TRAINING.copy()
    training[..., 1] = np.arange(18).reshape(3, 6) % 2
    bound = bind(training)
    assert bound.integer.tolist() == [False, True, False] and not bind(np.zeros((2, 6, 3))).integer.any()
    proposal = np.full((1, 6, 3), 0.7)
    proposal[0, 0], proposal[0, 1] = -3.0, 9.0
    assert bound.enforce(Series(ZERO), proposal)[0, :, 1].tolist() == [0, 1, 1, 1, 1, 1]


PROPOSED = [[2.0], [0.0], [0.0]]


@pytest.mark.parametrize(
    ("proposal", "given", "first"),
    [
        (PROPOSED, {"fixed_sum": [("f0", "f1")]}, [2, -2, 0]),
        ([[3.0], [1.0], [0.0]], {"fixed_sum": [(0, 1)]}, [1, -1, 0]),
        (PROPOSED, {"fixed_sum": [(0, 1, 2)]}, [2, -1, -1]),  # shared by the others
        (PROPOSED, {"fixed_sum": [(0, 1)], "immutable": [1]}, [0, 0, 0]),
        (PROPOSED, {"fixed_sum": [(0, 1)], "direction": {1: "up"}}, [0, 0, 0]),
        ([[9.0], [9.0], [1.0]], {"groups": {"both": ["f0", "f1"]}, "max_features": 1}, [0, 0, 1]),
        ([[9.0], [9.0], [1.0]], {"groups": {"both": ["f0", "f1"]}, "max_features": 2}, [9, 9, 0]),
    ],
    ids=str,
)
def test_sums_and_numbers_of_features(proposal, given, first):
    found = np.array(enforce(proposal, **given))
    assert found[:, 0].tolist() == first and not found[:, 1:].any()


def test_sums_are_kept_by_members_that_changed_and_in_whole_numbers():
    proposal = ZERO.copy()
    proposal[0, 0, 0] = 2.0
    assert not bind(fixed_sum=[(0, 1)]).enforce(Series(ZERO), proposal, complete=False).any(), "nothing more may change"
    counts = enforce([[2.6], [-1.2], [0.4]], integer=[0, 1, 2], fixed_sum=[(0, 1, 2)])
    at_first = [curve[0] for curve in counts]
    assert sum(at_first) == 0 and all(v == round(v) for v in at_first) and at_first[0] > 0


def test_the_features_that_change_most_are_kept():
    training = TRAINING * np.array([1.0, 1.0, 0.01])  # f2 has a hundredth of the range, so its changes count more
    proposal = np.zeros((1, 6, 3))
    proposal[0, :, 0], proposal[0, 0, 1], proposal[0, 0, 2] = 1.0, 4.0, 0.07
    for most, kept in ((1, [2]), (2, [0, 2]), (3, [0, 1, 2])):
        result = bind(training, max_features=most).enforce(Series(ZERO), proposal)
        assert np.flatnonzero((result != 0).any(1)[0]).tolist() == kept


def halves(counterfactuals, queries):
    """Set all steps to the first change."""
    return np.repeat(counterfactuals[:, :1], counterfactuals.shape[1], axis=1)


def _raise(*_):
    raise ValueError("no")


TWO = [[2.0, 3.0], [0.0], [0.0]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"project": halves}, [2] * 6),
        ({"project": halves, "direction": {0: "up"}}, [2] * 6),
        ({"project": lambda c, q: c - c - 1, "direction": {0: "up"}}, NONE),  # what it may not do is no answer
        ({"project": halves, "frozen": [(3, 4)]}, NONE),
    ],
)
def test_the_projection_comes_last(given, expected):
    assert enforce(TWO, **given) == [expected, NONE, NONE]


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (lambda c, q: c + 1, "the same when it is applied twice.*3 of 3 features"),
        (lambda c, q: c[:, :2], r"an array of shape \(1, 6, 3\), got \(1, 2, 3\)"),
        (lambda c, q: c * np.nan, "not finite"),
        (_raise, "project raised ValueError: no"),
        (lambda *_: sys.exit(3), "project raised SystemExit: 3"),
    ],
)
def test_projections_that_are_refused(project, message):
    with pytest.raises(ConstraintError, match=message):
        enforce(TWO, project=project)


X = np.random.default_rng(0).normal(0, 1, (12, 5, 4)).astype(np.float32)
INFO = SeriesInfo.from_series(X, ("a", "b"))


def both(first, second):
    return Constraints(**first).bind(INFO).combine(Constraints(**second).bind(INFO))


def test_conjunction():
    first = {"immutable": [0], "ranges": {1: (-1, 3)}, "max_step": {1: 0.5, 2: 1.0}, "direction": {1: "up"}}
    second = {"frozen": [(0, 2)], "ranges": {1: (-2, 2)}, "max_step": {2: 0.25}, "direction": {2: "down"}}
    for bound in (both(first, second), both(second, first)):
        assert bound.mutable.tolist() == [False, True, True, True]
        assert bound.editable.tolist() == [[False] * 4] * 2 + [[False, True, True, True]] * 3
        assert (bound.low[1], bound.high[1]) == (-1, 2)
        assert bound.max_step.tolist() == [np.inf, 0.5, 0.25, np.inf] and bound.direction.tolist() == [0, 1, -1, 0]


@pytest.mark.parametrize(
    ("first", "second"),
    [({"direction": {1: "up"}}, {"direction": {1: "down"}}), ({"ranges": {1: (0, 1)}}, {"ranges": {1: (2, 3)}})],
    ids=["up and down", "ranges without a common value"],
)
def test_contradictions_freeze_the_feature_and_its_group(first, second):
    assert both(first, second).mutable.tolist() == [True, False, True, True]
    for one, other in (([1, 2], [2, 3]), ([2, 3], [1, 2])):
        grouped = both(first | {"groups": {"pair": one}}, second | {"groups": {"pair": other}})
        assert grouped.mutable.tolist() == [True, False, False, False]  # through the shared member of both groups
        result = grouped.enforce(Series(X), X + 0.5)
        assert (result[..., 1:] == X[..., 1:]).all() and (result[..., 0] != X[..., 0]).all()
