"""Moving Box: the processes against their definitions, the table of boxes, the labels, the mask and the oracle."""

import pickle

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataError, NonFiniteError, ShapeError, UnknownNameError
from sparcets.core.seeding import generator
from sparcets.data import moving_box
from sparcets.data.moving_box import KINDS, PROCESSES, Boxes, draw_series, load_moving_box, sampling_times

# kind: steps, features, start step, start feature; None is random; a pair is (class 0, class 1).
TABLE = {
    "Middle": (30, 30, 10, 10),
    "SmallMiddle": (14, 14, 18, 18),
    "Moving_Middle": (30, 30, None, None),
    "Moving_SmallMiddle": (15, 15, None, None),
    "RareTime": (6, 40, 22, 5),
    "Moving_RareTime": (6, 40, None, None),
    "RareFeature": (40, 6, 5, 22),
    "Moving_RareFeature": (40, 6, None, None),
    "PositionalTime": (20, 20, None, (29, 1)),
    "PositionalFeature": (20, 20, (29, 1), None),
}
POSITIONAL = ("PositionalTime", "PositionalFeature")
# Three entries, mean and standard deviation of a small draw: its moments were compared with the definitions.
GOLDEN = {
    "Gaussian": [2.00892, -0.3298, -0.24315, 0.04053, 1.00798],
    "Harmonic": [0.46122, 1.47576, -1.55543, 0.09097, 0.76297],
    "GaussianProcess": [1.44703, 0.06197, -0.34335, 0.08857, 1.04484],
    "PseudoPeriodic": [1.95037, 0.19123, 0.086, 0.11973, 0.85018],
    "AutoRegressive": [0.44257, 0.29554, 0.28439, 0.07674, 1.18955],
    "CAR": [-0.55189, -0.10092, -0.0983, -0.00101, 0.29755],
    "NARMA": [0.48824, 1.00111, -0.4597, 0.26514, 0.31793],
}


def rng(seed=0):
    return np.random.default_rng(seed)


def small(**options):
    return load_moving_box(**{"kinds": "Moving_Middle", "processes": "Gaussian", "n_per_combination": 40, **options})


def flipped(ds):
    """Shift the box of the test series, and nothing else, to the other class's level."""
    return ds.X_test - 2 * (2 * ds.y_test - 1)[:, None, None] * ds.salient_test


@pytest.mark.parametrize("process", PROCESSES)
def test_a_small_draw_of_every_process(process):
    x = draw_series(process, rng(5), n_samples=3, n_steps=50, n_features=4)
    assert x.dtype == np.float32 and x.shape == (3, 50, 4)
    found = [x[0, 0, 0], x[1, 25, 2], x[2, 49, 3], x.mean(dtype=float), x.std(dtype=float)]
    assert np.array(found) == pytest.approx(GOLDEN[process], abs=2e-5)


def test_times_are_half_of_the_grid_with_noise_of_one_grid_step_in_order():
    times = sampling_times(rng(), n_samples=4000, n_steps=50)
    assert times.shape == (4000, 50) and (np.diff(times, axis=1) >= 0).all()
    # A random half of linspace(0, 20, 100), plus noise of 20 / 100: the variances add up.
    assert times.var() == pytest.approx(np.linspace(0, 20, 100).var() + 0.2**2, rel=0.01)
    found = sampling_times(rng(5), n_samples=3, n_steps=50)[[0, 1, 2], [0, 20, 49]]
    assert found == pytest.approx([0.50604, 7.73119, 19.90672], abs=1e-4)


@pytest.mark.parametrize("kind", TABLE)
def test_size_and_position_of_the_box(kind):
    n = 4000
    n_steps, n_features, step, feature = TABLE[kind]
    labels = np.arange(n) % 2
    boxes = Boxes.draw(KINDS[kind], n, rng())
    mask = boxes.mask(labels)
    for axis, size, start in ((2, n_steps, step), (1, n_features, feature)):
        inside = mask.any(axis=axis)  # (batch, 50)
        first = inside.argmax(1)
        np.testing.assert_array_equal(inside.sum(1), size)
        assert inside[np.arange(n), first + size - 1].all()  # in one piece
        if start is None:
            share = np.bincount(first, minlength=50) / n
            assert (share[50 - size :] == 0).all()  # the range is [0, 50 - size)
            assert share[: 50 - size] == pytest.approx(np.full(50 - size, 1 / (50 - size)), abs=0.03)
        else:
            np.testing.assert_array_equal(first, np.broadcast_to(start, 2)[labels])
    assert (mask.sum((1, 2)) == n_steps * n_features).all()  # a full rectangle
    X = rng(1).normal(size=(5, 50, 50)).astype(np.float32)
    for label in (0, 1):
        expected = [x[box].mean() for x, box in zip(X, boxes.mask(np.full(n, label))[:5], strict=True)]
        assert boxes.take(np.arange(5)).means(X)[:, label] == pytest.approx(expected, abs=1e-5)


def test_the_optimal_counterfactual_flips_the_oracle():
    default = load_moving_box(n_per_combination=150)
    everything = load_moving_box(kinds="all", processes="all", n_per_combination=20, test_size=0.5)
    for ds in (default, everything):
        rows = np.arange(len(ds.X_test))
        classes = ds.oracle(ds.X_test, rows)
        assert classes.dtype == np.int64 and (classes == ds.y_test).mean() > 0.99
        plain = ~ds.oracle.boxes.positional
        assert (ds.oracle(flipped(ds), rows) == 1 - ds.y_test)[plain].mean() >= 0.99
    changed = flipped(default)  # the oracle uses rows, not their order, and survives pickling
    whole, rows = default.oracle(changed, np.arange(len(changed))), np.array([5, 5, 0, 99])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(default.oracle))(changed[rows], rows), whole[rows])
    elsewhere = default.X_test - 3 * (2 * default.y_test - 1)[:, None, None] * ~default.salient_test
    rows = np.arange(len(default.X_test))
    np.testing.assert_array_equal(default.oracle(elsewhere, rows), default.oracle(default.X_test, rows))


@pytest.mark.parametrize("kind", POSITIONAL)
def test_moving_a_positional_box_flips_the_oracle(kind):
    ds = load_moving_box(kinds=[kind], processes="all", n_per_combination=40)
    rows, boxes = np.arange(len(ds.X_test)), ds.oracle.boxes
    np.testing.assert_array_equal(boxes.mask(ds.y_test), ds.salient_test)
    other = boxes.mask(1 - ds.y_test)
    assert not (other & ds.salient_test).any()
    assert (ds.oracle(ds.X_test - ds.salient_test + other, rows) == 1 - ds.y_test).mean() >= 0.99
    # Where the position determines the class, a common offset of all entries does not matter.
    np.testing.assert_array_equal(ds.oracle(ds.X_test - 5, rows), ds.oracle(ds.X_test, rows))


@pytest.mark.parametrize(
    ("X", "rows", "error", "message"),
    [
        ((2, 50, 50), [0], ShapeError, r"rows must be 2 whole numbers.*got shape \(1,\)"),
        ((2, 50, 50), [0.0, 1.0], ShapeError, "dtype float64"),
        ((2, 50, 50), [0, 8], ShapeError, r"rows must lie in 0\.\.7.*got 8"),
        ((2, 50, 49), [0, 1], ShapeError, r"X must be \(batch, 50, 50\).*got shape \(2, 50, 49\)"),
        ((50, 50), [0], ShapeError, "X "),
        (np.full((1, 50, 50), np.nan), [0], NonFiniteError, "X "),
    ],
)
def test_the_oracle_says_what_it_needs(X, rows, error, message):
    with pytest.raises(error, match=message):
        small().oracle(np.zeros(X, dtype=np.float32) if isinstance(X, tuple) else X, rows)


def test_a_combination_has_generators_of_its_own_from_the_seed(monkeypatch):
    calls = []

    def spy(seed, purpose):
        calls.append((seed, purpose))
        return generator(seed, purpose)

    with monkeypatch.context() as patched:
        patched.setattr(moving_box, "generator", spy)
        small(kinds=["Middle", "RareTime"], processes=["CAR", "Gaussian"], seed=7)
    assert len(calls) == len(set(calls)) == 4 * 3  # labels, boxes and series of four combinations
    assert {seed for seed, _ in calls} == {7}

    def pool(ds):
        return {series.tobytes() for series in (*ds.X_train, *ds.X_test)}

    alone = pool(small(processes="CAR"))
    together = pool(small(processes=np.array(["Gaussian", "CAR"]), kinds=["RareTime", "Moving_Middle"]))
    assert len(alone) == 40 and len(together) == 160 and alone < together
    assert not alone & pool(small(processes=["CAR"], seed=1))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kinds": ["MovingMiddle"]}, UnknownNameError, "no kind of box 'MovingMiddle'. Did you mean 'Moving_Middle'"),
        ({"processes": [3]}, UnknownNameError, "no process 3"),
        ({"kinds": []}, ConfigError, "kinds is empty. Name at least one of Middle"),
        ({"kinds": 4}, ConfigError, "kinds must be names or 'all', got 4"),
        ({"processes": ["CAR", "NARMA", "CAR"]}, ConfigError, "processes names 'CAR' 2 times"),
        ({"n_per_combination": 0}, ConfigError, "n_per_combination must be a whole number of at least 1, got 0"),
        ({"n_per_combination": 10.0}, ConfigError, "n_per_combination .* got 10.0"),
        ({"n_per_combination": 1}, ConfigError, "n_per_combination=1 is too small: of the 1 series drawn.*20 or more"),
        ({"test_size": 1.0}, DataError, "test_size"),
    ],
)
def test_invalid_settings(options, error, message):
    with pytest.raises(error, match=message):
        small(**options)
