"""The .ts format and the UEA/UCR archive: sets included in aeon, downloads, and malformed files."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from sparcets.core.errors import (
    DownloadError,
    FileFormatError,
    MissingExtraError,
    NonFiniteError,
    StorageError,
    UnknownNameError,
)
from sparcets.data.load import load_file
from sparcets.data.uea import load_basic_motions, load_uea


@pytest.fixture(autouse=True)
def data_here(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARCETS_DATA", str(tmp_path))


TS_HEAD = """\
# a comment
@problemName mine
@timeStamps false
@univariate false
@equalLength {}
@classLabel true Sick finance
@data
"""
TS = TS_HEAD.format("true") + "1,2,3:-1,-2,-3:Sick\n4,5,6:-4,-5,-6:finance\n7,8,9:-7,-8,-9: Sick\n0,0,1:0,0,2:finance\n"


def test_ts_of_one_file_is_split_and_a_question_mark_is_missing(write):
    ds, gap = (load_file(write(text, "mine.ts"), test_size=0.5) for text in (TS, TS.replace("-5", "?")))
    assert (ds.name, ds.split, ds.class_names, ds.feature_names) == ("mine", "random", ("finance", "sick"), None)
    assert (len(ds.X_train), len(ds.X_test)) == (2, 2)
    sick = next(x for x, y in zip(ds.X_train, ds.y_train, strict=True) if y == 1)
    assert sick.tolist() in ([[1, -1], [2, -2], [3, -3]], [[7, -7], [8, -8], [9, -9]])
    assert gap.n_missing == 1 and gap.X_train.dtype == np.float32
    for X, known in ((gap.X_train, ds.X_train), (gap.X_test, ds.X_test)):
        assert np.array_equal(np.isnan(X), known == -5)


def test_ts_uses_the_test_file_in_the_same_folder(write):
    write(TS_HEAD.format("false") + "1,2,3,4:5,6,7,8:Sick\n", "mine_TEST.ts")
    ds = load_file(write(TS, "mine_TRAIN.ts"))
    assert (ds.name, ds.split) == ("mine", "given")
    assert ds.lengths_train.tolist() == [3] * 4 and ds.lengths_test.tolist() == [4]
    assert ds.X_train[0].tolist() == [[1, -1], [2, -2], [3, -3], [0, 0]]
    assert ds.X_test[0].tolist() == [[1, 5], [2, 6], [3, 7], [4, 8]] and ds.y_train.tolist() == [1, 0, 1, 0]
    for name in ("other_TRAIN", "mine"):  # the first has no test file, the second is not a training part
        alone = load_file(write(TS, f"{name}.ts"), test_size=0.5)
        assert (alone.name, alone.split) == (name, "random")
    write(TS_HEAD.format("true") + "1,2,3:Sick\n", "mine_TEST.ts")
    with pytest.raises(FileFormatError, match=r"mine_TEST.ts has 1 features, .*mine_TRAIN.ts has 2"):
        load_file(write(TS, "mine_TRAIN.ts"))


NO_LABELS = "@timeStamps false\n@univariate false\n@classLabel false\n@data\n1,2,3:4,5,6\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no series"),
        (TS.replace("-2", "two"), "not a valid .ts file: could not convert string to float: 'two'"),
        (TS.replace("4,5,6:", ""), "not a valid .ts file: Inconsistent number of dimensions in case 2"),
        (TS.replace("7,8,9", "7,8"), "not a valid .ts file: .*different number of observations"),
        (TS[:-5], "has the label 'fin', but @classLabel names sick, finance"),
        (TS.replace("-5", "1e39"), "mine.ts has a number beyond ±3.4e.38 in series 1"),
        (NO_LABELS, "has no labels: neither classes"),
    ],
)
def test_malformed_ts(write, text, message):
    with pytest.raises((FileFormatError, NonFiniteError), match=message) as caught:
        load_file(write(text, "mine.ts"))
    assert "mine.ts" in str(caught.value)


def test_series_are_aeons_with_time_before_features():
    aeon = pytest.importorskip("aeon.datasets")
    X, y = aeon.load_japanese_vowels(split="test")
    ds = load_uea(name="JapaneseVowels")
    assert ds.lengths_test.tolist() == [case.shape[1] for case in X]
    assert (ds.lengths_train.min(), ds.lengths_train.max()) == (7, 26)
    for place in (0, 100, 369):
        n = X[place].shape[1]
        np.testing.assert_array_equal(ds.X_test[place, :n], X[place].T.astype(np.float32))
        assert not ds.X_test[place, n:].any()
    assert [ds.class_names[k] for k in ds.y_test] == y.tolist()
    numbers = load_uea(name="Covid3Month")
    assert numbers.task == "regression" and numbers.y_train.shape == (140,) and numbers.y_train.dtype == np.float64


def test_basic_motions():
    ds = load_basic_motions(seed=3)
    assert repr(ds).startswith("Dataset('basic_motions': 40 training + 40 test series, 100 steps, 6 features, 4 cl")
    assert ds.feature_names == ("acc_x", "acc_y", "acc_z", "gyro_x", "gyro_y", "gyro_z")
    assert ds.class_names == ("badminton", "running", "standing", "walking")
    assert (ds.sampling_rate, ds.units, ds.split) == (10.0, None, "given")
    # The first line of the archive's training file: its first channel, and the label Standing.
    np.testing.assert_allclose(ds.X_train[0, :4, 0], [0.079106, 0.079106, -0.903497, 1.116125], rtol=1e-6)
    assert ds.class_names[ds.y_train[0]] == "standing"
    assert np.bincount(ds.y_train).tolist() == np.bincount(ds.y_test).tolist() == [10] * 4


@pytest.fixture
def archive(monkeypatch):
    """Replace aeon's download by a function that writes the files; return the names of the downloaded sets."""
    names = []

    def fetch(name, *, split, extract_path, load_equal_length, load_no_missing):
        assert not load_equal_length and not load_no_missing
        names.append(name)
        for part in ("TRAIN", "TEST"):
            path = Path(extract_path, name, f"{name}_{part}.ts")
            path.parent.mkdir(exist_ok=True)
            path.write_text(TS, encoding="utf-8")
            if name == "Beef":
                raise ConnectionResetError(104, "Connection reset\nby peer")

    monkeypatch.setattr(importlib.import_module("aeon.datasets"), "load_classification", fetch)
    return names


def test_a_set_is_fetched_once_and_an_interrupted_download_leaves_nothing(archive, tmp_path):
    for _ in range(2):
        ds = load_uea(name="Coffee")
        assert (ds.name, len(ds.X_train), len(ds.X_test)) == ("Coffee", 4, 4)
        with pytest.raises(DownloadError, match=r"fetch Beef .*: \[Errno 104\] Connection reset by peer. Try"):
            load_uea(name="Beef")
    assert archive == ["Coffee", "Beef", "Beef"]
    assert sorted(p.name for p in (tmp_path / "uea" / "Coffee").iterdir()) == ["Coffee_TEST.ts", "Coffee_TRAIN.ts"]
    assert not list((tmp_path / "uea" / "Beef").iterdir())


def test_names_folders_and_packages_that_are_not_there(write, archive, monkeypatch):
    with pytest.raises(UnknownNameError, match=r"no data set of the UEA/UCR archive 'Cofee'. Did you mean 'Coffee'"):
        load_uea(name="Cofee")
    write("a file where the folder should be", "uea")
    with pytest.raises(StorageError, match=r"cannot write .*Coffee: .*another folder .SPARCETS_DATA"):
        load_uea(name="Coffee")
    monkeypatch.setitem(importlib.import_module("sys").modules, "aeon.datasets", None)
    with pytest.raises(MissingExtraError, match=r"the UEA/UCR archive needs aeon. .*pip install 'sparcets\[uea\]'"):
        load_basic_motions()
