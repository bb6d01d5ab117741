"""Moving Box: the table of boxes, the labels, the mask, the oracle and the optimal counterfactual."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataError, NonFiniteError, ShapeError, UnknownNameError
from sparcets.core.seeding import generator
from sparcets.data import moving_box
from sparcets.data.moving_box import KINDS, PROCESSES, Boxes, load_moving_box

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
PLAIN = [kind for kind in TABLE if kind not in POSITIONAL]


@pytest.fixture(scope="module")
def everything():
    return load_moving_box(kinds="all", processes="all", n_per_combination=8, test_size=0.5)


@pytest.fixture(scope="module")
def default():
    return load_moving_box(n_per_combination=150)


def small(**options):
    return load_moving_box(**{"kinds": "Moving_Middle", "processes": "Gaussian", "n_per_combination": 40, **options})


def flipped(ds):
    """Shift the box of the test series, and nothing else, to the other class's level."""
    return ds.X_test - 2 * (2 * ds.y_test - 1)[:, None, None] * ds.salient_test


def test_all_kinds_and_processes():
    assert list(KINDS) == list(TABLE)
    assert len(PROCESSES) == 7


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_combination_loads(kind, process):
    ds = load_moving_box(kinds=[kind], processes=[process], n_per_combination=20)
    assert ds.X_train.shape == ds.salient_train.shape == (16, 50, 50)
    assert ds.X_test.shape == ds.salient_test.shape == (4, 50, 50)
    assert ds.X_train.dtype == np.float32
    assert ds.salient_test.dtype == bool
    entries = TABLE[kind][0] * TABLE[kind][1]
    assert (ds.salient_train.sum((1, 2)) == entries).all()
    assert kind in ds.description
    assert process in ds.description


def test_metadata(default):
    assert default.name == "moving_box"
    assert default.split == "random"
    assert default.class_names == ("0", "1")
    assert default.feature_names is None
    assert default.sampling_rate is None
    assert default.mutable is None
    assert len(default.X_train) + len(default.X_test) == 16 * 150
    assert len(default.X_test) == 480
    assert "Class 1 has its box shifted up" in default.description
    assert "position determines the class" not in default.description


def test_description_of_positional_kinds():
    description = small(kinds=POSITIONAL).description
    assert "salient is the current position of the box" in description
    assert "class 0 down" not in description


@pytest.mark.parametrize("kind", TABLE)
def test_size_and_position_of_the_box(kind):
    n = 4000
    n_steps, n_features, step, feature = TABLE[kind]
    labels = np.arange(n) % 2
    mask = Boxes.draw(KINDS[kind], n, np.random.default_rng(0)).mask(labels)
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


def test_random_positions_of_step_and_feature_are_independent():
    mask = Boxes.draw(KINDS["Moving_Middle"], 4000, np.random.default_rng(0)).mask(np.zeros(4000, dtype=int))
    step, feature = mask.any(2).argmax(1), mask.any(1).argmax(1)
    assert np.corrcoef(step, feature)[0, 1] == pytest.approx(0, abs=0.06)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("kind", ["Middle", "Moving_RareTime", "PositionalTime"])
def test_the_class_shifts_the_box_by_one_and_leaves_the_rest(kind, process):
    ds = load_moving_box(kinds=[kind], processes=[process], n_per_combination=400, test_size=0.5)
    level = {"NARMA": 0.372, "CAR": 0.005}.get(process, 0.0)  # mean of the process itself
    for label in (0, 1):
        X, salient = ds.X_train[ds.y_train == label], ds.salient_train[ds.y_train == label]
        shift = 1 if label or kind == "PositionalTime" else -1
        # About five standard errors; entries are correlated: the steps of a sine, the drift of an AR process.
        assert X[~salient].mean() == pytest.approx(level, abs=0.15)
        assert X[salient].mean() == pytest.approx(level + shift, abs=0.15)
        if process == "Gaussian":
            assert X[salient].std() == pytest.approx(1, abs=0.02)


def test_classes_are_drawn_with_equal_chance(default):
    y = np.concatenate([default.y_train, default.y_test])
    assert y.mean() == pytest.approx(0.5, abs=0.03)
    assert default.y_test.mean() == pytest.approx(y.mean(), abs=0.01)  # stratified
    counts = {int(np.bincount(small(seed=s).y_train)[1]) for s in range(6)}
    assert len(counts) > 1  # a draw, not a quota


def test_salient_share_of_the_default(default):
    share = np.concatenate([default.salient_train, default.salient_test]).mean()
    assert share == pytest.approx((900 + 225 + 240 + 240) / 4 / 2500, abs=1e-12)
    assert 0.14 < default.salient_test.mean() < 0.18


def test_oracle_gives_the_labels_of_unchanged_series(default, everything):
    for ds in (default, everything):
        classes = ds.oracle(ds.X_test, np.arange(len(ds.X_test)))
        assert classes.dtype == np.int64
        assert (classes == ds.y_test).mean() > 0.99


def test_optimal_counterfactual_flips_the_oracle(default):
    rows = np.arange(len(default.X_test))
    assert (default.oracle(flipped(default), rows) == 1 - default.y_test).mean() >= 0.99
    elsewhere = default.X_test - 3 * (2 * default.y_test - 1)[:, None, None] * ~default.salient_test
    np.testing.assert_array_equal(default.oracle(elsewhere, rows), default.oracle(default.X_test, rows))


def test_optimal_counterfactual_flips_the_oracle_in_every_process():
    ds = load_moving_box(kinds=PLAIN, processes="all", n_per_combination=20, test_size=0.5)
    assert (ds.oracle(flipped(ds), np.arange(len(ds.X_test))) == 1 - ds.y_test).mean() >= 0.99


@pytest.mark.parametrize("kind", POSITIONAL)
def test_moving_a_positional_box_flips_the_oracle(kind):
    ds = load_moving_box(kinds=[kind], processes="all", n_per_combination=40)
    rows = np.arange(len(ds.X_test))
    boxes = ds.oracle.boxes
    np.testing.assert_array_equal(boxes.mask(ds.y_test), ds.salient_test)
    other = boxes.mask(1 - ds.y_test)
    assert not (other & ds.salient_test).any()
    moved = ds.X_test - ds.salient_test + other
    assert (ds.oracle(moved, rows) == 1 - ds.y_test).mean() >= 0.99
    # Where the position determines the class, a common offset of all entries does not matter.
    np.testing.assert_array_equal(ds.oracle(ds.X_test - 5, rows), ds.oracle(ds.X_test, rows))


@pytest.mark.parametrize("kind", TABLE)
def test_means_over_the_two_positions(kind):
    boxes = Boxes.draw(KINDS[kind], 5, np.random.default_rng(0))
    X = np.random.default_rng(1).normal(size=(5, 50, 50)).astype(np.float32)
    for label in (0, 1):
        expected = [x[box].mean() for x, box in zip(X, boxes.mask(np.full(5, label)), strict=True)]
        assert boxes.means(X)[:, label] == pytest.approx(expected, abs=1e-5)


def test_oracle_by_hand():
    ds = small()
    X = np.zeros((2, 50, 50), dtype=np.float32)
    X[0][ds.salient_test[3]] = 0.1
    X[1][ds.salient_test[3]] = -0.1
    X[1][~ds.salient_test[3]] = 9
    assert ds.oracle(X, np.array([3, 3])).tolist() == [1, 0]


def test_oracle_uses_rows_not_order(default):
    order = np.random.default_rng(0).permutation(len(default.X_test))[:100]
    changed = flipped(default)
    whole = default.oracle(changed, np.arange(len(changed)))
    np.testing.assert_array_equal(default.oracle(changed[order], order), whole[order])
    twice = np.array([5, 5, 0])
    np.testing.assert_array_equal(default.oracle(changed[twice], twice), whole[twice])


def test_oracle_survives_pickling():
    ds = small()
    oracle = pickle.loads(pickle.dumps(ds.oracle))
    np.testing.assert_array_equal(oracle(ds.X_test, np.arange(8)), ds.oracle(ds.X_test, np.arange(8)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0], r"rows must be 2 whole numbers.*got shape \(1,\)"),
        ([0.0, 1.0], "dtype float64"),
        ([True, False], "dtype bool"),
        ([0, 8], r"rows must lie in 0\.\.7.*got 8"),
        ([-1, 0], "got -1"),
    ],
)
def test_oracle_rejects_invalid_rows(rows, message):
    ds = small()
    with pytest.raises(ShapeError, match=message):
        ds.oracle(ds.X_test[:2], rows)


def test_oracle_rejects_invalid_series():
    ds = small()
    with pytest.raises(ShapeError, match=r"X must be \(batch, 50, 50\).*got shape \(2, 50, 49\)"):
        ds.oracle(ds.X_test[:2, :, 1:], [0, 1])
    with pytest.raises(ShapeError):
        ds.oracle(ds.X_test[0], [0])
    with pytest.raises(NonFiniteError):
        ds.oracle(ds.X_test[:1] * np.nan, [0])


def test_same_seed_same_data_other_seed_other_data():
    one, again, other = small(seed=3), small(seed=3), small(seed=4)
    for field in ("X_train", "y_train", "X_test", "y_test", "salient_train", "salient_test"):
        np.testing.assert_array_equal(getattr(one, field), getattr(again, field))
        assert not np.array_equal(getattr(one, field), getattr(other, field))


def test_every_draw_has_its_own_generator_from_the_seed(monkeypatch):
    calls = []

    def spy(seed, purpose):
        calls.append((seed, purpose))
        return generator(seed, purpose)

    monkeypatch.setattr(moving_box, "generator", spy)
    small(kinds=["Middle", "RareTime"], processes=["CAR", "Gaussian"], seed=7)
    assert len(calls) == len(set(calls)) == 4 * 3  # labels, boxes and series of four combinations
    assert {seed for seed, _ in calls} == {7}


def test_a_combination_does_not_depend_on_the_others():
    def pool(ds):
        return {series.tobytes() for series in (*ds.X_train, *ds.X_test)}

    alone = pool(small(processes="CAR"))
    together = pool(small(processes=["Gaussian", "CAR"], kinds=["RareTime", "Moving_Middle"]))
    assert len(alone) == 40
    assert len(together) == 160
    assert alone < together


def test_names_may_be_one_string_several_or_all(everything):
    one = small(kinds="RareTime", processes="CAR")
    listed = small(kinds=["RareTime"], processes=np.array(["CAR"]))
    np.testing.assert_array_equal(one.X_train, listed.X_train)
    assert len(everything.X_train) + len(everything.X_test) == 560
    assert len(small(kinds=["all"]).X_train) == len(small(kinds=list(KINDS)).X_train)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"kinds": ["MovingMiddle"]}, UnknownNameError, "no kind of box 'MovingMiddle'. Did you mean 'Moving_Middle'"),
        ({"processes": ["gausian"]}, UnknownNameError, "no process 'gausian'. Did you mean 'Gaussian'.*NARMA"),
        ({"processes": [3]}, UnknownNameError, "no process 3"),
        ({"kinds": [["Middle"]]}, UnknownNameError, "no kind of box"),
        ({"kinds": []}, ConfigError, "kinds is empty. Name at least one of Middle"),
        ({"kinds": 4}, ConfigError, "kinds must be names or 'all', got 4"),
        ({"processes": ["CAR", "NARMA", "CAR"]}, ConfigError, "processes names 'CAR' 2 times"),
        ({"n_per_combination": 0}, ConfigError, "n_per_combination must be a whole number of at least 1, got 0"),
        ({"n_per_combination": 10.0}, ConfigError, "n_per_combination .* got 10.0"),
        ({"n_per_combination": True}, ConfigError, "n_per_combination .* got True"),
        ({"n_per_combination": 1}, ConfigError, "n_per_combination=1 is too small: of the 1 series drawn.*20 or more"),
        ({"n_per_combination": 3}, ConfigError, "n_per_combination=3 is too small"),
        ({"test_size": 1.0}, DataError, "test_size"),
    ],
)
def test_invalid_settings(options, error, message):
    with pytest.raises(error, match=message):
        small(**options)
