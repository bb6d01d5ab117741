"""User files: .npz round trips, invalid and damaged files, optional dependencies, and every digit of a number."""

import dataclasses
import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcets.core.errors import (
    DataError,
    FileFormatError,
    LabelError,
    MissingExtraError,
    NonFiniteError,
    ShapeError,
    StorageError,
)
from sparcets.data import load as files
from sparcets.data.dataset import Dataset
from sparcets.data.load import load_file, save_dataset
from sparcets.data.recordings import as_stored, as_written
from sparcets.io.files import read_json, write_json
from tests.data.test_tables import assert_same


@st.composite
def datasets(draw):
    """Return a data set with random metadata, any of which may be missing."""
    n, n_features = draw(st.integers(6, 10)), draw(st.integers(1, 3))
    steps = draw(st.integers(1, 4))
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    X = draw(hnp.arrays(np.float32, (n, steps, n_features), elements=finite))
    train, test = np.split(np.random.default_rng(draw(st.integers(0, 9))).permutation(n), [n // 2])
    y = np.zeros(n, dtype=int)
    y[[train[0], test[0]]] = 1
    text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=5)
    unit = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=5)
    word = unit.filter(lambda name: bool(name.strip()))

    def maybe(value):
        return value if draw(st.booleans()) else None

    data = Dataset.from_arrays(
        X,
        y,
        split=(train, test),
        class_names=draw(st.sampled_from([("b", "a"), ("1", "2"), ("10", "9"), ("é", "0")])),
        feature_names=maybe(draw(st.lists(word, min_size=n_features, max_size=n_features, unique=True))),
        units=maybe(draw(st.lists(unit, min_size=n_features, max_size=n_features))),
        sampling_rate=maybe(draw(st.floats(0.1, 1e4))),
        mutable=maybe([True, *draw(st.lists(st.booleans(), min_size=n_features - 1, max_size=n_features - 1))]),
        salient=maybe(X > 0),
        ids=maybe([f"s{i}" for i in range(n)]),
        subjects=maybe(np.array([f"p{i % 4}" for i in range(n)]) if draw(st.booleans()) else np.arange(n)),
        lengths=maybe(np.arange(n) % steps + 1),
        side=maybe({"age": np.linspace(20, 90, n), "dose": np.ones((n, 2), dtype=np.int64)}),
        oracle=lambda series, rows: np.zeros(len(series), dtype=np.int64),
        name=draw(text),
        description=draw(text),
    )
    return dataclasses.replace(data, split=draw(st.sampled_from(["given", "random", "subject"])))


@settings(deadline=None, max_examples=60)
@given(ds=datasets())
def test_npz_round_trip(ds, tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "deep" / "mine.npz"
    assert save_dataset(ds, path) == path
    again = load_file(path)
    assert again.oracle is None
    assert_same(ds, again, but=("oracle", "side_train", "side_test"))
    for part in ("side_train", "side_test"):
        one, other = (getattr(data, part) or {} for data in (ds, again))
        assert one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)
    assert [p.name for p in path.parent.iterdir()] == ["mine.npz"]


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def series(n=10):
    return {"X": np.random.default_rng(0).normal(size=(n, 4, 2)), "y": np.arange(n) % 2}


def in_parts(**more):
    return {f"{key}_{part}": value for key, value in series().items() for part in ("train", "test")} | more


def test_npz_of_one_part_is_split(tmp_path):
    arrays, path = series(), tmp_path / "mine.npz"
    X, subjects = arrays["X"], np.arange(10) // 2
    about = {"subjects": subjects, "units": "mm", "mutable": ["f1"], "feature_names": ["f0", "f1"]}
    ds = load_file(save(path, **arrays, **about), test_size=0.4, seed=5)
    assert ds.split == "subject" and ds.mutable.tolist() == [False, True]
    assert_same(ds, Dataset.from_arrays(X, arrays["y"], test_size=0.4, seed=5, name="mine", **about))
    arrays["X"][1::2, 3:] = np.nan  # padding may hold anything
    plain = load_file(save(path, **arrays, lengths=[4, 3] * 5, salient=(X > 0).astype(int)))
    assert plain.salient_train.dtype == bool and plain.split == "random"
    np.testing.assert_array_equal(plain.salient_test[:, :3], plain.X_test[:, :3] > 0)
    for X, lengths in ((plain.X_train, plain.lengths_train), (plain.X_test, plain.lengths_test)):
        assert not X[lengths == 3, 3:].any() and X[lengths == 4, 3:].any()


@pytest.mark.parametrize(
    ("y", "names"),
    [
        ([1, 2], ("1", "2")),
        ([10.0, 9.0], ("9", "10")),
        ([True, False], ("0", "1")),
        ([b"well", b"sick"], ("sick", "well")),
        (["b", "a"], ("a", "b")),
    ],
)
def test_npz_labels_become_names(tmp_path, y, names):
    ds = load_file(save(tmp_path / "mine.npz", X=np.arange(20.0).reshape(10, 2, 1), y=np.array(y * 5)))
    assert ds.class_names == names
    assert set(ds.y_train[ds.X_train[:, 0, 0] % 4 == 0].tolist()) == {int(y[0] > y[1])}


ONE = np.ones((10, 4, 2))
INVALID_NPZ = [
    ({"X": ONE}, FileFormatError, "holds no array 'y'; there are: X. Needed are X and y, or"),
    ({"X_train": ONE, "y_train": [0, 1] * 5}, FileFormatError, "holds no array 'X_test'"),
    (in_parts(lengths_train=[4] * 10), FileFormatError, "holds no array 'lengths_test'.* for both parts or none"),
    (series() | {"subject": [1] * 10}, FileFormatError, "unknown array 'subject'. Did you mean 'subjects'"),
    (series() | in_parts(), FileFormatError, "an unknown array 'X'"),
    (series() | {"split": "random"}, ShapeError, "split must be 10 words, 'train' or 'test', one per series, got 'ra"),
    (series() | {"split": [0, 1] * 5}, DataError, r"split must be .* got 0 for series 0. Convert flags"),
    (in_parts(split=["train"] * 20), FileFormatError, "holds 'X_train' and 'X_test', so that 'split' has no meaning."),
    (series() | {"X": np.zeros((10, 4))}, ShapeError, "mine.npz: X "),
    (series() | {"y": [0, 1]}, ShapeError, r"y must be of shape .10,., as X is .10, 4, 2., got .2,"),
    (series() | {"salient": np.ones((10, 4))}, ShapeError, "salient must be of shape .10, 4, 2."),
    (series() | {"y": [3] * 10}, LabelError, "mine.npz: y .*'3'"),
    (series() | {"mutable": [0, 1]}, FileFormatError, "mutable must be 2 flags .bool. or names"),
    (series() | {"sampling_rate": "10 Hz"}, FileFormatError, "sampling_rate must be one number of Hz"),
    (series() | {"y": np.array([None] * 10)}, FileFormatError, "cannot be read: Object arrays.*no objects"),
    (in_parts(y_test=["0", "1"] * 5), FileFormatError, "y_train and y_test have different types, text and numbers"),
    (in_parts(X_test=ONE[:, :2]), ShapeError, "X_train and X_test differ in steps or features"),
    (in_parts(X_test=np.where(np.eye(10)[1, :, None, None], np.nan, ONE)), NonFiniteError, "X_test holds nothing b"),
    *(
        (series() | {k: np.array([*(f"n{i}" for i in range(n - 1)), "\udc80"])}, DataError, f"{k} holds '.udc80'.*h")
        for k, n in (("feature_names", 2), ("class_names", 2), ("units", 2), ("ids", 10), ("subjects", 10))
    ),
]


@pytest.mark.parametrize(("arrays", "error", "message"), INVALID_NPZ)
def test_invalid_npz(tmp_path, arrays, error, message):
    with pytest.raises(error, match=message) as caught:
        load_file(save(tmp_path / "mine.npz", **arrays))
    assert "mine.npz" in str(caught.value)


def test_saving_is_atomic_and_takes_no_objects(tmp_path, monkeypatch):
    ds = Dataset.from_arrays(**series())
    path = save_dataset(ds, tmp_path / "mine.npz")
    before = path.read_bytes()

    def full(file, arrays):
        file.write(b"partial")
        raise OSError(28, "No space left on device")

    people = {"subjects_train": np.array([None] * 8), "subjects_test": np.array([1, 2])}
    with pytest.raises(DataError, match="subjects_train holds Python objects"):
        save_dataset(dataclasses.replace(ds, **people), path)
    monkeypatch.setattr(files, "write_npz", full)
    with pytest.raises(StorageError, match="No space left on device"):
        save_dataset(ds, path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileFormatError, match=r"saved as .npz, got .*mine.csv. Choose .*mine.npz"):
        save_dataset(ds, tmp_path / "mine.csv")


@pytest.mark.parametrize(
    ("module", "name", "extra"), [("pyarrow", "mine.parquet", "parquet"), ("aeon.datasets", "mine.ts", "uea")]
)
def test_missing_extras(write, monkeypatch, module, name, extra):
    monkeypatch.setitem(sys.modules, module, None)
    needs = rf"a \{Path(name).suffix} file needs .*pip install 'sparcets\[{extra}\]'"
    with pytest.raises(MissingExtraError, match=needs):
        load_file(write("", name))


def test_a_file_without_read_permission_and_one_of_any_name(write, tmp_path, monkeypatch):
    odd = tmp_path / os.fsdecode(b"mine\xff\n.npz")
    with suppress(OSError, UnicodeError):  # such names cannot be given everywhere
        ds = load_file(save(odd, **series()))
        assert ds.name == "mine��" and load_file(save_dataset(ds, tmp_path / "again.npz")).name == ds.name
        write_json(tmp_path / "run.json", {"dataset": str(odd), "°": 1})
        assert read_json(tmp_path / "run.json", "a run") == {"dataset": str(odd), "°": 1}
    path = write("label,x_0\n")

    def closed(self, *args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(FileFormatError, match=r"mine.csv cannot be read: Permission denied"):
        load_file(path)


@pytest.mark.parametrize("number", [1e9 + 1, 16777217.0, 1.23456789012, 0.1 + 1e-9, 4_512_345.678])
def test_float32_is_used_where_it_writes_the_same_digits(number):
    rng = np.random.default_rng(0)
    single = (rng.normal(size=4_000) * 10.0 ** rng.integers(-37, 38, 4_000)).astype(np.float32)
    single = single[np.abs(single) > 1e-37]
    text = single.astype(str).astype(np.float64)
    assert as_written(text).dtype == np.float32
    np.testing.assert_array_equal(as_written(text), single)
    values = np.array([0.5, number, -0.1])  # one number with more digits keeps all of them
    assert as_written(values).dtype == np.float64 and (as_written(values) == values).all()
    assert as_stored(np.array([0.5])).dtype == np.float32 and as_stored(values).dtype == np.float64


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".ts", ".npz"])
def test_files_keep_every_digit(tmp_path, suffix):
    X = (1.7e9 + 0.1 + np.arange(3600.0)).reshape(12, 100, 3)  # float32 has 128 s between neighbours
    path = tmp_path / f"mine{suffix}"
    if suffix == ".npz":
        save(path, X=X, y=np.arange(12) % 2)
    elif suffix == ".ts":
        rows = [":".join(",".join(map(repr, f.tolist())) for f in x.T) + f":{i % 2}" for i, x in enumerate(X)]
        head = "@timeStamps false\n@univariate false\n@dimensions 3\n@equalLength true\n@seriesLength 100\n"
        path.write_text(head + "@classLabel true 0 1\n@data\n" + "\n".join(rows) + "\n")
    else:
        names = [f"{name}_{t}" for t in range(100) for name in "abc"]
        frame = pd.DataFrame(X.reshape(12, -1), columns=names).assign(label=np.arange(12) % 2)
        frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    ds = load_file(path)
    assert ds.X_train.dtype == np.float64
    np.testing.assert_array_equal(np.sort(np.concatenate([ds.X_train, ds.X_test]), axis=None), X.ravel())
