"""Whole numbers, monotone stretches, fixed sums, few features, and the user's own projection, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparcets.core.constraints import Constraints
from sparcets.core.enforcement import BoundConstraints
from sparcets.core.errors import ConstraintError
from sparcets.core.info import SeriesInfo

TRAINING = np.zeros((3, 4, 3))
TRAINING[1], TRAINING[2] = 10.0, 5.0
QUERY = np.zeros((1, 4, 3))


def bind(training: Any = TRAINING, **constraints: Any) -> BoundConstraints:
    return Constraints(**constraints).bind(SeriesInfo.from_series(training, ("sick", "well")))


def enforce(proposal: Any, query: Any = QUERY, **constraints: Any) -> list[list[float]]:
    """Return the features of the result, one list each."""
    result = bind(**constraints).enforce(np.asarray(query), np.transpose(proposal, (1, 0))[None])
    return [curve.tolist() for curve in result[0].T]


NONE = [0.0] * 4


def test_changed_entries_are_rounded() -> None:
    proposal = [[0.4, 0.6, -1.5, 7.0], [0.4, 0.6, -1.5, 7.0], NONE]
    assert enforce(proposal, integer=["f0"]) == [[0, 1, -2, 7], [0.4, 0.6, -1.5, 7], NONE]
    assert enforce(proposal, integer=[0], ranges={0: (-0.5, 5.5)})[0] == [0, 1, 0, 5], "rounded within the range"


def test_a_whole_number_that_breaks_a_step_limit_is_reset() -> None:
    assert enforce([[0.9, 0.9, 0.9, 0.9], NONE, NONE], integer=[0], max_step={0: 0.5})[0] == [1, 1, 1, 1]
    assert enforce([[0.0, 0.9, 0.0, 0.0], NONE, NONE], integer=[0], max_step={0: 0.5})[0] == NONE


def test_features_of_zeros_and_ones_stay_such() -> None:
    training = TRAINING.copy()
    training[..., 1] = np.arange(12).reshape(3, 4) % 2
    bound = bind(training)
    assert bound.integer.tolist() == [False, True, False]
    proposal = np.full((1, 4, 3), 0.7)
    proposal[0, 0], proposal[0, 1] = -3.0, 9.0
    assert bound.enforce(QUERY, proposal)[0, :, 1].tolist() == [0, 1, 1, 1]


def test_constant_features_of_zeros_are_not_binary() -> None:
    assert not bind(np.zeros((2, 4, 3))).integer.any()


def test_stretches_of_changes_go_one_way() -> None:
    proposal = [[1.0, 3.0, 2.0, 0.0], [4.0, 2.0, 3.0, 1.0], NONE]
    assert enforce(proposal, monotone={"f0": "up", "f1": "down"})[:2] == [[1, 2.5, 2.5, 0], [4, 2.5, 2.5, 1]]


def test_two_stretches_are_separate() -> None:
    assert enforce([[5.0, 0.0, 1.0, 2.0], NONE, NONE], monotone={"f0": "up"})[0] == [5, 0, 1, 2]


def test_a_sum_stays_by_the_opposite_change() -> None:
    assert enforce([[2.0, 0, 0, 0], NONE, NONE], fixed_sum=[("f0", "f1")]) == [[2, 0, 0, 0], [-2, 0, 0, 0], NONE]
    assert enforce([[3.0, 0, 0, 0], [1.0, 0, 0, 0], NONE], fixed_sum=[(0, 1)])[:2] == [[1, 0, 0, 0], [-1, 0, 0, 0]]
    assert enforce([[2.0, 0, 0, 0], NONE, NONE], fixed_sum=[(0, 1, 2)])[1][0] == -1, "shared by the others"


def test_a_sum_that_cannot_stay_is_no_change() -> None:
    proposal = [[2.0, 0, 0, 0], NONE, NONE]
    assert enforce(proposal, fixed_sum=[(0, 1)], immutable=[1])[0] == NONE
    assert enforce(proposal, fixed_sum=[(0, 1)], direction={1: "up"})[0] == NONE
    bound = bind(fixed_sum=[(0, 1)])
    assert not bound.enforce(QUERY, np.transpose(proposal)[None], complete=False).any(), "nothing more may change"


def test_whole_numbers_with_a_fixed_sum() -> None:
    counts = enforce([[2.6, 0, 0, 0], [-1.2, 0, 0, 0], [0.4, 0, 0, 0]], integer=[0, 1, 2], fixed_sum=[(0, 1, 2)])
    at_first = [curve[0] for curve in counts]
    assert sum(at_first) == 0 and all(v == round(v) for v in at_first) and at_first[0] > 0


def test_the_features_that_change_most_are_kept() -> None:
    training = TRAINING * np.array([1.0, 1.0, 0.01])  # f2 has a hundredth of the range, so its changes count more
    proposal = np.zeros((1, 4, 3))
    proposal[0, :, 0], proposal[0, 0, 1], proposal[0, 0, 2] = 1.0, 3.0, 0.05
    for most, kept in ((1, [2]), (2, [0, 2]), (3, [0, 1, 2])):
        result = bind(training, max_features=most).enforce(QUERY, proposal)
        assert np.flatnonzero((result != 0).any(1)[0]).tolist() == kept


def test_groups_count_with_all_their_features() -> None:
    proposal = [[9.0, 0, 0, 0], [9.0, 0, 0, 0], [1.0, 0, 0, 0]]
    groups = {"both": ["f0", "f1"]}
    assert enforce(proposal, groups=groups, max_features=1) == [NONE, NONE, [1, 0, 0, 0]]
    assert enforce(proposal, groups=groups, max_features=2) == [[9, 0, 0, 0], [9, 0, 0, 0], NONE]


def halves(counterfactuals: Any, queries: Any) -> Any:
    """Set all steps to the first change."""
    return np.repeat(counterfactuals[:, :1], counterfactuals.shape[1], axis=1)


def test_the_projection_comes_last() -> None:
    assert enforce([[2.0, 3.0, 0, 0], NONE, NONE], project=halves)[0] == [2, 2, 2, 2]


def test_what_a_projection_may_not_do_is_no_answer() -> None:
    assert enforce([[2.0, 3.0, 0, 0], NONE, NONE], project=halves, direction={0: "up"}) == [[2] * 4, NONE, NONE]
    assert enforce([[2.0, 3.0, 0, 0], NONE, NONE], project=lambda c, q: c - c - 1, direction={0: "up"}) == [NONE] * 3


def test_a_projection_that_changes_what_is_frozen_is_no_answer() -> None:
    assert enforce([[2.0, 3.0, 0, 0], NONE, NONE], project=halves, frozen=[(3, 4)]) == [NONE] * 3


def _raise(*_: Any) -> Any:
    raise ValueError("no")


def _exit(*_: Any) -> Any:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (lambda c, q: c + 1, "the same when it is applied twice.*3 of 3 features"),
        (lambda c, q: c[:, :2], r"an array of shape \(1, 4, 3\), got \(1, 2, 3\)"),
        (lambda c, q: c * np.nan, "not finite"),
        (_raise, "project raised ValueError: no"),
        (_exit, "project raised SystemExit: 3"),
    ],
)
def test_projections_that_are_refused(project: Any, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        enforce([[2.0, 3.0, 0, 0], NONE, NONE], project=project)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"max_features": 0}, "max_features must be a whole number >= 1, got 0"),
        ({"max_features": True}, "max_features must be a whole number >= 1, got True"),
        ({"integer": ["g"]}, "integer: .*g"),
        ({"monotone": {0: "left"}}, "monotone of 'f0' must be 'up' or 'down', got 'left'"),
        ({"fixed_sum": [("f0",)]}, "at least two different features"),
        ({"fixed_sum": [("f0", "f1"), ("f1", "f2")]}, "in one fixed_sum only"),
        ({"fixed_sum": "f0"}, "a list of tuples of features, got 'f0'"),
        ({"project": 3}, "project must be a function"),
        ({"frozen": {"f0": [(0, 9)]}}, r"frozen window \(0, 9\)"),
        ({"frozen": {"f0": 3}}, "frozen of 'f0' must be a list of windows"),
    ],
)
def test_problems(constraints: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        bind(**constraints)


def test_windows_of_one_feature_and_open_ends() -> None:
    proposal = [[1.0] * 4] * 3
    found = enforce(proposal, frozen={"f0": [(None, 1)], 1: [(2, None), (0, 1)]})
    assert found == [[0, 1, 1, 1], [0, 1, 0, 0], [1, 1, 1, 1]]


def test_json_round_trip() -> None:
    given = Constraints(
        immutable=[],
        frozen={"f0": [(0, None)]},
        max_features=2,
        integer=[1],
        monotone={"f0": "up"},
        fixed_sum=[("f0", "f1")],
    )
    assert Constraints.from_dict(given.to_dict()) == given
    stored = Constraints(project=halves).to_dict()
    assert stored["project"] == "halves"
    with pytest.raises(ConstraintError, match="'halves' of the constraints cannot be stored"):
        Constraints.from_dict(stored)
