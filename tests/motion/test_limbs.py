"""Limb lengths and joint angles: values computed by hand, invariants, and the catching data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sparcets.motion import limbs
from sparcets.motion.skeleton import Skeleton, find_skeleton
from tests.evaluation import conftest as explanations

make_explanation = explanations.make_explanation  # a fixture
POINTS = ("shoulder", "elbow", "wrist")
FLAT = find_skeleton([f"{p}_{axis}" for p in POINTS for axis in "xy"])
SOLID = find_skeleton([f"{p}_{axis}" for p in POINTS for axis in "xyz"])
# Shoulder, elbow, wrist: stretched along x with an upper arm of 3 and a forearm of 5; then bent to a right angle.
STRETCHED, BENT = [0, 0, 3, 0, 8, 0], [0, 0, 3, 0, 3, 5]


def answer(make_explanation, before, after, **known):
    before, after = np.array(before, dtype=float), np.array(after, dtype=float)
    return make_explanation(after - before, query=before, **known)


def test_lengths_and_angles_by_hand():
    X = np.array([[STRETCHED, BENT, [0, 0, 3, 4, 0, 8]]])
    lengths = limbs.limb_lengths(X, FLAT)
    np.testing.assert_allclose(lengths["shoulder–elbow"], [[3, 3, 5]])
    np.testing.assert_allclose(lengths["elbow–wrist"], [[5, 5, 5]])
    # The last is an isosceles triangle with legs 5 and base 8: half its angle has the sine 4/5.
    (angle,) = limbs.joint_angles(X, FLAT).values()
    np.testing.assert_allclose(angle, [[180, 90, 2 * np.degrees(np.arcsin(0.8))]])
    X = np.array([[[0, 0, 0, 1, 2, 2, 1, 2, 7]]])  # in space: upper arm of length 3; forearm along z
    assert limbs.limb_lengths(X, SOLID)["shoulder–elbow"].item() == pytest.approx(3)
    assert limbs.joint_angles(X, SOLID)["shoulder–elbow–wrist"].item() == pytest.approx(
        180 - np.degrees(np.arccos(2 / 3))
    )


def test_deviations_by_hand(make_explanation):
    # The wrist goes from 8 to 9 in one of two steps: forearm 5 to 6, upper arm as it was.
    longer = answer(make_explanation, [[STRETCHED, STRETCHED]], [[[0, 0, 3, 0, 9, 0], STRETCHED]])
    np.testing.assert_allclose(limbs.limb_deviation(longer, FLAT), [(1 / 5) / 2 / 2])
    np.testing.assert_allclose(limbs.joint_deviation(longer, FLAT), [0], atol=1e-9)
    bent = answer(make_explanation, [[STRETCHED, STRETCHED]], [[BENT, STRETCHED]])
    np.testing.assert_allclose(limbs.limb_deviation(bent, FLAT), [0])
    np.testing.assert_allclose(limbs.joint_deviation(bent, FLAT), [45])

    # Forearm of 5 and 7, mean 6, in the query; 1 more in the first step.
    e = answer(make_explanation, [[STRETCHED, [0, 0, 3, 0, 10, 0]]], [[[0, 0, 3, 0, 9, 0], [0, 0, 3, 0, 10, 0]]])
    np.testing.assert_allclose(limbs.limb_deviation(e, FLAT), [(1 / 6) / 2 / 2])
    one, other = (answer(make_explanation, [[STRETCHED]], [[BENT]], **known) for known in ({}, {"scale": 7.0}))
    np.testing.assert_array_equal(limbs.joint_deviation(one, FLAT), limbs.joint_deviation(other, FLAT))


def test_padding_does_not_count(make_explanation):
    nowhere = [0, 0, 0, 0, 0, 0]
    e = answer(make_explanation, [[STRETCHED, nowhere]], [[[0, 0, 3, 0, 9, 0], [9, 9, 1, 2, 3, 7]]], lengths=[1])
    np.testing.assert_allclose(limbs.limb_deviation(e, FLAT), [(1 / 5) / 2])
    np.testing.assert_allclose(limbs.joint_deviation(e, FLAT), [0], atol=1e-9)
    assert limbs.limb_distance(e, FLAT)["elbow–wrist"] == pytest.approx(1 / 5)
    assert limbs.joint_distance(e, FLAT)["shoulder–elbow–wrist"] == pytest.approx(0, abs=1e-9)


def test_distances_equal_those_of_scipy(make_explanation):
    from scipy.stats import wasserstein_distance

    rng = np.random.default_rng(0)
    e = make_explanation(rng.normal(size=(4, 6, 9)), query=rng.normal(size=(4, 6, 9)), lengths=[6, 3, 1, 6])
    rows = np.arange(6) < e.lengths[:, None]
    for measure, values in ((limbs.limb_distance, limbs.limb_lengths), (limbs.joint_distance, limbs.joint_angles)):
        before, after = values(e.query[rows][None], SOLID), values(e.counterfactual[rows][None], SOLID)
        for name, distance in measure(e, SOLID).items():
            unit = before[name].mean() if measure is limbs.limb_distance else 1.0
            assert distance == pytest.approx(wasserstein_distance(before[name][0], after[name][0]) / unit)


COORDINATES = st.floats(-10, 10, allow_nan=False).map(lambda x: round(x, 3))


@given(arrays(float, (2, 3, 9), elements=COORDINATES), arrays(float, (2, 3, 3), elements=COORDINATES), st.integers(0))
@settings(max_examples=60, deadline=None)
def test_only_stretching_a_body_deviates(make_explanation, body, shift, seed):
    body = body + np.array([0, 0, 0, 30, 0, 0, 30, 30, 0])  # limbs have some length
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    moved = (body.reshape(2, 3, 3, 3) @ turn).reshape(body.shape) + np.tile(shift, 3)
    e = make_explanation(moved - body, query=body)
    np.testing.assert_allclose(limbs.limb_deviation(e, SOLID), 0, atol=1e-9)
    np.testing.assert_allclose(limbs.joint_deviation(e, SOLID), 0, atol=1e-6)
    assert max(limbs.limb_distance(e, SOLID).values()) < 1e-9 and max(limbs.joint_distance(e, SOLID).values()) < 1e-6
    larger = make_explanation(body, query=body)  # everything twice as large
    np.testing.assert_allclose(limbs.limb_deviation(larger, SOLID), 1)
    np.testing.assert_allclose(limbs.joint_deviation(larger, SOLID), 0, atol=1e-9)


def test_no_length_no_answers_no_limbs(make_explanation):
    point = np.zeros((1, 2, 6))
    e = make_explanation(np.tile(STRETCHED, (1, 2, 1)), query=point)
    assert np.isnan(limbs.limb_deviation(e, FLAT)).all() and np.isnan(limbs.limb_distance(e, FLAT)["elbow–wrist"])
    assert limbs.joint_angles(point, FLAT)["shoulder–elbow–wrist"].tolist() == [[0, 0]]
    assert limbs.limb_deviation(e[:0], FLAT).shape == limbs.joint_deviation(e[:0], FLAT).shape == (0,)
    assert np.isnan([*limbs.limb_distance(e[:0], FLAT).values(), *limbs.joint_distance(e[:0], FLAT).values()]).all()
    empty = Skeleton({}, limbs=(), joints=())
    assert np.isnan([limbs.limb_deviation(e, empty), limbs.joint_deviation(e, empty)]).all()
    assert limbs.limb_distance(e, empty) == limbs.joint_distance(e, empty) == {}
