"""The input of a method: options of a call, the number of entries that count, proposals within the limits."""

import numpy as np
import pytest

import sparcets as sp
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.request import CallOptions, Request

TRAIN = np.array([[[0.0, 0.0], [1.0, 10.0], [0.5, 5.0]], [[0.0, 0.0], [1.0, 10.0], [0.0, 0.0]]])
MODEL = sp.wrap(lambda X: np.full((len(X), 2), 0.5), n_classes=2)
INFO = SeriesInfo.from_series(TRAIN, ("a", "b"))  # the second feature has ten times the spread of the first


def request(X, *, constraints=None, at_most=None, lengths=None):
    bound = (constraints or sp.Constraints()).bind(INFO)
    at_most = None if at_most is None else np.array(at_most)
    lengths = None if lengths is None else np.array(lengths)
    target = np.ones(len(X), dtype=np.int64)
    known = {"target": target, "classifier": MODEL, "constraints": bound, "at_most": at_most}
    return Request(series=Series(X, lengths), n=1, info=INFO, **known)


ZEROS = np.zeros((2, 3, 2))


@pytest.mark.parametrize(
    ("constraints", "free"),
    [
        (sp.Constraints(frozen=[(0, 1)]), [4, 0]),
        (sp.Constraints(frozen=[(None, 2), (1, 2)]), [2, 0]),
        (sp.Constraints(frozen=[(1, None)]), [2, 2]),
        (sp.Constraints(frozen={0: [(1, 3)]}), [4, 2]),
        (sp.Constraints(frozen={0: [(1, None)]}, groups={"both": [0, 1]}), [2, 2]),
        (sp.Constraints(frozen={0: [(0, 1)]}, immutable=[0]), [3, 1]),
        (sp.Constraints(direction={0: "up"}, ranges={1: (0, 1)}, max_step={0: 0.1}, max_features=1), [6, 2]),
    ],
)
def test_frozen_steps_are_not_free(constraints, free):
    """The second query has one step."""
    assert request(ZEROS).n_free().tolist() == [6, 6]
    assert request(ZEROS, constraints=constraints, lengths=[3, 1]).n_free().tolist() == free


def test_a_cap_is_a_share_of_what_may_change_also_by_rounding():
    standing = CallOptions.of_fit(sp.Constraints(frozen={1: [(0, 1)]}), INFO, MODEL)
    half = {"sparsity": 0.5, "n": 1}
    groups = sp.Constraints(frozen={0: [(2, 3)]}, groups={"both": [0, 1]})  # with the window of the fit, step 1 is left
    for constraints, at_most in ((None, 2), (sp.Constraints(frozen=[(1, 2)]), 1), (groups, 1)):
        options = standing.for_call(constraints, **half)
        assert options.request(Series(ZEROS[:1]), np.ones(1, dtype=np.int64)).at_most.tolist() == [at_most]
    X = np.zeros((3, 7, 7)) + np.arange(3)[:, None, None]
    options = CallOptions.of_fit(sp.Constraints(), SeriesInfo.from_series(X, ("a", "b")), MODEL)
    assert 49 * (1 / 49) < 1
    capped = options.for_call(sparsity=1 / 49).request(Series(X[:1]), np.ones(1, dtype=np.int64))
    assert capped.at_most.tolist() == [1]


def test_a_cap_keeps_the_largest_changes_that_the_constraints_leave():
    proposal = np.array([[[2.0, 9.0], [0.0, 0.0], [1.0, 0.0]]])
    admitted = request(ZEROS[:1], at_most=[1]).apply_limits(proposal)
    assert admitted.tolist() == [[[2, 0], [0, 0], [0, 0]]]  # 2 of the first outweighs 9 of the second
    assert request(ZEROS[:1], at_most=[2]).apply_limits(proposal).tolist() == [[[2, 0], [0, 0], [1, 0]]]
    np.testing.assert_array_equal(request(ZEROS[:1], at_most=[0]).apply_limits(proposal), 0)
    proposal = np.array([[[9.0, 9.0], [0.0, 8.0], [0.0, 0.0]]])
    fixed = sp.Constraints(immutable=[0])
    limited = request(ZEROS[:1], constraints=fixed, at_most=[2])
    assert limited.apply_limits(proposal).tolist() == [[[0, 9], [0, 8], [0, 0]]]


def test_rows_say_whose_proposals_they_are():
    X = np.stack([ZEROS[0], ZEROS[0] + 100])
    limited = request(X, at_most=[6, 1], lengths=[3, 2])
    admitted = limited.apply_limits(np.full((1, 3, 2), 200.0), np.array([1]))
    assert admitted.tolist() == [[[200, 100], [100, 100], [100, 100]]]  # the second query's cap, length and values


def test_options_of_a_call_add_to_those_of_the_fit_and_leave_them_as_they_are():
    standing, given = sp.Constraints(immutable=[0]), sp.Constraints(frozen=[(0, 1)])
    plain = CallOptions.of_fit(standing, INFO, MODEL)
    call = plain.for_call(given, sparsity=0.5, n=np.int64(3))
    assert plain.constraints.editable.tolist() == [[False, True]] * 3
    assert call.constraints.editable.tolist() == [[False, False], [False, True], [False, True]]
    assert call.constraints_given == {"fit": standing.to_dict(), "explain": given.to_dict()}
    assert plain.constraints_given == {"fit": standing.to_dict(), "explain": sp.Constraints().to_dict()}
    assert (call.sparsity, call.n, type(call.n)) == (0.5, 3, int) and (plain.sparsity, plain.n) == (None, 1)


def test_under_a_cap_the_function_of_the_user_is_applied_once_and_last():
    seen = []

    def halved(made, query):
        seen.append((made != query).sum())
        return np.minimum(made, 4.0)

    proposal = np.array([[[5.0, 60.0], [9.0, 0.0], [0.0, 0.0]]])
    limits = sp.Constraints(project=halved)
    admitted = request(ZEROS[:1], constraints=limits, at_most=[2]).apply_limits(proposal)
    assert admitted.tolist() == [[[0, 4], [4, 0], [0, 0]]]
    assert seen == [2, 2]  # the second time to see that it changes nothing more
