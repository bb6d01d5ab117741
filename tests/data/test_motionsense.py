"""MotionSense: windows, splits, zip and folder, and damaged files."""

import logging
import zipfile

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataNotFoundError, FileFormatError, UnknownNameError
from sparcets.data import motionsense
from sparcets.data.fetch import DIGEST
from sparcets.data.load import data_folder


def csv_text(n_rows, offset=0.0):
    """Row i holds i + offset in the first feature, plus a hundredth per feature after it."""
    lines = [f"{i}," + ",".join(f"{offset + i + j / 100:.2f}" for j in range(12)) for i in range(n_rows)]
    return "\n".join(["," + ",".join(motionsense.FEATURES), *lines]) + "\n"


def small_set():
    """Two people, one trial per activity: 350 rows (3 windows) each, but dws of person 1 has exactly 300 rows (2)."""
    files = {}
    for k, activity in enumerate(motionsense.TRIALS):
        for subject in (1, 2):
            n_rows = 300 if (activity, subject) == ("dws", 1) else 350
            files[f"{activity}_{k + 1}/sub_{subject}.csv"] = csv_text(n_rows, offset=1000.0 * k + 100_000 * subject)
    return files


def write_folder(root, files):
    for name, text in files.items():
        (root / motionsense.FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (root / motionsense.FOLDER / name).write_text(text, newline="")
    return root / motionsense.FOLDER


def write_zip(root, files, prefix=f"{motionsense.FOLDER}/"):
    root.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(root / motionsense.ARCHIVE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(prefix + name, text)
    return root / motionsense.ARCHIVE


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path, small_set())


@pytest.mark.parametrize(
    ("n_rows", "n_windows"), [(0, 0), (1, 0), (100, 0), (101, 1), (200, 1), (201, 2), (300, 2), (301, 3)]
)
def test_an_exact_multiple_of_100_loses_its_last_window(n_rows, n_windows):
    assert motionsense.cut_windows(np.zeros((n_rows, 12))).shape == (n_windows, 100, 12)


def test_values_labels_and_subjects_match(folder):
    ds = motionsense.load_motionsense(path=folder, activities="all")
    X, y = np.concatenate([ds.X_train, ds.X_test]), np.concatenate([ds.y_train, ds.y_test])
    subjects = np.concatenate([ds.subjects_train, ds.subjects_test])
    start = 1000 * y + 100_000 * subjects  # where each recording of small_set() starts
    window = np.round((X[:, 0, 0] - start) / 100)
    assert set(window.tolist()) == {0, 1, 2}
    expected = (start + 100 * window)[:, None, None] + np.arange(100)[:, None] + np.arange(12) / 100
    np.testing.assert_allclose(X, expected, atol=0.02)
    assert len(np.unique(start + window)) == len(X) == 35
    by_person = motionsense.load_motionsense(path=folder, split="subject", test_size=0.5)
    assert by_person.split == "subject"
    assert {*by_person.subjects_train.tolist()} ^ {*by_person.subjects_test.tolist()} == {1, 2}


def test_features_are_selected_by_name(tmp_path):
    files, shuffled = small_set(), {}
    for name, text in files.items():
        rows = [line.split(",") for line in text.splitlines()]
        shuffled[name] = "\r\n".join(",".join([*row[:0:-1], "7"]) for row in rows) + "\r\n"
        shuffled[name] = shuffled[name].replace(",7", ",extra", 1)
    one = motionsense.load_motionsense(path=write_folder(tmp_path / "a", files))
    other = motionsense.load_motionsense(path=write_folder(tmp_path / "b", shuffled))
    np.testing.assert_array_equal(one.X_train, other.X_train)


def test_zip_folder_parent_and_data_folder_are_equivalent(tmp_path, monkeypatch, caplog):
    files = small_set()
    folder = write_folder(tmp_path / "plain", files)
    # Another order, another prefix, and the extra files of macOS archives.
    mac = {
        f"__MACOSX/{motionsense.FOLDER}/dws_1/._sub_1.csv": "junk",
        **dict(reversed(list(files.items()))),
        ".DS_Store": "junk",
    }
    archive = write_zip(tmp_path / "data" / "motionsense", mac, prefix="")
    with caplog.at_level(logging.WARNING, logger="sparcets"):
        expected = motionsense.load_motionsense(path=folder)
    assert "holds 8 of the 264 recordings of dws, jog, ups, wlk" in caplog.text
    for path in (folder.parent, archive, archive.parent, tmp_path / "data", str(folder)):
        ds = motionsense.load_motionsense(path=path)
        np.testing.assert_array_equal(ds.X_train, expected.X_train)
        np.testing.assert_array_equal(ds.y_test, expected.y_test)
    for root in ("data", "plain"):
        monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / root))
        np.testing.assert_array_equal(motionsense.load_motionsense().X_test, expected.X_test)
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path / "empty"))
    for path in (None, tmp_path):
        with pytest.raises(DataNotFoundError, match=r"SPARCETS_DATA.*sparcets data fetch motionsense"):
            motionsense.load_motionsense(path=path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"activities": "actve"}, UnknownNameError, r"no activity 'actve'. Did you mean 'active'"),
        ({"activities": ["DWS", "ups"]}, UnknownNameError, "no activity 'DWS'"),
        ({"split": "subjects"}, UnknownNameError, r"no split 'subjects'. Did you mean 'subject'"),
        ({"activities": "dws"}, ConfigError, r"at least two of dws, jog, .* got 'dws'"),
        ({"activities": 3}, ConfigError, "a list of codes, got 3"),
    ],
)
def test_unknown_names_raise_before_reading(options, error, message):
    with pytest.raises(error, match=message):
        motionsense.load_motionsense(path="nowhere", **options)


GOOD = "5," + ",".join(["0.1"] * 12)
LINES = csv_text(350).splitlines()


def with_lines(changes):
    return "\n".join([*(changes.get(i, line) for i, line in enumerate(LINES, 1)), ""])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (with_lines({42: GOOD + ",0.1"}), r"line 42: 14 fields where the header has 13"),
        (with_lines({42: GOOD + ",0.1", 50: GOOD[:-4]}), "line 42: 14 fields"),  # which do not cancel out
        (with_lines({42: GOOD[:-4]}), r"line 42: 12 fields"),
        (with_lines({42: GOOD[:-3]}), r"line 42: userAcceleration\.z is '', not a finite number"),
        (with_lines({42: GOOD.replace("0.1", "abc", 1)}), r"line 42: attitude\.roll is 'abc'"),
        (with_lines({42: GOOD.replace("0.1", "inf", 1)}), r"line 42: attitude\.roll is 'inf'"),
        ("", r"line 1: no column 'attitude.roll'"),
        (csv_text(150).replace("gravity.y", "gravity", 1), r"line 1: no column 'gravity.y'"),
    ],
)
def test_damaged_files_are_named_with_the_line(folder, text, message):
    (folder / "jog_2" / "sub_2.csv").write_text(text)
    with pytest.raises(FileFormatError, match=rf"jog_2/sub_2\.csv, {message}"):
        motionsense.load_motionsense(path=folder)


def test_activity_without_a_window(tmp_path):
    files = {**small_set(), "jog_2/sub_1.csv": csv_text(100), "jog_2/sub_2.csv": csv_text(0)}
    with pytest.raises(FileFormatError, match="no recording of 'jog' with more than 100 rows"):
        motionsense.load_motionsense(path=write_zip(tmp_path, files))


@pytest.mark.data
def test_real_windows_match_the_table_of_the_paper():
    try:
        source = motionsense.find_source(data_folder())  # the folder named by SPARCETS_DATA
    except DataNotFoundError as error:
        pytest.skip(str(error))
    assert motionsense.content_digest(source) == DIGEST
    ds = motionsense.load_motionsense(path=source, activities="all", split="subject")
    y = np.concatenate([ds.y_train, ds.y_test])
    counts = {"dws": 1283, "jog": 1317, "sit": 3364, "std": 3042, "ups": 1536, "wlk": 3408}
    assert dict(zip(ds.class_names, np.bincount(y).tolist(), strict=True)) == counts
    train, test = set(ds.subjects_train.tolist()), set(ds.subjects_test.tolist())
    assert train | test == set(range(1, 25)) and len(test) == 5
    # Gravity is a unit vector and angles lie in ±π, as the units say.
    np.testing.assert_allclose(np.linalg.norm(ds.X_train[:, :, 3:6], axis=2), 1, atol=1e-3)
    assert np.abs(ds.X_train[:, :, :3]).max() <= np.pi + 1e-4
