"""Coordinates: series come back from them, and whatever is done to them breaks no law."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.edits import Coordinates, Limb, bend_of

SEEDS = st.integers(0, 100_000)


def chain(n_points, size):
    """Return limbs from each of some points, of 2 or 3 coordinates, to the next."""
    at = [tuple(range(i * size, (i + 1) * size)) for i in range(n_points)]
    return tuple(Limb(start=start, end=end) for start, end in zip(at[:-1], at[1:], strict=True))


def limbs_of(size, *, bend=None):
    limbs = tuple(replace(limb, bend=bend) for limb in chain(4, size))
    return Coordinates(tolerance=np.full(4 * size, 1e-9), limbs=limbs)


def lengths(series, limbs):
    ways = [series[..., list(limb.end)] - series[..., list(limb.start)] for limb in limbs]
    return np.stack([np.linalg.norm(way, axis=-1) for way in ways])


def angles(series, limbs):
    ways = [series[..., list(limb.end)] - series[..., list(limb.start)] for limb in limbs]
    units = [way / np.linalg.norm(way, axis=-1, keepdims=True) for way in ways]
    return np.stack([bend_of(one, other) for one, other in zip(units[:-1], units[1:], strict=True)])


LAWS = {
    "none": Coordinates(tolerance=np.full(8, 1e-6)),
    "limbs": limbs_of(2),
    "joints": limbs_of(2, bend=(-0.2, 0.2)),
    "identities": Coordinates(tolerance=np.full(8, 1e-6), dependent=(2,), weights=np.array([[1.0, -2, *[0] * 6]])),
    "orders and whole numbers": Coordinates(tolerance=np.full(8, 1e-6), orders=((0, 1), (1, 2)), whole=(5,)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_does_not_change_keeps_its_bits(name, dtype):
    """Also of queries that break a law themselves, and of their gaps."""
    query = np.random.default_rng(0).normal(size=(5, 20, 8)).astype(dtype)
    query[0, 3, 2] = np.nan
    made = LAWS[name].to_series(LAWS[name].to_coordinates(query), query)
    assert made.dtype == dtype and made.tobytes() == query.tobytes()


# Limbs and joints.


@given(SEEDS, st.sampled_from([2, 3]))
def test_limbs_keep_their_lengths_under_any_change(seed, size):
    rng, coordinates = np.random.default_rng(seed), limbs_of(size)
    query = rng.normal(size=(6, 4 * size))
    query[0, size : 2 * size] = query[0, :size]  # of length 0
    changed = coordinates.to_coordinates(query) + rng.normal(size=query.shape) * rng.integers(0, 2, query.shape)
    made = coordinates.to_series(changed, query)
    np.testing.assert_allclose(lengths(made, coordinates.limbs), lengths(query, coordinates.limbs), atol=1e-6)
    assert (made[:, :size] == changed[:, :size]).all()  # the trunk goes where it is told to


def test_a_limb_carries_what_is_attached_to_it():
    coordinates = limbs_of(2)
    query = np.array([[0.0, 0, 1, 0, 2, 0, 3, 0]])
    moved = coordinates.to_coordinates(query)
    moved[0, :2] += [5, 7]
    np.testing.assert_allclose(coordinates.to_series(moved, query), query + [5, 7] * 4)
    turned = coordinates.to_coordinates(query)
    turned[0, 2:4] = [0, 10]  # upwards; how long the vector is does not matter
    np.testing.assert_allclose(coordinates.to_series(turned, query), [[0, 0, 0, 1, 1, 1, 2, 1]], atol=1e-9)
    assert coordinates.moved_by([3]) == (2, 3, 4, 5, 6, 7) and coordinates.moved_by([7]) == (6, 7)


@given(SEEDS, st.sampled_from([2, 3]))
def test_joints_stay_within_their_limits_or_that_of_the_query(seed, size):
    bend = (-0.5, 0.4) if size == 2 else (0.1, 0.8)
    rng, coordinates = np.random.default_rng(seed), limbs_of(size, bend=bend)
    query = rng.normal(size=(6, 4 * size))
    made = coordinates.to_series(coordinates.to_coordinates(query) + rng.normal(size=query.shape), query)
    own, angle = angles(query, coordinates.limbs), angles(made, coordinates.limbs)
    assert (angle >= np.minimum(bend[0], own) - 1e-6).all() and (angle <= np.maximum(bend[1], own) + 1e-6).all()
    np.testing.assert_allclose(lengths(made, coordinates.limbs), lengths(query, coordinates.limbs), atol=1e-6)


def test_a_joint_is_turned_back_by_hand():
    upper, lower = chain(3, 2)
    arm = Coordinates(tolerance=np.zeros(6), limbs=(upper, replace(lower, bend=(-np.pi / 6, np.pi / 2))))
    query = np.array([[0.0, 0, 1, 0, 2, 0]])
    made = []
    for direction in ([0, -1], [0, 1], [-1, 1]):
        bent = arm.to_coordinates(query)
        bent[0, 4:] = direction
        made.append(arm.to_series(bent, query)[0, 4:])
    np.testing.assert_allclose(made, [[1 + np.sqrt(0.75), -0.5], [1, 1], [1, 1]], atol=1e-9)


# Other laws.

GAIT = Coordinates(tolerance=np.full(4, 1e-9), dependent=(0, 3), weights=np.array([[0.0, 1, 1, 0], [0.0, 2, 0, 0]]))


@given(SEEDS)
def test_dependent_features_follow(seed):
    rng = np.random.default_rng(seed)
    query = rng.normal(size=(7, 4))  # by how much a query misses the law does not matter
    changed = GAIT.to_coordinates(query) + rng.normal(size=query.shape)
    made = GAIT.to_series(changed, query)
    change = made - query
    np.testing.assert_allclose(change[:, 0], change[:, 1] + change[:, 2], atol=1e-12)
    np.testing.assert_allclose(change[:, 3], 2 * change[:, 1], atol=1e-12)
    np.testing.assert_array_equal(made[:, 1:3], changed[:, 1:3])


def test_of_two_that_cross_the_one_that_moves_gives_way():
    coordinates = Coordinates(tolerance=np.zeros(2), orders=((0, 1),))
    query = np.array([[1.0, 2.0]])
    assert coordinates.to_series(np.array([[3.0, 2.0]]), query).tolist() == [[2.0, 2.0]]
    assert coordinates.to_series(np.array([[1.0, 0.0]]), query).tolist() == [[1.0, 1.0]]


@given(SEEDS)
def test_orders_of_three_features_hold_together(seed):
    """Diastolic, mean and systolic pressure, whatever is done to them."""
    rng = np.random.default_rng(seed)
    at = rng.permutation(3)  # in any order of the columns
    orders = ((int(at[0]), int(at[1])), (int(at[1]), int(at[2])))
    coordinates = Coordinates(tolerance=np.full(3, 1e-9), orders=tuple(sorted(orders)))
    query = np.sort(rng.normal(size=(20, 3)), axis=1)[:, at.argsort()]
    change = rng.normal(size=query.shape) * rng.integers(0, 2, query.shape)  # of some of the three
    made = coordinates.to_series(query + change, query)
    assert (np.diff(made[:, at], axis=1) >= 0).all() and (made == query)[change == 0].all()


def test_whole_numbers():
    coordinates = Coordinates(tolerance=np.full(2, 1e-9), whole=(0,))
    query = np.array([[1.0, 1.0], [2.5, 1.0], [3.0, 1.0]])
    made = coordinates.to_series(query + np.array([[0.7, 0.7], [0.0, 0.5], [0.2, 0.0]]), query)
    assert made.tolist() == [[2.0, 1.7], [2.5, 1.5], [3.0, 1.0]]


# Where less may change, and stored.


def test_what_may_not_change_neither_turns_nor_follows():
    mutable = np.ones(8, dtype=bool)
    mutable[5] = False
    within = limbs_of(2).restrict_to(mutable)
    assert [limb.end for limb in within.limbs] == [(2, 3), (6, 7)]
    query = np.random.default_rng(0).normal(size=(3, 8))
    assert (within.to_series(within.to_coordinates(query) + mutable, query)[:, 5] == query[:, 5]).all()
    fixed = GAIT.restrict_to(np.array([False, True, True, True]))
    assert fixed.dependent == (3,) and fixed.weights.tolist() == [[0, 2, 0, 0]]
    ordered = Coordinates(tolerance=np.zeros(3), orders=((0, 1), (1, 2)))
    assert ordered.restrict_to(np.array([False, False, True])).orders == ((1, 2),)


def test_an_identity_is_solved_for_a_feature_that_may_change():
    weights = np.array([[1.0, 2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 1.0, 0.0]])  # f2 = f0 + 2 f1, f4 = f1 + f3
    coordinates = Coordinates(tolerance=np.zeros(5), dependent=(2, 4), weights=weights)
    mutable = np.array([True, True, False, True, True])
    solved = coordinates.solve_for(mutable)
    assert solved.dependent == (1, 4)
    query = np.array([[1.0, 2.0, 5.0, 3.0, 5.0]])
    made = solved.to_coordinates(query)
    made[0, [0, 3]] = 3.0, 7.0
    assert solved.restrict_to(mutable).to_series(made, query).tolist() == [[3.0, 1.0, 5.0, 7.0, 8.0]]
    assert coordinates.solve_for(np.ones(5, dtype=bool)).dependent == (2, 4)
    alone = replace(coordinates, whole=(0, 1))  # what has laws of its own follows nobody
    assert alone.solve_for(mutable).dependent == (2, 4)


def test_what_stays_holds_what_laws_tie_to_it():
    way = Limb(start=(0, 1), end=(2, 3)), Limb(start=(2, 3), end=(4, 5))
    arm = Coordinates(tolerance=np.zeros(8), limbs=way, dependent=(7,), weights=np.eye(8)[[6]])
    allowed = np.ones((4, 8), dtype=bool)
    allowed[0, 4] = allowed[1, 2] = allowed[2, 7] = allowed[3, 6] = False
    free = arm.free_entries(allowed)
    held = [np.flatnonzero(~row).tolist() for row in free]
    assert held == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3], [6, 7], [6, 7]]
    assert allowed.sum() == 28  # as it was
    mixed = np.array([True] * 6 + [False, True])
    assert arm.without_mixed_laws(mixed).dependent == () and arm.without_mixed_laws(
        np.ones(8, dtype=bool)
    ).dependent == (7,)
