"""Dataset: arrays are checked, split, and read-only; digests tell training parts and series apart."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from sparcets.core.errors import ConfigError, DataError, LabelError, NonFiniteError, ShapeError, UnknownNameError
from sparcets.data.dataset import Dataset, dataset_digest, series_digests
from sparcets.testing.data import make_series

# Series i holds the value i everywhere, so that rows can be traced through the split.
X = np.arange(20.0)[:, None, None] * np.ones((1, 4, 3))
Y = np.arange(20) % 2


def rows_of(part):
    return part[:, 0, 0].astype(int).tolist()


def test_metadata_is_split_with_its_rows():
    subjects = np.array([f"p{i // 4}" for i in range(20)])
    lengths, about = np.arange(20) % 4 + 1, {"name": "mine", "description": "by hand", "units": "m"}
    names = {"feature_names": ["a", "b", "c"], "class_names": ["even", "odd"], "mutable": ["a", 2]}
    ds = Dataset.from_arrays(
        X, Y, test_size=0.4, seed=3, sampling_rate=50, subjects=subjects, lengths=lengths, **about, **names
    )
    parts = [(getattr(ds, f"{name}_{part}") for name in "X y subjects lengths".split()) for part in ("train", "test")]
    for part, y, who, steps in parts:
        rows = rows_of(part)
        assert y.tolist() == [i % 2 for i in rows]
        assert who.tolist() == [f"p{i // 4}" for i in rows] and steps.tolist() == [i % 4 + 1 for i in rows]
    assert sorted(rows_of(ds.X_train) + rows_of(ds.X_test)) == list(range(20))
    assert not set(ds.subjects_train) & set(ds.subjects_test) and ds.split == "subject"
    assert len(set(ds.subjects_test)) == 2, "two of five people"
    assert ds.X_train.dtype == X.dtype == np.float64 and ds.y_train.dtype == np.int64
    assert ds.feature_names == ("a", "b", "c") and ds.class_names == ("even", "odd") and ds.units == ("m",) * 3
    assert ds.mutable.tolist() == [True, False, True] and ds.sampling_rate == 50.0
    assert (ds.name, ds.description, ds.n_steps, ds.n_features, ds.n_classes) == ("mine", "by hand", 4, 3, 2)
    assert repr(ds) == "Dataset('mine': 12 training + 8 test series of 3 + 2 subjects, 4 steps, 3 features, 2 classes)"


def test_given_rows_keep_their_order():
    salient = np.zeros(X.shape, dtype=bool)
    salient[7, 2, 1] = True
    ds = Dataset.from_arrays(X, Y, split=(np.array([5, 2, 9]), np.array([7, 0])), salient=salient)
    assert rows_of(ds.X_train) == [5, 2, 9] and rows_of(ds.X_test) == [7, 0] and ds.split == "given"
    assert not ds.salient_train.any() and np.argwhere(ds.salient_test).tolist() == [[0, 2, 1]]


def test_arrays_are_read_only_copies():
    mine = X.astype(np.float32)
    ds = Dataset.from_arrays(mine, Y)
    for array in (ds.X_train, ds.y_train, ds.X_test, ds.y_test):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    mine[0] = -1.0
    assert ds.X_train.min() >= 0 and ds.X_test.min() >= 0, "writing to the original does not change the data set"


# One invalid argument each. Messages without a text here are those of tests/core/test_validation.py and test_splits.py.
INVALID = [
    ({"X": X[0]}, ShapeError, None),
    ({"X": np.where(X == 7, np.inf, X)}, NonFiniteError, None),
    ({"X": np.where(np.arange(len(X))[:, None, None] == 1, np.nan, X)}, NonFiniteError, "nothing but NaN in series 1"),
    ({"X": X * 1e38}, DataError, "X holds 4e.38 at .4, 0, 0., beyond float32's 3.4e.38. Use larger units"),
    ({"y": Y[:5]}, LabelError, None),
    ({"y": ["x"] + ["even", "odd"] * 9 + ["x"], "class_names": ["even", "odd"]}, UnknownNameError, None),
    ({"feature_names": ["a", "b"]}, ShapeError, None),
    ({"mutable": ["x"]}, UnknownNameError, None),
    ({"units": ["m", "s"]}, ShapeError, "units must be one for all or 3, one per feature, got 2"),
    ({"sampling_rate": 0}, DataError, "sampling_rate must be a positive number of Hz, got 0"),
    ({"sampling_rate": "50"}, DataError, None),
    ({"lengths": [5] * 20}, ShapeError, None),
    ({"subjects": ["a"] * 3}, ShapeError, r"subjects must be 20, one per series, got shape \(3,\)"),
    ({"subjects": Y}, LabelError, "has no sample in the training part. Choose another seed or split"),
    ({"salient": np.zeros((20, 4))}, ShapeError, r"salient must have a flag for every entry, \(20, 4, 3\), got shape"),
    ({"test_size": 0}, DataError, None),
    ({"split": ["test", "train"]}, ShapeError, r"split must be 20 words, .* one per series, got shape \(2,\)"),
    ({"split": "subject"}, ShapeError, "got 'subject'. Leave it out for a random split, or pass subjects= for one by"),
    ({"split": ["train"] * 19 + ["val"]}, DataError, "'train' or 'test', one per series, got 'val' for series 19.$"),
    ({"split": Y == 1}, DataError, r"got False for series 0. Convert flags .* np.where\(flags, 'test', 'train'\)"),
    ({"split": ["test"] * 20}, DataError, "split has all 20 series in 'test'. Mark both parts, or leave split out"),
    ({"split": np.where(Y, "train", "test")}, LabelError, "class '0' has no sample in the training part"),
    ({"feature_name": "a"}, ConfigError, "takes no option 'feature_name'. Did you mean 'feature_names'"),
]


@pytest.mark.parametrize(("change", "error", "message"), INVALID)
def test_invalid_arguments(change, error, message):
    with pytest.raises(error, match=message) as caught:
        Dataset.from_arrays(**{"X": X, "y": Y, **change})
    assert caught.type is error


@pytest.mark.parametrize("words", [list, np.array, lambda w: np.array(w, dtype=object), lambda w: np.array(w, "S")])
def test_a_given_split_is_kept(words):
    split = words(["train"] * 13 + ["test", "train", "test"] + ["train"] * 4)
    ds = Dataset.from_arrays(X, Y, split=split, test_size=0.9, subjects=["one"] * 20)
    assert rows_of(ds.X_test) == [13, 15] and rows_of(ds.X_train) == [*range(13), 14, 16, 17, 18, 19]
    assert ds.split == "given" and ds.y_test.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y_test": np.zeros(3, dtype=int)}, ShapeError, "one label each in y_test"),
        ({"X_test": np.zeros((2, 5, 2), dtype=np.float32)}, ShapeError, "of equal size in training and test"),
        ({"y_train": np.array([1, 2])}, LabelError, "labels 1 to 2, but there are 2 class names"),
        ({"mutable": np.ones(4, dtype=bool)}, ShapeError, "mutable must be 3"),
    ],
)
def test_inconsistent_arrays(change, error, message):
    X, y = np.zeros((2, 5, 3), dtype=np.float32), np.array([0, 1])
    parts = {"name": "x", "X_train": X, "y_train": y, "X_test": X, "y_test": y, "class_names": ("a", "b")}
    # Judges and classifiers are stored under this digest, so its definition must not change.
    content = b"((2, 5, 3), ('a', 'b'))" + X.tobytes() + y.tobytes() + b"none"
    assert dataset_digest(Dataset(**parts)) == hashlib.sha256(content).hexdigest()
    with pytest.raises(error, match=message):
        Dataset(**(parts | change))


def test_digests_of_training_parts_are_equal_for_equal_ones_only():
    data = Dataset.from_arrays(*make_series(30))
    n = len(data.X_train)
    for same in (
        Dataset.from_arrays(*make_series(30), name="elsewhere", units="m"),
        replace(data, X_train=np.asfortranarray(data.X_train)),
        replace(data, X_test=data.X_test * 0),
    ):
        assert dataset_digest(same) == dataset_digest(data)
    for other in (
        replace(data, X_train=data.X_train + np.float32(1e-3)),
        replace(data, y_train=np.roll(data.y_train, 1)),
        replace(data, class_names=("a", "b", "c")),
        replace(data, lengths_train=np.full(n, 15)),
        replace(data, subjects_train=np.arange(n) % 5),  # who decide what a model is validated on
    ):
        assert dataset_digest(other) != dataset_digest(data)


def test_digests_of_series_do_not_depend_on_dtype_or_layout():
    X = np.arange(12.0).reshape(3, 2, 2)
    X[2] = X[0]
    digests = series_digests(X)
    assert digests[0] == digests[2] != digests[1]
    assert series_digests(X.astype(np.float32)) == digests == series_digests(np.asfortranarray(X))
    X[1, 0, 1] = np.nan
    assert series_digests(X.astype(np.float32)) == series_digests(X) != digests
    assert series_digests(X + 1.7e9) != series_digests(X + 1.7e9 + 1), "float32 has 128 between neighbours there"
