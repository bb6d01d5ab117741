"""Conjunction of the constraints of fit and of explain: what either forbids is forbidden."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.errors import ConstraintError
from sparcets.core.info import SeriesInfo
from sparcets.testing.mocks import Scripted, mean_proba

X = np.random.default_rng(0).normal(0, 1, (12, 5, 4)).astype(np.float32)
INFO = SeriesInfo.from_series(X, ("a", "b"))


def both(first, second):
    return sp.Constraints(**first).bind(INFO).combine(sp.Constraints(**second).bind(INFO))


def test_by_hand():
    first = {"immutable": [0], "ranges": {1: (-1, 3)}, "max_step": {1: 0.5, 2: 1.0}, "direction": {1: "up"}}
    second = {"frozen": [(0, 2)], "ranges": {1: (-2, 2)}, "max_step": {2: 0.25}, "direction": {2: "down"}}
    for bound in (both(first, second), both(second, first)):
        assert bound.mutable.tolist() == [False, True, True, True]
        assert bound.editable.tolist() == [[False] * 4] * 2 + [[False, True, True, True]] * 3
        assert (bound.low[1], bound.high[1]) == (-1, 2)
        assert bound.limit.tolist() == [np.inf, 0.5, 0.25, np.inf]
        assert bound.sign.tolist() == [0, 1, -1, 0]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"direction": {1: "up"}}, {"direction": {1: "down"}}),
        ({"ranges": {1: (0, 1)}}, {"ranges": {1: (2, 3)}}),
    ],
    ids=["up and down", "ranges without a common value"],
)
def test_contradictions_freeze_the_feature_and_its_group(first, second):
    assert both(first, second).mutable.tolist() == [True, False, True, True]
    for one, other in (([1, 2], [2, 3]), ([2, 3], [1, 2])):
        grouped = both(first | {"groups": {"pair": one}}, second | {"groups": {"pair": other}})
        assert grouped.mutable.tolist() == [True, False, False, False]  # through the shared member of both groups
        result = grouped.enforce(X, X + 0.5)
        assert (result[..., 1:] == X[..., 1:]).all() and (result[..., 0] != X[..., 0]).all()


def test_ranges_that_share_one_value():
    bound = both({"ranges": {1: (0, 1)}}, {"ranges": {1: (1, 3)}})
    assert bound.mutable[1] and (bound.low[1], bound.high[1]) == (1, 1)


def test_contradiction_in_all_features():
    y = np.arange(12) % 3
    ex = Scripted(sp.wrap(mean_proba, n_classes=3))
    ex.fit(X, y, constraints=sp.Constraints(ranges=dict.fromkeys(range(4), (0, 1))))
    with pytest.raises(ConstraintError, match="leave nothing that may change; loosen one"):
        ex.explain(X, target=1, constraints=sp.Constraints(ranges=dict.fromkeys(range(4), (2, 3))))
