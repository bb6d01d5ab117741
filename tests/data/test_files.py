"""User files: .npz round trips, invalid and damaged files, optional dependencies."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparcets.core.errors import (
    DataError,
    DataNotFoundError,
    FileFormatError,
    LabelError,
    MissingExtraError,
    NonFiniteError,
    ShapeError,
    SparcetsError,
    StorageError,
)
from sparcets.data import load as files
from sparcets.data.dataset import Dataset
from sparcets.data.load import SUFFIXES, load_file, save_dataset
from sparcets.io.files import read_json, write_json
from tests.data.test_tables import Write, assert_same


def test_unknown_kind_and_missing_file(tmp_path: Path, write: Write) -> None:
    with pytest.raises(FileFormatError, match=r"mine.xlsx has an unknown format. Known: .csv, .npz, .parquet, .ts."):
        load_file(write("", "mine.xlsx"))
    with pytest.raises(DataNotFoundError):
        load_file(tmp_path / "nowhere.npz")
    assert sorted(SUFFIXES) == [".csv", ".npz", ".parquet", ".ts"]


# --------------------------------------------------------------------------------------------------------------- .npz


@st.composite
def datasets(draw: st.DrawFn) -> Dataset:
    """Return a data set with random metadata, any of which may be missing."""
    n, n_features = draw(st.integers(6, 10)), draw(st.integers(1, 3))
    steps = draw(st.integers(1, 4))
    finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
    X = draw(hnp.arrays(np.float32, (n, steps, n_features), elements=finite))
    classes = draw(st.sampled_from([("b", "a"), ("1", "2"), ("10", "9"), ("é", "0")]))
    train, test = np.split(np.random.default_rng(draw(st.integers(0, 9))).permutation(n), [n // 2])
    y = np.zeros(n, dtype=int)
    y[[train[0], test[0]]] = 1
    text = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=5)
    unit = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=5)
    word = unit.filter(lambda name: bool(name.strip()))

    def maybe(value: Any) -> Any:
        return value if draw(st.booleans()) else None

    return Dataset.from_rows(
        X,
        y,
        train=train,
        test=test,
        class_names=classes,
        feature_names=maybe(draw(st.lists(word, min_size=n_features, max_size=n_features, unique=True))),
        units=maybe(draw(st.lists(unit, min_size=n_features, max_size=n_features))),
        sampling_rate=maybe(draw(st.floats(0.1, 1e4))),
        mutable=maybe([True, *draw(st.lists(st.booleans(), min_size=n_features - 1, max_size=n_features - 1))]),
        salient=maybe(X > 0),
        subjects=maybe(np.array([f"p{i % 4}" for i in range(n)]) if draw(st.booleans()) else np.arange(n)),
        lengths=maybe(np.arange(n) % steps + 1),
        oracle=lambda series, rows: np.zeros(len(series), dtype=np.int64),
        name=draw(text),
        description=draw(text),
        split=draw(st.sampled_from(["given", "random", "subject"])),
    )


@settings(deadline=None, max_examples=60)
@given(ds=datasets())
def test_npz_round_trip(ds: Dataset, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("npz") / "deep" / "mine.npz"
    assert save_dataset(ds, path) == path
    again = load_file(path)
    assert again.oracle is None
    assert_same(ds, again)
    assert [p.name for p in path.parent.iterdir()] == ["mine.npz"]


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def series(n: int = 10) -> dict[str, Any]:
    return {"X": np.random.default_rng(0).normal(size=(n, 4, 2)), "y": np.arange(n) % 2}


def test_the_padding_of_a_npz_may_hold_anything(tmp_path: Path) -> None:
    arrays = series()
    X = arrays["X"].copy()
    X[1::2, 3:] = np.nan
    ds = load_file(save(tmp_path / "mine.npz", X=X, y=arrays["y"], lengths=[4, 3] * 5))
    for X, lengths in ((ds.X_train, ds.lengths_train), (ds.X_test, ds.lengths_test)):
        assert not X[lengths == 3, 3:].any() and X[lengths == 4, 3:].any()


def test_npz_of_one_part_is_split(tmp_path: Path) -> None:
    arrays = series()
    X, y = arrays["X"], arrays["y"]
    subjects = np.arange(10) // 2
    path = save(
        tmp_path / "mine.npz", **arrays, subjects=subjects, units="mm", mutable=["f1"], feature_names=["f0", "f1"]
    )
    ds = load_file(path, test_size=0.4, seed=5)
    expected = Dataset.from_arrays(
        X,
        y,
        subjects=subjects,
        test_size=0.4,
        seed=5,
        units="mm",
        mutable=["f1"],
        feature_names=["f0", "f1"],
        name="mine",
    )
    assert ds.split == "subject"
    assert ds.mutable.tolist() == [False, True]
    assert_same(ds, expected)
    plain = load_file(save(path, **arrays, lengths=[4, 3] * 5, salient=(X > 0).astype(int)))
    assert plain.salient_train.dtype == bool
    assert plain.split == "random"
    np.testing.assert_array_equal(plain.salient_test[:, :3], plain.X_test[:, :3] > 0)  # padding becomes zero


@pytest.mark.parametrize("kind", [str, bytes])
def test_npz_with_its_own_split(tmp_path: Path, kind: type) -> None:
    arrays = series()
    split = np.where(np.arange(10) % 5 < 2, "test", "train")
    ds = load_file(save(tmp_path / "mine.npz", **arrays, split=split.astype(kind), subjects=["p"] * 10))
    assert ds.split == "given" and ds.subjects_test is not None
    np.testing.assert_array_equal(ds.X_test, arrays["X"][[0, 1, 5, 6]])
    np.testing.assert_array_equal(ds.y_test, arrays["y"][[0, 1, 5, 6]])
    np.testing.assert_array_equal(ds.X_train, arrays["X"][[2, 3, 4, 7, 8, 9]])


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
def test_npz_labels_become_names(tmp_path: Path, y: list[Any], names: tuple[str, ...]) -> None:
    ds = load_file(save(tmp_path / "mine.npz", X=np.arange(20.0).reshape(10, 2, 1), y=np.array(y * 5)))
    assert ds.class_names == names
    assert set(ds.y_train[ds.X_train[:, 0, 0] % 4 == 0].tolist()) == {int(y[0] > y[1])}


INVALID_NPZ: dict[str, tuple[Callable[[], dict[str, Any]], type[SparcetsError], str]] = {
    "no y": (lambda: {"X": series()["X"]}, FileFormatError, "holds no array 'y'; there are: X. Needed are X and y, or"),
    "nothing": (dict, FileFormatError, "holds no array 'X'; there are: none"),
    "no test": (
        lambda: {"X_train": series()["X"], "y_train": series()["y"]},
        FileFormatError,
        "holds no array 'X_test'",
    ),
    "half of the lengths": (
        lambda: {f"{k}_{p}": v for k, v in series().items() for p in ("train", "test")} | {"lengths_train": [4] * 10},
        FileFormatError,
        "holds no array 'lengths_test'.* for both parts or none",
    ),
    "typo": (
        lambda: series() | {"subject": [1] * 10},
        FileFormatError,
        "holds an unknown array 'subject'. Did you mean 'subjects'",
    ),
    "both": (
        lambda: series() | {f"{k}_{p}": v for k, v in series().items() for p in ("train", "test")},
        FileFormatError,
        "an unknown array 'X'",
    ),
    "split of one": (
        lambda: series() | {"split": "random"},
        ShapeError,
        "mine.npz: split must be 10 words, 'train' or 'test', one per series, got 'random'. Leave it out for a random",
    ),
    "split by numbers": (
        lambda: series() | {"split": [0, 1] * 5},
        DataError,
        r"mine.npz: split must be .* got 0 for series 0. Convert flags .* np.where\(flags, 'test', 'train'\)",
    ),
    "split of two parts": (
        lambda: {f"{k}_{p}": v for k, v in series().items() for p in ("train", "test")} | {"split": ["train"] * 20},
        FileFormatError,
        "holds 'X_train' and 'X_test', so that 'split' has no meaning. Leave it out",
    ),
    "two axes": (
        lambda: series() | {"X": np.zeros((10, 4))},
        ShapeError,
        "mine.npz: X ",
    ),
    "NaN": (lambda: series() | {"X": np.full((10, 4, 2), np.nan)}, NonFiniteError, "mine.npz: X "),
    "too few labels": (
        lambda: series() | {"y": [0, 1]},
        ShapeError,
        r"y must be of shape .10,., as X is .10, 4, 2., got .2,",
    ),
    "salient": (lambda: series() | {"salient": np.ones((10, 4))}, ShapeError, "salient must be of shape .10, 4, 2."),
    "fractions": (lambda: series() | {"y": np.linspace(0, 1, 10)}, LabelError, "mine.npz: y "),
    "one class": (lambda: series() | {"y": [3] * 10}, LabelError, "mine.npz: y .*'3'"),
    "mutable": (lambda: series() | {"mutable": [0, 1]}, FileFormatError, "mutable must be 2 flags .bool. or names"),
    "rate": (lambda: series() | {"sampling_rate": "10 Hz"}, FileFormatError, "sampling_rate must be one number of Hz"),
    "names": (lambda: series() | {"feature_names": ["a"]}, ShapeError, "mine.npz: feature_names "),
    "objects": (
        lambda: series() | {"y": np.array([None] * 10)},
        FileFormatError,
        "cannot be read: Object arrays.*no objects",
    ),
}


@pytest.mark.parametrize("case", INVALID_NPZ)
def test_invalid_npz(tmp_path: Path, case: str) -> None:
    arrays, error, message = INVALID_NPZ[case]
    with pytest.raises(error, match=message) as caught:
        load_file(save(tmp_path / "mine.npz", **arrays()))
    assert "mine.npz" in str(caught.value)


def test_npz_parts_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    parts: dict[str, Any] = {"X_train": np.ones((4, 3, 1)), "y_train": [0, 1] * 2, "X_test": np.ones((2, 3, 1))}
    with pytest.raises(FileFormatError, match="y_train and y_test have different types, text and numbers"):
        load_file(save(path, **parts, y_test=["0", "1"]))
    with pytest.raises(ShapeError, match="X_train and X_test differ in steps or features"):
        load_file(save(path, **(parts | {"X_test": np.ones((2, 2, 1))}), y_test=[0, 1]))
    with pytest.raises(NonFiniteError, match="X_test holds nothing but NaN in series 1"):
        load_file(save(path, **(parts | {"X_test": [[[1.0]] * 3, [[np.nan]] * 3]}), y_test=[0, 1]))


def test_damaged_npz(tmp_path: Path) -> None:
    path = save(tmp_path / "mine.npz", **series())
    whole = path.read_bytes()
    for size in (0, 10, len(whole) // 2, len(whole) - 5):
        path.write_bytes(whole[:size])
        with pytest.raises(FileFormatError, match=r"is not a .npz file, or it is truncated"):
            load_file(path)
    # Whichever byte is wrong, the file is read as before or raises one of our errors.
    reference = load_file(save(path, **series()))
    for i in range(0, len(whole), 7):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0xFF]) + whole[i + 1 :])
        with suppress(SparcetsError):
            assert_same(load_file(path), reference)
    np.save(tmp_path / "array.npy", np.ones(3))
    path.write_bytes((tmp_path / "array.npy").read_bytes())
    with pytest.raises(FileFormatError):
        load_file(path)


def test_saving_is_atomic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = Dataset.from_arrays(series()["X"], series()["y"])
    path = save_dataset(ds, tmp_path / "mine.npz")
    before = path.read_bytes()

    def full(file: Any, arrays: Any) -> None:
        file.write(b"partial")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_npz", full)
    with pytest.raises(StorageError, match="No space left on device"):
        save_dataset(ds, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileFormatError, match=r"saved as .npz, got .*mine.csv. Choose .*mine.npz"):
        save_dataset(ds, tmp_path / "mine.csv")


def test_objects_are_not_saved(tmp_path: Path) -> None:
    ds = dataclasses.replace(
        Dataset.from_arrays(series()["X"], series()["y"]),
        subjects_train=np.array([None] * 8),
        subjects_test=np.array([1, 2]),
    )
    with pytest.raises(DataError, match="subjects_train holds Python objects"):
        save_dataset(ds, tmp_path / "mine.npz")
    assert not list(tmp_path.iterdir())


# --- optional dependencies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "name", "extra"), [("pyarrow", "mine.parquet", "parquet"), ("aeon.datasets", "mine.ts", "uea")]
)
def test_missing_extras(write: Write, monkeypatch: pytest.MonkeyPatch, module: str, name: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingExtraError, match=rf"a \{Path(name).suffix} file needs .*pip install 'sparcets\[{extra}\]'"
    ):
        load_file(write("", name))


def test_file_without_read_permission(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("label,x_0\n")

    def closed(self: Path, *args: Any, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", closed)
    with pytest.raises(FileFormatError, match=r"mine.csv cannot be read: Permission denied"):
        load_file(path)


@pytest.mark.parametrize("key", ["feature_names", "class_names", "units", "ids", "subjects"])
def test_names_that_no_file_can_hold(tmp_path: Path, key: str) -> None:
    n = 10 if key in ("ids", "subjects") else 2
    path = save(tmp_path / "mine.npz", **series(), **{key: np.array([f"n{i}" for i in range(n - 1)] + ["\udc80"])})
    with pytest.raises(DataError, match=rf"mine.npz: {key} holds '.udc80'.*, which has half of a surrogate pair"):
        load_file(path)


def test_a_file_of_any_name_is_read_and_named(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"mine\xff\n.npz")
    try:
        save(odd, **series())
    except (OSError, UnicodeError):
        pytest.skip("such names cannot be given here")
    ds = load_file(odd)
    assert ds.name == "mine��"
    assert load_file(save_dataset(ds, tmp_path / "again.npz")).name == ds.name
    write_json(tmp_path / "run.json", {"dataset": str(odd), "°": 1})
    assert read_json(tmp_path / "run.json", "a run") == {"dataset": str(odd), "°": 1}
