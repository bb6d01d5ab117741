"""The catching data: the simulated set keeps its promises, the recorded one is read or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.tree import DecisionTreeClassifier

from sparcets.datasets import catching_simulator
from sparcets.datasets.base import Dataset
from sparcets.datasets.catching import COUNTS, FEATURES, load_catching
from sparcets.datasets.catching_simulator import (
    CLASS_NAMES,
    POINTS,
    SIGNS,
    Builds,
    Signs,
    Trials,
    arm_points,
    draw_builds,
    minimum_jerk,
    reach_angles,
    simulate_trials,
)
from sparcets.errors import DataError, DataNotFoundError, FileFormatError, LabelError, NonFiniteError, ShapeError

ATAXIA, AUTISM, CONTROL = range(3)
SEGMENTS = [(f"{side}{a}", f"{side}{b}") for side in ("Left", "Right") for a, b in
            (("Shoulder", "Elbow"), ("Elbow", "Wrist"), ("Wrist", "Hand"))]  # fmt: skip


@pytest.fixture(scope="module")
def ds() -> Dataset:
    return load_catching(seed=0)


@pytest.fixture(scope="module")
def trials() -> Trials:
    return simulate_trials(COUNTS, np.random.default_rng(0))


def point(points: np.ndarray, name: str) -> np.ndarray:
    return points[..., POINTS.index(name), :]


def around_contact(series: np.ndarray, contact: np.ndarray, offset: int, n: int) -> np.ndarray:
    """n steps of (trials, steps) series, the first of them ``offset`` steps after contact."""
    first = np.round(contact * 60).astype(int) + offset
    return np.asarray(series[np.arange(len(series))[:, None], first[:, None] + np.arange(n)])


def tremor_power(trials: Trials, offset: int) -> np.ndarray:
    """Power between 3 and 6 Hz of the left elbow's angle in 20 steps (trials,)."""
    upper = point(trials.points, "LeftElbow") - point(trials.points, "LeftShoulder")
    lower = point(trials.points, "LeftWrist") - point(trials.points, "LeftElbow")
    turn = upper[..., 0] * lower[..., 1] - upper[..., 1] * lower[..., 0]
    window = around_contact(np.arctan2(turn, (upper * lower).sum(-1)), trials.contact, offset, 20)
    steps = np.arange(20)
    window = window - np.polynomial.polynomial.polyval(steps, np.polynomial.polynomial.polyfit(steps, window.T, 2))
    spectrum = np.abs(np.fft.rfft(window * np.hanning(20), 240)) ** 2
    frequency = np.fft.rfftfreq(240, 1 / 60)
    return np.asarray(spectrum[:, (frequency >= 3) & (frequency <= 6)].sum(1))


def lead(trials: Trials) -> np.ndarray:
    """Seconds before contact at which the elbow has made a tenth of its way (trials,)."""
    elbow = point(trials.points, "LeftElbow") - point(trials.points, "LeftShoulder")
    way = np.linalg.norm(elbow - elbow[:, :1], axis=-1)
    at_contact = around_contact(way, trials.contact, 0, 1)
    return np.asarray(trials.contact - np.argmax(way > 0.1 * at_contact, axis=1) / 60)


def accuracy(features: np.ndarray, label: np.ndarray) -> float:
    return float(cross_val_score(LinearDiscriminantAnalysis(), features, label, cv=3).mean())


# The data set.


def test_counts_shapes_and_names(ds: Dataset) -> None:
    assert ds.X_train.shape == (1580, 60, 20)
    assert ds.X_test.shape == (395, 60, 20)
    assert ds.X_train.dtype == np.float32
    assert np.bincount(np.concatenate([ds.y_train, ds.y_test])).tolist() == [522, 789, 664]
    assert np.bincount(ds.y_test).tolist() == [104, 158, 133]
    assert ds.class_names == ("Ataxia", "Autism", "Control")
    assert ds.feature_names is not None
    assert ds.feature_names[:4] == ("Head_x", "Head_y", "LeftShoulder_x", "LeftShoulder_y")
    assert ds.feature_names[-4:] == ("RightHand_x", "RightHand_y", "Center_x", "Center_y")
    assert ds.units == ("m",) * 20
    assert ds.sampling_rate == 60
    assert ds.split == "random"


def test_it_is_called_simulated(ds: Dataset) -> None:
    assert ds.name == "catching (simulated)"
    assert "simulated" in ds.description.lower()


def test_the_body_may_change_and_the_ball_may_not(ds: Dataset) -> None:
    assert ds.mutable is not None
    assert ds.mutable.tolist() == [True] * 18 + [False] * 2


def test_subjects(ds: Dataset) -> None:
    assert ds.subjects_train is not None
    assert ds.subjects_test is not None
    subjects = np.concatenate([ds.subjects_train, ds.subjects_test])
    labels = np.concatenate([ds.y_train, ds.y_test])
    assert len(np.unique(subjects)) == 60
    for subject in np.unique(subjects):
        assert np.unique(labels[subjects == subject]).tolist() == [CLASS_NAMES.index(subject.split("-")[0])]


def test_seed_decides(ds: Dataset) -> None:
    again, other = load_catching(seed=0), load_catching(seed=1)
    assert np.array_equal(again.X_train, ds.X_train)
    assert np.array_equal(again.X_test, ds.X_test)
    np.testing.assert_array_equal(np.asarray(again.subjects_test), np.asarray(ds.subjects_test))
    assert not np.array_equal(np.sort(other.X_test.ravel()), np.sort(ds.X_test.ravel()))


def test_test_size(ds: Dataset) -> None:
    half = load_catching(test_size=0.5)
    assert np.bincount(half.y_test).tolist() == [261, 394, 332]
    with pytest.raises(DataError, match=r"test_size must lie between 0 and 1 .* got 2"):
        load_catching(test_size=2)


# The body and the ball.


def test_limbs_keep_their_length(ds: Dataset) -> None:
    X = np.concatenate([ds.X_train, ds.X_test]).reshape(-1, 60, 10, 2).astype(np.float64)
    subjects = np.concatenate([ds.subjects_train, ds.subjects_test])
    for a, b in SEGMENTS:
        length = np.linalg.norm(point(X, a) - point(X, b), axis=-1)  # (trials, steps)
        assert length.std(1).max() < 1e-5
        assert 0.05 < length.min() < length.max() < 0.45
        for subject in np.unique(subjects):
            assert np.ptp(length[subjects == subject]) < 1e-5


def test_limb_lengths_differ_between_persons_but_not_between_classes(trials: Trials) -> None:
    length = np.linalg.norm(point(trials.points, "LeftElbow") - point(trials.points, "LeftShoulder"), axis=-1)[:, 0]
    sets = [np.unique(length[trials.label == k].round(9)) for k in range(3)]
    assert len(sets[0]) == 20
    assert np.array_equal(sets[0], sets[1])
    assert np.array_equal(sets[0], sets[2])


def test_ball_falls_freely_until_contact(ds: Dataset, trials: Trials) -> None:
    acceleration = np.diff(trials.points[:, :, -1], n=2, axis=1) * 60**2  # (trials, 58, 2)
    flying = np.arange(2, 60) / 60 < trials.contact[:, None]
    np.testing.assert_allclose(acceleration[flying], np.broadcast_to([0, -9.81], acceleration[flying].shape), atol=1e-8)
    assert flying.sum(1).min() > 30
    # Float32 leaves it visible in the data set: no contact comes before 0.62 s.
    stored = np.diff(ds.X_test[:, :37, FEATURES.index("Center_y")].astype(np.float64), n=2, axis=1) * 60**2
    np.testing.assert_allclose(stored, -9.81, atol=5e-3)


def test_ball_ends_in_the_hands(trials: Trials) -> None:
    ball = point(trials.points, "Center")
    hands = (point(trials.points, "LeftHand") + point(trials.points, "RightHand")) / 2
    gap = around_contact(np.linalg.norm(hands - ball, axis=-1), trials.contact, 0, 1)[:, 0]
    for k, limit in ((ATAXIA, 0.16), (AUTISM, 0.09), (CONTROL, 0.09)):
        assert np.quantile(gap[trials.label == k], 0.95) < limit


def test_movement_is_human(trials: Trials) -> None:
    speed = np.linalg.norm(np.diff(trials.points[:, :, :9], axis=1), axis=-1) * 60
    assert speed.max() < 6.5
    assert speed[:, :, 0].max() < 1.5
    upper = point(trials.points, "LeftElbow") - point(trials.points, "LeftShoulder")
    lower = point(trials.points, "LeftWrist") - point(trials.points, "LeftElbow")
    turn = upper[..., 0] * lower[..., 1] - upper[..., 1] * lower[..., 0]
    flexion = np.rad2deg(np.arctan2(turn, (upper * lower).sum(-1)))
    assert flexion.min() > 0  # elbows do not bend backwards
    assert flexion.max() < 155
    assert (point(trials.points, "LeftHand") - point(trials.points, "LeftShoulder"))[..., 0].min() > 0.05


# The classes.


def test_ball_says_nothing_about_the_class(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    ball = point(trials.points, "Center")[:, ::4].reshape(len(trials.label), -1)
    assert accuracy(ball, trials.label) < 0.44  # 0.40 is the share of the largest class
    monkeypatch.setattr(catching_simulator, "SIGNS", Signs(*(np.zeros(3) for _ in SIGNS)))
    without = simulate_trials(COUNTS, np.random.default_rng(0))
    assert np.array_equal(point(without.points, "Center"), point(trials.points, "Center"))


def test_without_signs_the_classes_are_alike(trials: Trials, monkeypatch: pytest.MonkeyPatch) -> None:
    def summary(some: Trials) -> np.ndarray:
        body = some.points.reshape(-1, 60, 20)
        return np.concatenate([body[:, ::12].reshape(len(body), -1), np.log(tremor_power(some, -10))[:, None]], axis=1)

    assert accuracy(summary(trials), trials.label) > 0.75
    monkeypatch.setattr(catching_simulator, "SIGNS", Signs(*(np.zeros(3) for _ in SIGNS)))
    without = simulate_trials(COUNTS, np.random.default_rng(0))
    assert accuracy(summary(without), without.label) < 0.46


def test_tremor_grows_towards_contact_in_ataxia(trials: Trials) -> None:
    near, far = tremor_power(trials, -10), tremor_power(trials, -35)
    mean = [near[trials.label == k].mean() for k in range(3)]
    assert mean[ATAXIA] > 3 * mean[CONTROL]
    assert mean[ATAXIA] > far[trials.label == ATAXIA].mean() * 3


def test_reach_starts_later_in_autism(trials: Trials) -> None:
    median = [np.median(lead(trials)[trials.label == k]) for k in range(3)]
    assert median[CONTROL] - median[AUTISM] > 0.08
    assert median[AUTISM] > 0.1


def test_trunk_leans_in_less_in_autism(trials: Trials) -> None:
    head = point(trials.points, "Head")[..., 0]
    forward = around_contact(head, trials.contact, 0, 1)[:, 0] - head[:, 0]
    assert forward[trials.label == AUTISM].mean() < 0.6 * forward[trials.label == CONTROL].mean()


def test_severity_makes_the_classes_overlap(trials: Trials) -> None:
    power = np.log(tremor_power(trials, -10))
    mild = np.quantile(power[trials.label == ATAXIA], 0.1)
    assert (power[trials.label == CONTROL] > mild).mean() > 0.02
    late = lead(trials)
    assert (late[trials.label == CONTROL] < np.quantile(late[trials.label == AUTISM], 0.95)).mean() > 0.02


def test_no_mean_of_a_feature_tells_the_class(ds: Dataset) -> None:
    means = ds.X_train.mean(1)
    for feature, name in enumerate(FEATURES):
        column = means[:, [feature]]
        tree = cross_val_score(DecisionTreeClassifier(max_depth=3, random_state=0), column, ds.y_train, cv=3).mean()
        assert max(tree, accuracy(column, ds.y_train)) < 0.55, name


# The parts of the model.


def test_minimum_jerk_by_hand() -> None:
    share = minimum_jerk(np.array([0.0, 1.0, 1.5, 2.0, 3.0, 9.0]), 1.0, 2.0)
    np.testing.assert_allclose(share, [0, 0, 0.103515625, 0.5, 1, 1])  # s = 1/4: (10 - 15/4 + 6/16) / 64


@settings(deadline=None, max_examples=50)
@given(share=st.floats(0.3, 0.97), angle=st.floats(-0.5, 2.5), wrist=st.floats(-0.4, 0.6), seed=st.integers(0, 1000))
def test_reach_angles_bring_the_hand_there(share: float, angle: float, wrist: float, seed: int) -> None:
    body = draw_builds(1, np.random.default_rng(seed))
    full = np.sqrt(body.forearm**2 + body.hand**2 + 2 * body.forearm * body.hand * np.cos(wrist)) + body.upper_arm
    target = share * full * np.array([np.sin(angle), -np.cos(angle)])
    angles = reach_angles(target[None, None], np.full((1, 1), wrist), body)
    _, _, hand = arm_points(np.zeros((1, 1, 1, 2)), angles[:, None], body)
    np.testing.assert_allclose(hand[0, 0, 0], target, atol=1e-9)


def test_arm_points_by_hand() -> None:
    ones = np.ones(1)
    body = Builds(*(ones * v for v in (0.9, 0.5, 0.2, 0.2, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0)))
    right = np.pi / 2  # upper arm straight down, forearm forwards, hand up
    elbow, wrist, hand = arm_points(np.array([[[[0.0, 10.0]]]]), np.array([[[[0.0, right, right]]]]), body)
    np.testing.assert_allclose([elbow.ravel(), wrist.ravel(), hand.ravel()], [[0, 7], [2, 7], [2, 8]], atol=1e-12)


# The recordings.


def write_folder(
    folder: Path, *, parts: tuple[str, ...] = ("train", "val", "test"), n: int = 6
) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = {}
    for part in parts:
        arrays[f"X_{part}"] = rng.normal(size=(n, 60, 20))
        arrays[f"y_{part}"] = np.eye(3)[np.arange(n) % 3]
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return arrays


def test_reader_merges_validation_into_training(tmp_path: Path) -> None:
    arrays = write_folder(tmp_path)
    ds = load_catching(path=str(tmp_path))
    assert ds.name == "catching"
    assert "simulated" not in ds.description.lower()
    assert ds.split == "given"
    np.testing.assert_array_equal(ds.X_train, np.concatenate([arrays["X_train"], arrays["X_val"]]).astype(np.float32))
    np.testing.assert_array_equal(ds.X_test, arrays["X_test"].astype(np.float32))
    assert ds.y_train.tolist() == [0, 1, 2] * 4
    assert ds.y_test.tolist() == [0, 1, 2] * 2
    assert ds.class_names == ("Ataxia", "Autism", "Control")
    assert ds.feature_names is not None
    assert ds.feature_names[-2:] == ("Center_x", "Center_y")
    assert ds.mutable is not None
    assert ds.mutable.tolist() == [True] * 18 + [False] * 2


def test_reader_needs_no_validation_part(tmp_path: Path) -> None:
    write_folder(tmp_path, parts=("train", "test"))
    assert len(load_catching(path=tmp_path).X_train) == 6


def test_reader_drops_singleton_axes(tmp_path: Path) -> None:
    arrays = write_folder(tmp_path, parts=("train", "test"))
    np.save(tmp_path / "X_train.npy", arrays["X_train"][..., None])
    np.save(tmp_path / "y_train.npy", arrays["y_train"][:, None, :])
    np.save(tmp_path / "X_test.npy", arrays["X_test"][:1, None])  # a single trial stays a trial
    np.save(tmp_path / "y_test.npy", arrays["y_test"][:1])
    ds = load_catching(path=tmp_path)
    np.testing.assert_array_equal(ds.X_train, arrays["X_train"].astype(np.float32))
    assert ds.X_test.shape == (1, 60, 20)


def test_reader_needs_the_folder(tmp_path: Path) -> None:
    with pytest.raises(DataNotFoundError, match=r"no folder .*nowhere.*X_train\.npy.*simulated"):
        load_catching(path=tmp_path / "nowhere")


@pytest.mark.parametrize("missing", ["X_train", "y_train", "X_val", "y_val", "X_test", "y_test"])
def test_reader_names_a_missing_file(tmp_path: Path, missing: str) -> None:
    write_folder(tmp_path)
    (tmp_path / f"{missing}.npy").unlink()
    with pytest.raises(DataNotFoundError, match=rf"holds no {missing}\.npy\. Expected X_train\.npy"):
        load_catching(path=tmp_path)


@pytest.mark.parametrize("shape", [(6, 50, 20), (6, 20, 60), (6, 60, 19), (6, 1200), (6, 60, 20, 2), (0, 60, 20), ()])
def test_reader_refuses_other_shapes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    write_folder(tmp_path)
    np.save(tmp_path / "X_test.npy", np.zeros(shape))
    with pytest.raises(ShapeError, match=r"X_test\.npy must be \(n, 60, 20\).* got shape \("):
        load_catching(path=tmp_path)


@pytest.mark.parametrize("y", [np.arange(6), np.eye(2)[[0, 1] * 3], np.eye(3)])
def test_reader_refuses_labels_of_other_shapes(tmp_path: Path, y: np.ndarray) -> None:
    write_folder(tmp_path)
    np.save(tmp_path / "y_val.npy", y)
    with pytest.raises(LabelError, match=r"y_val\.npy must be \(6, 3\), one-hot .* X_val\.npy; got shape \("):
        load_catching(path=tmp_path)


@pytest.mark.parametrize("row", [[0, 0, 0], [1, 1, 0], [0.2, 0.7, 0.1], [1, 0, 2], [1, np.nan, 0]])
def test_reader_refuses_labels_that_are_not_one_hot(tmp_path: Path, row: list[float]) -> None:
    y = write_folder(tmp_path)["y_train"]
    y[4] = row
    np.save(tmp_path / "y_train.npy", y)
    with pytest.raises(LabelError, match=r"y_train\.npy is not one-hot: row 4 is .* order Ataxia, Autism, Control"):
        load_catching(path=tmp_path)


def test_reader_says_where_a_number_is_missing(tmp_path: Path) -> None:
    X = write_folder(tmp_path)["X_test"]
    X[1, 2, 3] = np.nan
    np.save(tmp_path / "X_test.npy", X)
    with pytest.raises(NonFiniteError, match=r"X_test\.npy holds NaN at \[1, 2, 3\]"):
        load_catching(path=tmp_path)


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8', "])
def test_reader_refuses_what_is_no_npy(tmp_path: Path, content: bytes) -> None:
    write_folder(tmp_path)
    (tmp_path / "X_train.npy").write_bytes(content)
    with pytest.raises(FileFormatError, match=r"X_train\.npy cannot be read as a NumPy array of numbers"):
        load_catching(path=tmp_path)


def test_reader_never_unpickles(tmp_path: Path) -> None:
    write_folder(tmp_path)
    np.save(tmp_path / "X_train.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FileFormatError, match=r"X_train\.npy cannot be read as a NumPy array of numbers"):
        load_catching(path=tmp_path)


def test_reader_refuses_an_archive(tmp_path: Path) -> None:
    write_folder(tmp_path)
    with (tmp_path / "X_train.npy").open("wb") as handle:
        np.savez(handle, X=np.zeros((6, 60, 20)))
    with pytest.raises(FileFormatError, match=r"X_train\.npy is an archive of arrays"):
        load_catching(path=tmp_path)
