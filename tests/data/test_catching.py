"""The catching data: properties of the simulated set, and reading the recorded one."""

import numpy as np
import pytest

from sparcets.core.errors import DataNotFoundError, FileFormatError, LabelError, NonFiniteError, ShapeError
from sparcets.core.seeding import generator
from sparcets.motion import simulator as sim
from sparcets.motion.catching import COUNTS, load_catching

ATAXIA, AUTISM, CONTROL = range(3)


@pytest.fixture(scope="module")
def ds():
    return load_catching(seed=0)


def test_counts_shapes_and_names(ds):
    assert (ds.X_train.shape, ds.X_test.shape) == ((1580, 60, 20), (395, 60, 20))
    assert ds.X_train.dtype == np.float32 and ds.units == ("m",) * 20
    assert np.bincount(np.concatenate([ds.y_train, ds.y_test])).tolist() == [522, 789, 664]
    assert np.bincount(ds.y_test).tolist() == [104, 158, 133]
    assert ds.class_names == ("Ataxia", "Autism", "Control")
    assert ds.feature_names[:4] == ("Head_x", "Head_y", "LeftShoulder_x", "LeftShoulder_y")
    assert ds.feature_names[-4:] == ("RightHand_x", "RightHand_y", "Center_x", "Center_y")
    assert np.asarray(ds.mutable).tolist() == [True] * 18 + [False] * 2
    assert (ds.name, ds.sampling_rate, ds.split) == ("catching (simulated)", 60, "random")
    assert "simulated" in ds.description.lower()


def test_a_simulation_is_the_one_that_was_examined():
    """Speeds, elbows, tremor and delays of these trials were compared with those of people."""
    trials = sim.simulate_trials(COUNTS, np.random.default_rng(0))
    golden = {
        ATAXIA: [0.7990545, 0.5876085, 0.4735845, 1.7149761, 0.7144141],
        AUTISM: [0.7787935, 0.5976474, 0.3807855, 1.6442445, 0.7056411],
        CONTROL: [0.7930066, 0.5902527, 0.318568, 1.5096644, 0.709166],
    }
    for group, expected in golden.items():
        points, contact = trials.points[trials.label == group], trials.contact[trials.label == group]
        found = [points.mean(), points.std(), points[0, 30, 6, 0], points[-1, 59, 0, 1], contact.mean()]
        assert np.array(found) == pytest.approx(expected, abs=1e-6)


def test_the_seed_matters_and_subjects_belong_to_one_class(ds):
    other = load_catching(seed=1, test_size=0.5)
    assert np.array_equal(load_catching(seed=0).X_test, ds.X_test)
    assert np.bincount(other.y_test).tolist() == [261, 394, 332]
    assert not np.isin(other.X_test[:, 0, 0], np.concatenate([ds.X_train, ds.X_test])[:, 0, 0]).all()
    subjects = np.concatenate([ds.subjects_train, ds.subjects_test])
    labels = np.concatenate([ds.y_train, ds.y_test])
    assert len(np.unique(subjects)) == 60
    assert [sim.CLASS_NAMES[label] for label in labels] == [subject.split("-")[0] for subject in subjects]


ONE_HOT = np.eye(3)[[0, 1, 2, 0, 1, 2]]


@pytest.fixture
def recorded(tmp_path):
    for i, part in enumerate(("train", "val", "test")):
        np.save(tmp_path / f"X_{part}.npy", np.random.default_rng(i).normal(size=(6, 60, 20)))
        np.save(tmp_path / f"y_{part}.npy", ONE_HOT)
    return tmp_path


def test_reader_merges_validation_into_training_if_there_is_some(recorded):
    ds = load_catching(path=str(recorded))
    X = {part: np.load(recorded / f"X_{part}.npy") for part in ("train", "val", "test")}
    assert np.array_equal(ds.X_train, np.concatenate([X["train"], X["val"]]))
    assert np.array_equal(ds.X_test, X["test"])
    assert (ds.y_train.tolist(), ds.y_test.tolist()) == ([0, 1, 2] * 4, [0, 1, 2] * 2)
    assert (ds.name, ds.split, ds.class_names) == ("catching", "given", ("Ataxia", "Autism", "Control"))
    assert "simulated" not in ds.description.lower() and ds.feature_names[-2:] == ("Center_x", "Center_y")
    assert ds.mutable.tolist() == [True] * 18 + [False] * 2
    # Singleton axes are dropped.
    np.save(recorded / "X_train.npy", X["train"][..., None])
    np.save(recorded / "y_train.npy", ONE_HOT[:, None, :])
    np.save(recorded / "X_test.npy", X["train"][:1, None])  # a single trial stays a trial
    np.save(recorded / "y_test.npy", ONE_HOT[:1])
    for name in ("X_val.npy", "y_val.npy"):
        (recorded / name).unlink()
    ds = load_catching(path=recorded)
    assert np.array_equal(ds.X_train, X["train"]) and ds.X_test.shape == (1, 60, 20)


@pytest.mark.parametrize("missing", ["X_train", "y_val"])
def test_reader_names_a_missing_file(recorded, missing):
    with pytest.raises(DataNotFoundError, match=r"no folder .*nowhere.*X_train\.npy.*simulated"):
        load_catching(path=recorded / "nowhere")
    (recorded / f"{missing}.npy").unlink()
    with pytest.raises(DataNotFoundError, match=rf"holds no {missing}\.npy\. Expected X_train\.npy"):
        load_catching(path=recorded)


@pytest.mark.parametrize(
    ("file", "array", "error", "message"),
    [
        ("X_test", np.zeros((6, 50, 20)), ShapeError, r"must be \(n, 60, 20\).* got shape \(6, 50, 20\)"),
        ("X_test", np.zeros((6, 20, 60)), ShapeError, "Transpose"),
        ("X_train", np.full((6, 60, 20), np.nan), NonFiniteError, ""),
        ("y_val", np.arange(6), LabelError, r"must be \(6, 3\), one-hot .* X_val\.npy; got shape \(6,\)"),
        ("y_train", ONE_HOT * 2, LabelError, r"not one-hot: row 0 is \[2.0, 0.0, 0.0\].*Ataxia, Autism"),
        ("y_train", np.maximum(ONE_HOT, [0, 1, 0]), LabelError, ""),
        ("X_train", np.array([{"pickled": 1}], dtype=object), FileFormatError, r"cannot be read as a NumPy array"),
    ],
)
def test_reader_rejects(recorded, file, array, error, message):
    np.save(recorded / f"{file}.npy", array, allow_pickle=True)
    with pytest.raises(error, match=rf"{file}\.npy.*{message}"):
        load_catching(path=recorded)


def test_an_archive_of_arrays_is_refused(recorded):
    with (recorded / "X_train.npy").open("wb") as handle:
        np.savez(handle, X=np.zeros((6, 60, 20)))
    with pytest.raises(FileFormatError, match=r"X_train\.npy holds an archive of arrays"):
        load_catching(path=recorded)


@pytest.mark.parametrize("group", [ATAXIA, AUTISM, CONTROL])
@pytest.mark.parametrize("severity", [0.65, 1.1])
def test_a_trial_with_the_signs_of_a_group_is_of_that_group(ds, group, severity, monkeypatch):
    oracle = ds.oracle
    oracle(ds.X_test[:1], np.array([0]))  # the versions that the oracle compares with, at the usual severity
    monkeypatch.setattr(sim, "USUAL", severity)
    other = sim.simulate_trials(COUNTS, generator(0, "catching"), group=group).points.reshape(-1, 60, 20)[oracle.test]
    assert (oracle(other.astype(np.float32), np.arange(len(other))) == group).mean() > 0.99


def test_small_noise_is_no_sign_and_half_a_change_is_the_border(ds):
    oracle = ds.oracle
    np.testing.assert_array_equal(oracle(ds.X_test, np.arange(len(ds.X_test))), ds.y_test)
    rows = np.flatnonzero(ds.y_test == AUTISM)
    noise = np.random.default_rng(0).normal(0, 0.0005, ds.X_test.shape)  # half a millimetre
    assert (oracle(ds.X_test + noise, np.arange(len(ds.X_test))) == ds.y_test).mean() > 0.97
    healthy = sim.simulate_trials(COUNTS, generator(0, "catching"), group=CONTROL).points.reshape(-1, 60, 20)
    own, healthy = ds.X_test[rows], healthy[oracle.test][rows]
    assert (oracle(own + 0.1 * (healthy - own), rows) == AUTISM).mean() > 0.97
    assert (oracle(own + 0.9 * (healthy - own), rows) == CONTROL).mean() > 0.97


def test_the_oracle_takes_whole_trials_by_their_rows(ds):
    with pytest.raises(ShapeError, match=r"X must be \(batch, 60, 20\), as all catching trials are"):
        ds.oracle(ds.X_test[:, :50], np.arange(len(ds.X_test)))
    with pytest.raises(ShapeError, match=r"rows must lie in 0\.\.394"):
        ds.oracle(ds.X_test[:1], np.array([395]))
