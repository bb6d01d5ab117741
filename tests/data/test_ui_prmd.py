"""UI-PRMD: metadata, split by subject, and damaged files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparcets.core.errors import (
    DataError,
    DataNotFoundError,
    FileFormatError,
    LabelError,
    NonFiniteError,
    ShapeError,
    UnknownNameError,
)
from sparcets.data.ui_prmd import FEATURES, FILE, load_ui_prmd


def arrays() -> dict[str, Any]:
    """Ten people, two repetitions of each class; every entry holds 10·subject + class."""
    subject = np.repeat(np.arange(1, 11, dtype=np.int16), 4)
    correct = np.tile([True, True, False, False], 10)
    X = np.broadcast_to((10.0 * subject + ~correct)[:, None, None], (40, 100, 12)).astype(np.float32)
    return {
        "X": X,
        "y": np.where(correct, "correct", "incorrect"),
        "subject": subject,
        "feature_names": np.array(FEATURES),
        "movement": np.full(40, 7),
    }


def write(folder: Path, **changes: Any) -> Path:
    content = {key: value for key, value in {**arrays(), **changes}.items() if value is not None}
    folder.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(folder / FILE, **content)
    return folder / FILE


def test_metadata(tmp_path: Path) -> None:
    ds = load_ui_prmd(path=write(tmp_path))
    assert ds.class_names == ("correct", "incorrect")
    assert ds.feature_names == (
        "shoulder_x", "shoulder_y", "shoulder_z", "elbow_x", "elbow_y", "elbow_z",
        "wrist_x", "wrist_y", "wrist_z", "finger_x", "finger_y", "finger_z",
    )  # fmt: skip
    assert ds.units == ("mm",) * 12
    assert ds.sampling_rate is None
    assert ds.split == "subject"
    assert ds.X_train.dtype == np.float32
    for X, y, subjects in ((ds.X_train, ds.y_train, ds.subjects_train), (ds.X_test, ds.y_test, ds.subjects_test)):
        assert subjects is not None
        np.testing.assert_array_equal(X[:, 0, 0], 10 * subjects + y)


def test_search_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "ui_prmd")
    expected = load_ui_prmd(path=file).X_test
    for path in (file, str(file.parent), tmp_path):
        np.testing.assert_array_equal(load_ui_prmd(path=path).X_test, expected)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))
    np.testing.assert_array_equal(load_ui_prmd().X_test, expected)


def test_missing_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))
    with pytest.raises(DataNotFoundError, match=r"UI-PRMD is not in .*from the authors.*ui_prmd.*SPARCETS_DATA"):
        load_ui_prmd()


@pytest.mark.parametrize("raw", [b"", b"not a file of arrays", b"PK\x03\x04 cut off"])
def test_junk(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / FILE).write_bytes(raw)
    with pytest.raises(
        FileFormatError, match=r"is not a .npz file, or it is truncated.*from the authors|cannot be read"
    ):
        load_ui_prmd(path=tmp_path)


@pytest.mark.parametrize("key", ["X", "y", "subject", "feature_names"])
def test_missing_array(tmp_path: Path, key: str) -> None:
    with pytest.raises(FileFormatError, match=f"has no array '{key}', only .*movement"):
        load_ui_prmd(path=write(tmp_path, **{key: None}))


def test_features_in_another_order(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"names the features finger_z, .* in this order"):
        load_ui_prmd(path=write(tmp_path, feature_names=np.array(FEATURES[::-1])))


def test_invalid_arrays(tmp_path: Path) -> None:
    X = arrays()["X"].copy()
    X[3, 5, 2] = np.nan
    with pytest.raises(NonFiniteError, match=rf"X in .*{FILE} .*\[3, 5, 2\]"):
        load_ui_prmd(path=write(tmp_path, X=X))
    with pytest.raises(ShapeError):
        load_ui_prmd(path=write(tmp_path, X=X[0]))
    with pytest.raises(LabelError):
        load_ui_prmd(path=write(tmp_path, y=arrays()["y"][:7]))
    with pytest.raises(UnknownNameError):
        load_ui_prmd(path=write(tmp_path, y=np.array(["corect"] * 40)))
    with pytest.raises(ShapeError):
        load_ui_prmd(path=write(tmp_path, subject=np.arange(3)))
    with pytest.raises(DataError):
        load_ui_prmd(path=write(tmp_path), test_size=0)


@pytest.mark.data
def test_real_arm_has_the_geometry_of_an_arm() -> None:
    try:
        ds = load_ui_prmd()  # from the folder named by SPARCETS_DATA
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert ds.X_train.shape[0] + ds.X_test.shape[0] == 799
    assert np.bincount(np.concatenate([ds.y_train, ds.y_test])).tolist() == [400, 399]
    joints = ds.X_train.reshape(len(ds.X_train), 100, 4, 3)
    upper, lower = (np.linalg.norm(joints[:, :, i + 1] - joints[:, :, i], axis=-1) for i in (0, 1))
    # In millimetres, about 30 and 25 cm, and nearly constant within a repetition.
    assert 270 < upper.mean() < 330
    assert 220 < lower.mean() < 280
    assert np.median(lower.std(1)) < 5
