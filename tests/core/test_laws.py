"""Laws: planted ones are found and told, none is invented, and a broken one is noticed."""

import numpy as np
import pytest

from sparcets.core.edits import Coordinates
from sparcets.core.laws import find_laws, violates, violations
from sparcets.core.series import Series


def smooth(rng, shape):
    """Return sums of steps (batch, time, …) around a level of each series."""
    return np.asarray(rng.normal(size=shape).cumsum(1) * 0.2 + rng.normal(size=(shape[0], 1, *shape[2:])))


def find(X, names, **options):
    known = {"tolerance": np.full(X.shape[2], 1e-9), **options}
    return find_laws(Series(X), names, **known)


def gait(rng, n=60):
    """Return stance, swing and stride times, of which the last is the sum of the others up to 1e-4, and a speed."""
    swing = 0.6 * np.exp(0.1 * smooth(rng, (n, 30, 1)))
    stance = np.exp(0.1 * smooth(rng, (n, 30, 1)))
    stride = stance + swing + rng.uniform(-1e-4, 1e-4, stance.shape) * 0.5
    return np.concatenate([stance, swing, stride, smooth(rng, (n, 30, 1))], axis=2)


def pressures(rng, n=60):
    """Return diastolic, mean and systolic pressures, whose ranges overlap, and a temperature."""
    low = 70 + 12 * smooth(rng, (n, 24, 1))
    pulse = 40 * np.exp(0.2 * smooth(rng, (n, 24, 1)))
    part = rng.uniform(0.25, 0.45, (n, 24, 1))
    return np.concatenate([low, low + part * pulse, low + pulse, 37 + smooth(rng, (n, 24, 1))], axis=2)


def body(rng, size, n=40, n_steps=30):
    """Return shoulder, elbow, wrist and hand: limbs of fixed lengths; the elbow bends, the wrist by up to 0.4 only."""
    wander = smooth(rng, (n, n_steps, size))
    wander *= 0.2
    upper = rng.uniform(-0.8, 0.8, (n, 1)) + 0.5 * np.sin(np.arange(n_steps) / 5 + rng.uniform(0, 6, (n, 1)))
    elbow = 0.2 + rng.uniform(0, 1.2, (n, 1)) * (1 - np.cos(np.arange(n_steps) / 4 + rng.uniform(0, 6, (n, 1))))
    wrist = 0.4 * np.sin(np.arange(n_steps) / 3 + rng.uniform(0, 6, (n, 1)))
    points, angle = [wander], upper
    turn = rng.uniform(-0.5, 0.5, (n, 1))  # out of the plane, one for each series
    for length, bend in ((0.3, 0.0), (0.25, elbow), (0.1, wrist)):
        angle = angle + bend
        way = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=-1)
        if size == 3:
            x, y = way[..., 0], way[..., 1]
            way = np.stack([x, y * np.cos(turn), y * np.sin(turn)], axis=-1)
        points.append(points[-1] + length * way[..., :size])
    return np.concatenate(points, axis=2)


def point_names(size):
    return [f"{point}_{axis}" for point in ("Shoulder", "Elbow", "Wrist", "Hand") for axis in "xyz"[:size]]


# Planted laws.


def test_the_identity_of_gait_is_found_and_followed():
    laws, coordinates = find(gait(np.random.default_rng(0)), ["stance", "swing", "stride", "speed"])
    assert [(law.kind, law.text, law.name) for law in laws if law.kind == "identity"] == [
        ("identity", "stride = stance + swing", "identity of stride")
    ]
    assert laws[0].features == ("stride", "stance", "swing") and str(laws[0]) == laws[0].text
    assert coordinates.dependent == (2,)
    np.testing.assert_allclose(coordinates.weights, [[1, 1, 0, 0]], atol=1e-3)


@pytest.mark.parametrize(
    ("weights", "constant", "text"),
    [((2.0, -1.0), 0.0, "c = 2 · a - b"), ((0.5, 0.0), 3.0, "c = 0.5 · a + 3"), ((-1.0, 0.0), 100.0, "c = -a + 100")],
)
def test_identities_are_told_by_their_weights(weights, constant, text):
    X = smooth(np.random.default_rng(1), (50, 20, 3))
    X[..., 2] = X[..., :2] @ np.array(weights) + constant
    laws, coordinates = find(X, ["a", "b", "c"])
    assert [law.text for law in laws if law.kind == "identity"] == [text]
    np.testing.assert_allclose(coordinates.weights[0, :2], weights, atol=1e-6)


def test_orders_of_pressures_that_neither_ranges_nor_units_explain():
    laws, coordinates = find(pressures(np.random.default_rng(0)), ["dia", "mean", "sys", "temp"])
    assert [(law.kind, law.features) for law in laws] == [("order", ("dia", "mean")), ("order", ("mean", "sys"))]
    assert laws[0].text == "dia is never above mean" and coordinates.orders == ((0, 1), (1, 2))
    X = pressures(np.random.default_rng(0))
    assert not find(X, list("abcd"), units=("mmHg", "kPa", "mmHg ", "°C"))[0]
    X[..., 1] += 500
    assert {law.features for law in find(X, list("abcd"))[0]} == {("a", "c")}


@pytest.mark.parametrize("size", [2, 3])
def test_limbs_and_joints(size):
    X = body(np.random.default_rng(0), size)
    laws, coordinates = find(X, point_names(size), units=("m",) * 4 * size)
    limbs = [law for law in laws if law.kind == "limb"]
    assert {frozenset(f.rsplit("_", 1)[0] for f in law.features) for law in limbs} == {
        frozenset(("Shoulder", "Elbow")),
        frozenset(("Elbow", "Wrist")),
        frozenset(("Wrist", "Hand")),
    }
    joints = {law.name: law for law in laws if law.kind == "joint"}
    assert len(joints) == 2 and all("bends by" in law.text for law in joints.values())
    bends = [limb.bend for limb in coordinates.limbs if limb.bend is not None]
    narrow = min(bends, key=lambda bend: bend[1] - bend[0])
    low = -0.41 if size == 2 else -0.01
    assert low - 0.02 <= narrow[0] <= low + 0.02 and 0.39 <= narrow[1] <= 0.43
    trunk = coordinates.limbs[0].start
    assert all(limb.end != trunk for limb in coordinates.limbs)
    assert not {law.kind for law in laws} & {"identity", "order", "whole"}  # of what a limb carries


def test_names_of_laws_that_need_not_hold():
    X, names = pressures(np.random.default_rng(0)), ["dia", "mean", "sys", "temp"]
    laws, coordinates = find(X, names, without=["order mean, sys"])
    assert [law.name for law in laws] == ["order dia, mean"] and coordinates.orders == ((0, 1),)
    arm, of_arm = body(np.random.default_rng(0), 2), point_names(2)
    joints = [law.name for law in find(arm, of_arm, units=("m",) * 8)[0] if law.kind == "joint"]
    left, coordinates = find(arm, of_arm, units=("m",) * 8, without=joints)
    assert {law.kind for law in left} == {"limb"} and all(limb.bend is None for limb in coordinates.limbs)


# None is invented.


@pytest.mark.parametrize("seed", range(8))
def test_in_noise_there_are_no_laws(seed):
    rng = np.random.default_rng(seed)
    n, n_steps, n_features = (int(rng.integers(*bounds)) for bounds in ((20, 200), (5, 60), (2, 12)))
    X = rng.normal(size=(n, n_steps, n_features)) if seed % 2 else smooth(rng, (n, n_steps, n_features))
    names = [f"f{i}" if seed % 3 else f"p{i // 2}_{'xy'[i % 2]}" for i in range(n_features)]
    laws, coordinates = find(X.astype(np.float32), names)
    assert laws == () and coordinates.to_dict()["limbs"] == [] and coordinates.orders == ()


# Broken laws.


def test_a_broken_law_is_noticed():
    rng = np.random.default_rng(0)
    X = np.concatenate([gait(rng), pressures(rng)[:, :, :3].repeat(2, axis=1)[:, :30]], axis=2)
    _, coordinates = find(X, ["stance", "swing", "stride", "speed", "dia", "mean", "sys"])
    query = X[:4]
    assert not violates(coordinates, query, query).any()
    longer, crossed, followed = query.copy(), query.copy(), query.copy()
    longer[1, 3:9, 2] += 0.1
    crossed[2, 5, 5] = crossed[2, 5, 6] + 1
    followed[3, 3:9, 1:3] += 0.1
    for made, wrong in ((longer, 1), (crossed, 2), (followed, None)):
        assert np.flatnonzero(violates(coordinates, made, query)).tolist() == ([] if wrong is None else [wrong])


def test_a_broken_limb_and_what_is_no_whole_number_are_noticed():
    X = body(np.random.default_rng(0), 2)
    _, coordinates = find(X, point_names(2), units=("m",) * 8)
    moved, stretched = X[:2] + 0.5, X[:2].copy()
    stretched[1, 4:8, -1] += 0.05
    assert not violates(coordinates, moved, X[:2]).any()
    assert violates(coordinates, stretched, X[:2]).tolist() == [False, True]
    whole = Coordinates(tolerance=np.zeros(1), whole=(0,))
    assert violates(whole, np.array([[[1.0], [2.5]], [[1.0], [3.0]]]), np.ones((2, 2, 1))).tolist() == [True, False]


def test_a_breach_says_which_law_and_where():
    names = point_names(2)
    X = body(np.random.default_rng(0), 2)
    laws, coordinates = find(X, names, units=("m",) * 8)
    query, made = X[:2].astype("f4"), X[:2].astype("f4")
    at, tip = made[1, 5, 4:6].astype(float), made[1, 5, 6:8].astype(float)
    made[1, 5, 6:8] = at - (tip - at)  # the hand points backwards, as far from the wrist as before
    found = [(kind, features, where) for kind, features, where in violations(coordinates, made, query) if where.any()]
    assert [(kind, features) for kind, features, _ in found] == [("joint", (4, 5, 6, 7))]
    assert np.argwhere(found[0][2]).tolist() == [[1, 5]]
    assert any(law.kind == "joint" and law.features == tuple(names[4:]) for law in laws)


def test_rounding_and_what_is_missing_break_no_identity():
    follows = Coordinates(tolerance=np.full(3, 1e-6), dependent=(2,), weights=np.array([[1.0, 100.0, 0.0]]))
    query = np.array([[[0.1, 0.2, 20.1]] * 3], dtype="f4")
    made = query.copy()
    made[0, 0] = [0.3, 0.7, 70.3]
    made[0, 1, 1] += 1e-6  # followed by nobody, because a change below the tolerance is none
    query[0, 2, 2] = made[0, 2, 2] = np.nan
    made[0, 2, 0] = 5.0
    assert not violates(follows, made, query).any()
    made[0, 1, 2] += 0.01
    assert violates(follows, made, query).all()
