"""Dataset: arrays checked once, split, and kept from being written to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparcets.datasets.base import Dataset
from sparcets.errors import DataError, LabelError, NonFiniteError, ShapeError, SparcetsError, UnknownNameError

# Series i holds the value i everywhere, so that rows can be followed through the split.
X = np.arange(20.0)[:, None, None] * np.ones((1, 4, 3))
Y = np.arange(20) % 2


def rows_of(part: Any) -> list[int]:
    return part[:, 0, 0].astype(int).tolist()


def test_everything_that_is_known_travels_with_its_rows() -> None:
    subjects = np.array([f"p{i // 4}" for i in range(20)])
    ds = Dataset.from_arrays(
        X,
        Y,
        test_size=0.4,
        seed=3,
        feature_names=["a", "b", "c"],
        class_names=["even", "odd"],
        mutable=["a", 2],
        units="m",
        sampling_rate=50,
        subjects=subjects,
        lengths=np.arange(20) % 4 + 1,
        name="mine",
        description="by hand",
    )
    for part, y, who, lengths in [
        (ds.X_train, ds.y_train, ds.subjects_train, ds.lengths_train),
        (ds.X_test, ds.y_test, ds.subjects_test, ds.lengths_test),
    ]:
        rows = rows_of(part)
        assert y.tolist() == [i % 2 for i in rows] and lengths is not None and who is not None
        assert who.tolist() == [f"p{i // 4}" for i in rows] and lengths.tolist() == [i % 4 + 1 for i in rows]
    assert sorted(rows_of(ds.X_train) + rows_of(ds.X_test)) == list(range(20))
    assert not set(ds.subjects_train) & set(ds.subjects_test) and ds.split == "subject"  # type: ignore[arg-type]
    assert len(set(ds.subjects_test)) == 2, "two of five people"  # type: ignore[arg-type]
    assert ds.X_train.dtype == np.float32 and ds.y_train.dtype == np.int64
    assert ds.feature_names == ("a", "b", "c") and ds.class_names == ("even", "odd") and ds.units == ("m",) * 3
    assert ds.mutable is not None and ds.mutable.tolist() == [True, False, True] and ds.sampling_rate == 50.0
    assert (ds.name, ds.description) == ("mine", "by hand")
    assert (ds.n_steps, ds.n_features, ds.n_classes) == (4, 3, 2)
    assert repr(ds) == "Dataset('mine': 12 training + 8 test series, 4 steps, 3 features, 2 classes)"


def test_what_is_not_known_is_none() -> None:
    ds = Dataset.from_arrays(X, Y)
    unknown = ["feature_names", "units", "sampling_rate", "mutable", "salient_train", "salient_test"]
    unknown += ["subjects_train", "subjects_test", "lengths_train", "lengths_test", "oracle"]
    assert [getattr(ds, name) for name in unknown] == [None] * len(unknown)
    assert ds.class_names == ("0", "1") and ds.split == "random" and (len(ds.X_train), len(ds.X_test)) == (16, 4)


def test_string_labels_name_the_classes() -> None:
    ds = Dataset.from_arrays(X, np.where(Y, "odd", "even"))
    assert ds.class_names == ("even", "odd") and ds.y_test.tolist() == [i % 2 for i in rows_of(ds.X_test)]
    other = Dataset.from_arrays(X, np.where(Y, "odd", "even"), class_names=["odd", "even"])
    assert other.y_test.tolist() == [1 - i % 2 for i in rows_of(other.X_test)]


def test_the_seed_decides_the_split() -> None:
    one, same, other = (rows_of(Dataset.from_arrays(X, Y, seed=s).X_test) for s in (0, 0, 1))
    assert one == same and sorted(one) != sorted(other)


def test_given_rows_are_taken_in_their_order() -> None:
    salient = np.zeros(X.shape, dtype=bool)
    salient[7, 2, 1] = True
    ds = Dataset.from_rows(X, Y, train=np.array([5, 2, 9]), test=np.array([7, 0]), salient=salient)
    assert rows_of(ds.X_train) == [5, 2, 9] and rows_of(ds.X_test) == [7, 0] and ds.split == "given"
    assert ds.salient_train is not None and not ds.salient_train.any()
    assert ds.salient_test is not None and np.argwhere(ds.salient_test).tolist() == [[0, 2, 1]]


def test_arrays_cannot_be_written_to_and_the_users_own_stay_writable() -> None:
    mine = X.astype(np.float32)
    ds = Dataset.from_arrays(mine, Y)
    for array in (ds.X_train, ds.y_train, ds.X_test, ds.y_test):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    mine[0] = -1.0
    assert ds.X_train.min() >= 0 and ds.X_test.min() >= 0, "and do not reach into the data set"


BAD: list[tuple[dict[str, Any], type[SparcetsError], str]] = [
    ({"X": X[0]}, ShapeError, r"X must be \(batch, time, features\), got shape \(4, 3\)"),
    ({"X": X[:0], "y": []}, ShapeError, "X is empty"),
    ({"X": np.where(X == 7, np.nan, X)}, NonFiniteError, r"X holds NaN at \[7, 0, 0\].*; 12 such values in all"),
    ({"X": X * 1e38}, DataError, "X holds 1.9e.39, beyond float32's 3.4e.38. Use larger units"),
    ({"y": Y[:5]}, LabelError, r"y must be 20 labels, one per series, got shape \(5,\)"),
    ({"y": np.zeros(20, int)}, LabelError, "y holds one class only"),
    ({"y": Y * 2}, LabelError, "class 1 .'1'. has no sample"),
    ({"class_names": ["a", "b", "c"]}, LabelError, "class 2 .'c'. has no sample"),
    ({"class_names": ["a", "a"]}, DataError, "class_names must be distinct"),
    ({"class_names": "ab"}, DataError, "class_names must be a list of names, got 'ab'"),
    ({"y": ["x"] + ["even", "odd"] * 9 + ["x"], "class_names": ["even", "odd"]}, UnknownNameError, "no class 'x'"),
    ({"feature_names": ["a", "b"]}, ShapeError, "feature_names must be 3 names, got 2"),
    ({"feature_names": ["a", "b", "a"]}, DataError, "feature_names must be distinct, but 'a' stands there 2 times"),
    ({"feature_names": "abc"}, DataError, "feature_names must be a list of names"),
    ({"mutable": ["x"]}, UnknownNameError, "no feature 'x'. Known: f0, f1, f2"),
    ({"mutable": [False] * 3}, DataError, "mutable names no feature"),
    ({"units": ["m", "s"]}, ShapeError, "units must be one for all or 3, one per feature, got 2"),
    ({"sampling_rate": 0}, DataError, "sampling_rate must be a positive number of Hz, got 0"),
    ({"sampling_rate": np.inf}, DataError, "positive number of Hz, got inf"),
    ({"sampling_rate": np.nan}, DataError, "positive number of Hz, got nan"),
    ({"sampling_rate": "50"}, DataError, "positive number of Hz, got '50'"),
    ({"lengths": [4] * 19}, ShapeError, "lengths must be 20 whole numbers"),
    ({"lengths": [5] * 20}, ShapeError, r"lengths must lie in 1..4, got 5 for series 0 and 19 more"),
    ({"subjects": ["a"] * 3}, ShapeError, r"subjects must be 20 ids, one per series, got shape \(3,\)"),
    ({"subjects": ["a"] * 20}, DataError, "a split by subject needs at least two subjects, got 1"),
    ({"subjects": Y}, LabelError, "has no sample in the training part. Choose another seed or split"),
    ({"salient": np.zeros((20, 4))}, ShapeError, r"salient must have a flag for every entry, \(20, 4, 3\), got shape"),
    ({"test_size": 0}, DataError, r"test_size must lie between 0 and 1 \(a share of the series\), got 0"),
    ({"seed": 0.5}, SparcetsError, "seed must be a whole number, got 0.5"),
]


@pytest.mark.parametrize(("change", "error", "message"), BAD, ids=[f"{m[:40]}" for _, _, m in BAD])
def test_bad_input_is_named(change: dict[str, Any], error: type[SparcetsError], message: str) -> None:
    arguments = {"X": X, "y": Y, **change}
    with pytest.raises(error, match=message):
        Dataset.from_arrays(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_subjects_of_given_rows_are_checked_too() -> None:
    with pytest.raises(ShapeError, match="subjects must be 20 ids"):
        Dataset.from_rows(X, Y, train=np.arange(10), test=np.arange(10, 20), subjects=["a"] * 10)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"y_test": np.zeros(3, dtype=int)}, ShapeError, "one label each in y_test"),
        ({"X_test": np.zeros((2, 5, 2), dtype=np.float32)}, ShapeError, "alike in training and test"),
        ({"y_train": np.array([1, 2])}, LabelError, "labels 1 to 2, but there are 2 class names"),
        ({"feature_names": ("a",)}, ShapeError, "feature_names must be 3, one per feature, got 1"),
        ({"mutable": np.ones(4, dtype=bool)}, ShapeError, "mutable must be 3"),
    ],
)
def test_parts_that_do_not_belong_together_are_refused(change, error, words) -> None:
    X, y = np.zeros((2, 5, 3), dtype=np.float32), np.array([0, 1])
    parts = {"name": "x", "X_train": X, "y_train": y, "X_test": X, "y_test": y, "class_names": ("a", "b")}
    Dataset(**parts)
    with pytest.raises(error, match=words):
        Dataset(**(parts | change))
