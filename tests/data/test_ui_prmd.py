"""UI-PRMD: metadata, split by subject, and damaged files."""

import numpy as np
import pytest

from sparcets.core.errors import DataNotFoundError, FileFormatError, NonFiniteError, ShapeError, UnknownNameError
from sparcets.data.ui_prmd import FEATURES, FILE, load_ui_prmd


def arrays():
    """Ten people, two repetitions of each class; every entry holds 10·subject + class."""
    subject = np.repeat(np.arange(1, 11, dtype=np.int16), 4)
    correct = np.tile([True, True, False, False], 10)
    X = np.broadcast_to((10.0 * subject + ~correct)[:, None, None], (40, 100, 12)).astype(np.float32)
    y = np.where(correct, "correct", "incorrect")
    return {"X": X, "y": y, "subject": subject, "feature_names": np.array(FEATURES), "movement": np.full(40, 7)}


def write(folder, **changes):
    content = {key: value for key, value in {**arrays(), **changes}.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / FILE, **content)
    return folder / FILE


def test_metadata_and_where_it_is_found(tmp_path, monkeypatch):
    file = write(tmp_path / "ui_prmd")
    ds = load_ui_prmd(path=file)
    assert ds.class_names == ("correct", "incorrect") and ds.units == ("mm",) * 12 and ds.sampling_rate is None
    assert ds.feature_names[2:5] == ("shoulder_z", "elbow_x", "elbow_y")
    assert ds.split == "subject" and ds.X_train.dtype == np.float32
    for X, y, subjects in ((ds.X_train, ds.y_train, ds.subjects_train), (ds.X_test, ds.y_test, ds.subjects_test)):
        np.testing.assert_array_equal(X[:, 0, 0], 10 * subjects + y)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))
    for path in (str(file.parent), tmp_path, None):
        np.testing.assert_array_equal(load_ui_prmd(path=path).X_test, ds.X_test)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(DataNotFoundError, match=r"UI-PRMD is not in .*from the authors.*ui_prmd.*SPARCETS_DATA"):
        load_ui_prmd()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        *(({key: None}, FileFormatError, f"no array '{key}', only .*movement") for key in arrays() if key[0] != "m"),
        ({"feature_names": np.array(FEATURES[::-1])}, FileFormatError, "names the features finger_z, .* in this order"),
        ({"X": np.where(np.arange(48000).reshape(40, 100, 12) == 14, np.nan, 0)}, NonFiniteError, r"X in .*\[0, 1, 2"),
        ({"X": np.zeros((100, 12))}, ShapeError, "."),
        ({"y": np.array(["corect"] * 40)}, UnknownNameError, "."),
    ],
)
def test_invalid_arrays(tmp_path, change, error, message):
    with pytest.raises(error, match=message):
        load_ui_prmd(path=write(tmp_path, **change))


@pytest.mark.data
def test_real_arm_has_the_geometry_of_an_arm():
    try:
        ds = load_ui_prmd()  # from the folder named by SPARCETS_DATA
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert ds.X_train.shape[0] + ds.X_test.shape[0] == 799
    assert np.bincount(np.concatenate([ds.y_train, ds.y_test])).tolist() == [400, 399]
    joints = ds.X_train.reshape(len(ds.X_train), 100, 4, 3)
    upper, lower = (np.linalg.norm(joints[:, :, i + 1] - joints[:, :, i], axis=-1) for i in (0, 1))
    # In millimetres, about 30 and 25 cm, and nearly constant within a repetition.
    assert 270 < upper.mean() < 330 and 220 < lower.mean() < 280
    assert np.median(lower.std(1)) < 5
