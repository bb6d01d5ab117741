"""MotionSense: windows, splits, zip and folder, and damaged files."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataNotFoundError, FileFormatError, UnknownNameError
from sparcets.data.fetch import DIGEST
from sparcets.data.load import data_folder
from sparcets.data.motionsense import (
    ARCHIVE,
    FEATURES,
    FOLDER,
    TRIALS,
    content_digest,
    cut_windows,
    find_source,
    load_motionsense,
)

HEADER = "," + ",".join(FEATURES)


def csv_text(n_rows: int, offset: float = 0.0) -> str:
    """Row i holds i + offset in the first feature, plus a hundredth per feature after it."""
    lines = [f"{i}," + ",".join(f"{offset + i + j / 100:.2f}" for j in range(12)) for i in range(n_rows)]
    return "\n".join([HEADER, *lines]) + "\n"


def small_set() -> dict[str, str]:
    """Two people, one trial per activity: 350 rows (3 windows) each, but dws of person 1 has exactly 300 rows (2)."""
    files = {}
    for k, activity in enumerate(TRIALS):
        for subject in (1, 2):
            n_rows = 300 if (activity, subject) == ("dws", 1) else 350
            files[f"{activity}_{k + 1}/sub_{subject}.csv"] = csv_text(n_rows, offset=1000.0 * k + 100_000 * subject)
    return files


def write_folder(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (root / FOLDER / name).write_text(text, newline="")
    return root / FOLDER


def write_zip(root: Path, files: dict[str, str], prefix: str = f"{FOLDER}/") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(prefix + name, text)
    return root / ARCHIVE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path, small_set())


# --- windows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "n_windows"), [(0, 0), (1, 0), (100, 0), (101, 1), (200, 1), (201, 2), (300, 2), (301, 3)]
)
def test_an_exact_multiple_of_100_loses_its_last_window(n_rows: int, n_windows: int) -> None:
    assert cut_windows(np.zeros((n_rows, 12))).shape == (n_windows, 100, 12)


# --- loading ------------------------------------------------------------------------------------------------


def test_values_labels_and_subjects_match(folder: Path) -> None:
    ds = load_motionsense(path=folder, activities="all")
    X = np.concatenate([ds.X_train, ds.X_test])
    y = np.concatenate([ds.y_train, ds.y_test])
    assert ds.subjects_train is not None
    assert ds.subjects_test is not None
    subjects = np.concatenate([ds.subjects_train, ds.subjects_test])
    start = 1000 * y + 100_000 * subjects  # where each recording of small_set() starts
    window = np.round((X[:, 0, 0] - start) / 100)
    assert set(window.tolist()) == {0, 1, 2}
    expected = (start + 100 * window)[:, None, None] + np.arange(100)[:, None] + np.arange(12) / 100
    np.testing.assert_allclose(X, expected, atol=0.02)
    assert len(np.unique(start + window)) == len(X) == 35


def test_features_are_selected_by_name(tmp_path: Path) -> None:
    files = small_set()
    shuffled = {}
    for name, text in files.items():
        rows = [line.split(",") for line in text.splitlines()]
        shuffled[name] = "\r\n".join(",".join([*row[:0:-1], "7"]) for row in rows) + "\r\n"
        shuffled[name] = shuffled[name].replace(",7", ",extra", 1)
    one = load_motionsense(path=write_folder(tmp_path / "a", files))
    other = load_motionsense(path=write_folder(tmp_path / "b", shuffled))
    np.testing.assert_array_equal(one.X_train, other.X_train)


def test_zip_folder_parent_and_data_folder_are_equivalent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = small_set()
    folder = write_folder(tmp_path / "plain", files)
    # Another order, another prefix, and the extra files of macOS archives.
    mac = {f"__MACOSX/{FOLDER}/dws_1/._sub_1.csv": "junk", **dict(reversed(list(files.items()))), ".DS_Store": "junk"}
    archive = write_zip(tmp_path / "data" / "motionsense", mac, prefix="")
    expected = load_motionsense(path=folder)
    for path in (folder.parent, archive, archive.parent, tmp_path / "data", str(folder)):
        ds = load_motionsense(path=path)
        np.testing.assert_array_equal(ds.X_train, expected.X_train)
        np.testing.assert_array_equal(ds.y_test, expected.y_test)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "data"))
    np.testing.assert_array_equal(load_motionsense().X_test, expected.X_test)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "plain"))
    np.testing.assert_array_equal(load_motionsense().X_test, expected.X_test)


def test_split_by_subject(folder: Path) -> None:
    ds = load_motionsense(path=folder, split="subject", test_size=0.5)
    assert ds.subjects_train is not None
    assert ds.subjects_test is not None
    assert set(ds.subjects_train.tolist()) | set(ds.subjects_test.tolist()) == {1, 2}
    assert not set(ds.subjects_train.tolist()) & set(ds.subjects_test.tolist())
    assert ds.split == "subject"


def test_incomplete_set_is_loaded_with_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="sparcets"):
        load_motionsense(path=folder)
    assert "holds 8 of the 264 recordings of dws, jog, ups, wlk" in caplog.text


def test_digest_depends_on_content_only(tmp_path: Path) -> None:
    files = small_set()
    folder = write_folder(tmp_path / "a", files)
    archive = write_zip(tmp_path / "b", {**dict(reversed(list(files.items()))), "README": "other"}, prefix="x/y/")
    assert content_digest(folder) == content_digest(archive)
    changed = {**files, "dws_1/sub_2.csv": files["dws_1/sub_2.csv"].replace("1", "2", 1)}
    assert content_digest(write_folder(tmp_path / "c", changed)) != content_digest(folder)
    renamed = {name.replace("dws_1/", "dws_2/"): text for name, text in files.items()}
    assert content_digest(write_folder(tmp_path / "d", renamed)) != content_digest(folder)


# --- errors ------------------------------------------------------------------------------------------------------


def test_unknown_names_raise_before_reading() -> None:
    with pytest.raises(UnknownNameError, match=r"no activity 'actve'. Did you mean 'active'"):
        load_motionsense(path="nowhere", activities="actve")
    with pytest.raises(UnknownNameError):
        load_motionsense(path="nowhere", activities=["DWS", "ups"])
    with pytest.raises(UnknownNameError):
        load_motionsense(path="nowhere", activities=[["dws"], "ups"])  # type: ignore[list-item]
    with pytest.raises(UnknownNameError, match=r"no split 'subjects'. Did you mean 'subject'"):
        load_motionsense(path="nowhere", split="subjects")
    with pytest.raises(ConfigError, match=r"at least two of dws, jog, .* got 'dws'"):
        load_motionsense(path="nowhere", activities="dws")
    with pytest.raises(ConfigError, match="a list of codes, got 3"):
        load_motionsense(path="nowhere", activities=3)  # type: ignore[arg-type]


def test_missing_data_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "empty"))
    with pytest.raises(DataNotFoundError, match=r"empty.*SPARCETS_DATA.*sparcets data fetch motionsense"):
        load_motionsense()
    with pytest.raises(DataNotFoundError):
        load_motionsense(path=tmp_path)


@pytest.mark.parametrize("keep", [0, 0.5, 0.99])
def test_truncated_zip(tmp_path: Path, keep: float) -> None:
    archive = write_zip(tmp_path, small_set())
    raw = archive.read_bytes()
    archive.write_bytes(raw[: int(keep * len(raw))])
    with pytest.raises(FileFormatError, match=r"not a complete zip archive.*fetch it again"):
        load_motionsense(path=tmp_path)


def test_unreadable_zip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_zip(tmp_path, small_set())

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("sparcets.data.motionsense.ZipFile", refuse)
    with pytest.raises(FileFormatError, match="cannot be read: Permission denied"):
        load_motionsense(path=archive)


def replace_line(text: str, number: int, line: str) -> str:
    lines = text.splitlines()
    lines[number - 1] = line
    return "\n".join(lines) + "\n"


GOOD = "5," + ",".join(["0.1"] * 12)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (GOOD + ",0.1", r"line 42: 14 fields where the header has 13"),
        (GOOD[:-4], r"line 42: 12 fields"),
        ("5,", r"line 42: 2 fields"),
        (GOOD[:-3], r"line 42: userAcceleration\.z is '', not a finite number"),
        (GOOD.replace("0.1", "abc", 1), r"line 42: attitude\.roll is 'abc'"),
        (GOOD.replace("0.1", "nan", 1), r"line 42: attitude\.roll is 'nan'"),
        (GOOD.replace("0.1", "inf", 1), r"line 42: attitude\.roll is 'inf'"),
    ],
)
def test_damaged_rows_are_named_by_file_and_line(folder: Path, line: str, message: str) -> None:
    file = folder / "jog_2" / "sub_2.csv"
    file.write_text(replace_line(file.read_text(), 42, line))
    with pytest.raises(FileFormatError, match=rf"jog_2/sub_2\.csv, {message}"):
        load_motionsense(path=folder)


def test_rows_too_long_and_too_short_do_not_cancel_out(folder: Path) -> None:
    file = folder / "jog_2" / "sub_2.csv"
    text = replace_line(replace_line(file.read_text(), 42, GOOD + ",0.1"), 50, GOOD[:-4])
    file.write_text(text)
    with pytest.raises(FileFormatError, match="line 42: 14 fields"):
        load_motionsense(path=folder)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", csv_text(150).replace("gravity.y", "gravity", 1)])
def test_missing_columns(folder: Path, text: str) -> None:
    (folder / "ups_5" / "sub_1.csv").write_text(text)
    with pytest.raises(FileFormatError, match=r"ups_5/sub_1\.csv, line 1: no column '(attitude.roll|gravity.y)'"):
        load_motionsense(path=folder)


def test_activity_without_a_window(tmp_path: Path) -> None:
    files = {**small_set(), "jog_2/sub_1.csv": csv_text(100), "jog_2/sub_2.csv": csv_text(0)}
    with pytest.raises(FileFormatError, match="no recording of 'jog' with more than 100 rows"):
        load_motionsense(path=write_zip(tmp_path, files))


# --- the real set --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_source() -> Path:
    try:
        return find_source(data_folder())  # the folder named by SPARCETS_DATA
    except DataNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.data
def test_real_windows_match_the_table_of_the_paper(real_source: Path) -> None:
    ds = load_motionsense(path=real_source, activities="all", split="subject")
    y = np.concatenate([ds.y_train, ds.y_test])
    assert dict(zip(ds.class_names, np.bincount(y).tolist(), strict=True)) == {
        "dws": 1283, "jog": 1317, "sit": 3364, "std": 3042, "ups": 1536, "wlk": 3408,
    }  # fmt: skip
    assert ds.subjects_train is not None
    assert ds.subjects_test is not None
    people = set(ds.subjects_train.tolist()) | set(ds.subjects_test.tolist())
    assert people == set(range(1, 25))
    assert len(set(ds.subjects_test.tolist())) == 5
    # Gravity is a unit vector and angles lie in ±π, as the units say.
    np.testing.assert_allclose(np.linalg.norm(ds.X_train[:, :, 3:6], axis=2), 1, atol=1e-3)
    assert np.abs(ds.X_train[:, :, :3]).max() <= np.pi + 1e-4


@pytest.mark.data
def test_real_set_is_the_one_fetch_expects(real_source: Path) -> None:
    assert content_digest(real_source) == DIGEST
