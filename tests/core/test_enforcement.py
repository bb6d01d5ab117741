"""Enforced series satisfy every constraint exactly: properties over random series and constraints."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sparcets.core.constraints import Constraints
from sparcets.core.enforcement import keep_largest
from sparcets.core.errors import ConstraintError
from sparcets.core.info import SeriesInfo
from sparcets.core.series import Series
from tests.obeyed import broken_constraints

FAST = settings(max_examples=250, deadline=None)


def bind(n_steps, span, **constraints):
    """Bind constraints to series of features f0, f1, … whose training values range over ``span``."""
    span = np.asarray(span, dtype=np.float64)
    X = np.zeros((3, n_steps, len(span)))
    X[1], X[2] = span, 0.5 * span
    return Constraints(**constraints).bind(SeriesInfo.from_series(X, ("a", "b")))


TOWARDS_QUERY = ["immutable", "frozen", "ranges", "max_step", "direction", "groups", "max_features"]
KINDS = [*TOWARDS_QUERY, "integer", "monotone", "fixed_sum"]
DRAWN = {
    "seed": st.integers(0, 2**32 - 1),
    "dtype": st.sampled_from([np.float32, np.float64]),
    "shape": st.tuples(st.integers(1, 3), st.integers(1, 20), st.integers(1, 4)),
    "unit": st.sampled_from([1e-30, 1e-3, 1.0, 1e5, 1e30]),
}


def random_constraints(rng, kinds, n_steps, n_features, unit):
    """Return random constraints of some kinds."""

    def some():
        return [f"f{i}" for i in range(n_features) if rng.random() < 0.6]

    lowest, highest = [-np.inf, -1.0, -0.1, 0.5], [0.5, 0.7, 1.5, np.inf]
    start = int(rng.integers(0, n_steps))
    window = (None if start == 0 else start, [int(rng.integers(start, n_steps)) + 1, None][rng.integers(2)])
    pair = [f"f{i}" for i in rng.permutation(n_features)[:3]]
    everything = {
        "immutable": some()[:1],
        "frozen": [window] if rng.random() < 0.5 else {f: [window] for f in some()},
        "ranges": {f: (rng.choice(lowest) * unit, rng.choice(highest) * unit) for f in some()},
        "max_step": {f: rng.choice([0.0, 0.1, 0.25, 1.0]) * unit for f in some()},
        "direction": {f: str(rng.choice(["up", "down"])) for f in some()},
        "groups": {"one": some()},
        "max_features": int(rng.integers(1, 4)),
        "integer": some(),
        "monotone": {f: str(rng.choice(["up", "down"])) for f in some()},
        "fixed_sum": [pair] if len(pair) > 1 else [],
    }
    nothing = vars(Constraints())
    return {kind: value if kind in kinds else nothing[kind] for kind, value in everything.items()}


@st.composite
def cases(draw, of=KINDS):
    """Draw query, proposal, lengths, the spans of the features, the constraints, and the bound constraints."""
    seed, dtype, shape, unit = (draw(s) for s in DRAWN.values())
    kinds = draw(st.sets(st.sampled_from(of)))
    rng = np.random.default_rng(seed)
    B, T, F = shape
    # Coarse values equal the limits and each other; fine ones exercise rounding; a walk often satisfies the limits.
    coarse, fine = rng.integers(-8, 9, (2, *shape)) / 4, rng.normal(size=(2, *shape))
    walk = 0.1 * fine.cumsum(2)
    query = ((coarse, fine, walk)[rng.integers(3)][0] * unit).astype(dtype)
    changes = [np.zeros(shape), coarse[1], fine[1], walk[1], np.full(shape, 0.7), np.full(shape, 1e-7)]
    change = rng.integers(0, len(changes), shape if rng.random() < 0.5 else (B, 1, F))
    proposal = (query + unit * np.choose(change, changes)).astype(dtype)
    if rng.random() < 0.3:
        proposal = np.where(rng.random(shape) < 0.3, np.nextafter(query, dtype(np.inf)), proposal)
    lengths = rng.integers(1, T + 1, B) if rng.random() < 0.3 else None
    span = rng.choice([0.0, 1.0, 1e3], F) * unit
    constraints = random_constraints(rng, kinds, T, F, unit)
    try:
        bound = bind(T, span, **constraints)
    except ConstraintError:  # nothing may change, or an immutable feature has a direction
        assume(False)
    return query, proposal, lengths, span, constraints, bound


def assert_holds(query, result, lengths, span, constraints):
    """Check each constraint from its definition, and that no change is negligible."""
    known = {"names": [f"f{i}" for i in range(query.shape[2])], "span": span, "lengths": lengths}
    broken = broken_constraints([Constraints(**constraints)], query, result, **known)
    assert [what for what, rows in broken.items() if rows.any()] == []
    size, smallest = np.abs(result.astype(np.float64) - query), np.broadcast_to(1e-6 * span, query.shape)
    assert (size >= smallest)[result != query].all(), "negligible"


@FAST
@given(cases())
def test_every_constraint_holds_exactly(case):
    query, proposal, lengths, span, constraints, bound = case
    before = query.copy(), proposal.copy()
    result = bound.enforce(Series(query, lengths), proposal)
    assert np.array_equal(query, before[0]) and np.array_equal(proposal, before[1]), "inputs are left alone"
    assert result.dtype == query.dtype and np.isfinite(result).all()
    assert_holds(query, result, lengths, span, constraints)
    assert bound.enforce(Series(query, lengths), result).tobytes() == result.tobytes(), "a second time changes nothing"
    for i in range(len(query)):
        one = slice(i, i + 1)
        alone = bound.enforce(Series(query, lengths)[one], proposal[one])
        assert alone.tobytes() == result[one].tobytes(), "series are independent"


@FAST
@given(cases(TOWARDS_QUERY))
def test_result_lies_between_query_and_proposal(case):
    query, proposal, lengths, _, _, bound = case
    result = bound.enforce(Series(query, lengths), proposal)
    unchanged = result == query
    assert (unchanged | (proposal != query)).all(), "an entry was changed that the proposal left alone"
    assert result[unchanged].tobytes() == query[unchanged].tobytes(), "unchanged entries are the query's own bits"
    within = (bound.low <= proposal) & (proposal <= bound.high)
    least, most = np.minimum(query, proposal), np.maximum(query, proposal)
    assert ((least <= result) & (result <= most))[within].all()


@FAST
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.05, 0.3]))
def test_step_limit_is_optimal(seed, limit):
    """For upward proposals the optimum is known: at each step the nearest bound, max(query, min(x_s + path))."""
    rng = np.random.default_rng(seed)
    query = rng.normal(0, 0.2, (1, 8, 1)).cumsum(1)
    proposal = query + rng.choice([0.0, 0.3, 2.0], query.shape)
    own = np.maximum(limit, np.abs(np.diff(query[0, :, 0])))
    path = np.r_[0, np.cumsum(own)]  # the largest change from step s to step t is |path[t] - path[s]|
    reach = proposal[0, :, 0] + np.abs(path[:, None] - path)
    best = np.maximum(query[0, :, 0], reach.min(1))
    result = bind(8, [1.0], max_step={0: limit}).enforce(Series(query), proposal)
    np.testing.assert_allclose(result[0, :, 0], best, atol=1.1e-6)  # changes below 1e-6 of the span are reset


def test_proposal_within_the_limit_after_rounding_is_unchanged():
    query, proposal = np.array([[[-2.0], [-1.0]]]), np.array([[[-1.0], [1e-17]]])
    assert proposal[0, 1, 0] - proposal[0, 0, 0] == 1.0  # in float64, though the sum -1 + 1 is 0
    assert bind(2, [0.0], max_step={0: 1.0}).enforce(Series(query), proposal).tobytes() == proposal.tobytes()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_non_finite_proposals_are_ignored(bad):
    query = np.zeros((1, 3, 1), dtype=np.float32)
    proposal = np.array([[[1.0], [bad], [2.0]]])
    assert bind(3, [1.0]).enforce(Series(query), proposal).ravel().tolist() == [1.0, 0.0, 2.0]


def test_negative_zero_is_no_change_and_bounds_are_rounded_inwards():
    query = np.array([[[0.0], [-0.0], [3.0]]])
    bound = bind(3, [0.0], ranges={0: (-0.0, 5)}, max_step={0: 5.0})
    result = bound.enforce(Series(query), np.array([[[-1.0], [-1.0], [9.0]]]))
    assert np.signbit(result).ravel().tolist() == [False, True, False] and result[0, 2, 0] == 5.0
    query = np.full((1, 1, 2), 0.5, dtype=np.float32)
    low, high = 0.7, 0.3  # 0.7 lies between two float32 numbers, and so does 0.3
    bound = bind(1, [1.0, 1.0], ranges={0: (low, 2.0), 1: (-2.0, high)})
    result = bound.enforce(Series(query), np.array([[[0.6, 0.4]]], dtype=np.float32)).astype(np.float64)
    assert low <= result[0, 0, 0] < low + 1e-7 and high - 1e-7 < result[0, 0, 1] <= high
    only = bind(1, [1.0], ranges={0: (0.1, 0.1)})  # no float32 number is 0.1
    assert only.enforce(Series(query[..., :1]), query[..., :1] + 1).item() == 0.5
    assert bind(1, [1.0], ranges={0: (1e39, 1e40)}).enforce(Series(query[..., :1]), query[..., :1] + 1).item() == 0.5


@FAST
@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_keep_largest_keeps_the_largest(seed, at_most):
    rng = np.random.default_rng(seed)
    query, scale = rng.normal(size=(2, 5, 3)), np.array([1.0, 10.0, 0.1])
    proposal = np.where(rng.random(query.shape) < 0.6, query + rng.normal(size=query.shape), query)
    result = keep_largest(query, proposal, at_most=np.array([at_most, 4]), scale=scale)
    size = np.abs(proposal - query) / scale
    for i, most in enumerate([at_most, 4]):
        kept = result[i] != query[i]
        assert kept.sum() == min(most, (proposal[i] != query[i]).sum())
        assert np.array_equal(result[i][kept], proposal[i][kept])
        assert not kept.any() or size[i][~kept].max(initial=0) <= size[i][kept].min()
