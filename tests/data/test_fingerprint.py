"""Digests: equal for equal training data, different otherwise."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

import sparcets as sp
from sparcets.data.dataset import dataset_digest, series_digests
from sparcets.testing.data import make_series

DATA = sp.Dataset.from_arrays(*make_series(30))


def test_equal_data_have_the_same_digest():
    again = sp.Dataset.from_arrays(*make_series(30), name="elsewhere", units="m")
    assert dataset_digest(again) == dataset_digest(DATA)
    strided = replace(DATA, X_train=np.asfortranarray(DATA.X_train))
    assert dataset_digest(strided) == dataset_digest(DATA)


@pytest.mark.parametrize(
    "other",
    [
        replace(DATA, X_train=DATA.X_train + np.float32(1e-3)),
        replace(DATA, y_train=np.roll(DATA.y_train, 1)),
        replace(DATA, class_names=("a", "b", "c")),
        replace(DATA, lengths_train=np.full(len(DATA.X_train), 15)),
        replace(DATA, subjects_train=np.arange(len(DATA.X_train)) % 5),  # who decide what a model is validated on
    ],
    ids=["series", "labels", "classes", "lengths", "subjects"],
)
def test_different_training_parts_have_different_digests(other):
    assert dataset_digest(other) != dataset_digest(DATA)


def test_the_test_part_does_not_matter():
    assert dataset_digest(replace(DATA, X_test=DATA.X_test * 0)) == dataset_digest(DATA)


def test_digest_is_stable_across_versions():
    # Judges and classifiers are stored under this digest, so its definition must not change.
    X, y = np.zeros((2, 1, 1), dtype=np.float32), np.array([0, 1])
    data = sp.Dataset(name="", X_train=X, y_train=y, X_test=X, y_test=y, class_names=("a", "b"))
    content = b"((2, 1, 1), ('a', 'b'))" + X.tobytes() + y.tobytes() + b"none"
    assert dataset_digest(data) == hashlib.sha256(content).hexdigest()


def test_series_digests_do_not_depend_on_dtype_or_layout():
    X = np.arange(12.0).reshape(3, 2, 2)
    X[2] = X[0]
    digests = series_digests(X)
    assert digests[0] == digests[2] != digests[1]
    assert series_digests(X.astype(np.float32)) == digests == series_digests(np.asfortranarray(X))
    assert series_digests(X[:0]) == []
