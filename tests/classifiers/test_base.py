"""What any classifier may count on: checked input in batches, checked output."""

import numpy as np
import pytest

from sparcets.classifiers import base
from sparcets.classifiers.base import Classifier
from sparcets.errors import FeatureMismatchError, ModelOutputError, NonFiniteError, ShapeError

X = np.random.default_rng(0).normal(size=(5, 4, 2))


class Fixed(Classifier):
    """Returns what it is told to, and keeps what it was given."""

    def __init__(self, output):
        self.output = output
        self.given = []

    def _predict_proba(self, X, lengths):
        self.given.append((X, lengths))
        return self.output(X) if callable(self.output) else self.output


def even(X):
    return np.full((len(X), 2), 0.5)


def test_series_come_in_batches_and_the_answers_in_order(monkeypatch):
    monkeypatch.setattr(base, "BATCH", 2)
    model = Fixed(lambda X: np.stack([X[:, 0, 0], 1 - X[:, 0, 0]], axis=1))
    series = np.abs(np.random.default_rng(1).uniform(size=(5, 4, 2)))
    proba = model.predict_proba(series, lengths=[1, 2, 3, 4, 4])
    assert [len(x) for x, _ in model.given] == [2, 2, 1]
    assert [lengths.tolist() for _, lengths in model.given] == [[1, 2], [3, 4], [4]]
    np.testing.assert_array_equal(proba[:, 0], series[:, 0, 0])
    np.testing.assert_array_equal(model.predict(series), (series[:, 0, 0] < 0.5).astype(int))


def test_the_first_prediction_tells_the_number_of_classes():
    model = Fixed(even)
    assert not model.n_classes_known
    with pytest.raises(ModelOutputError, match=r"not known before the first prediction\. Pass n_classes="):
        _ = model.n_classes
    model.predict_proba(X)
    assert model.n_classes_known and model.class_names == ("0", "1") and not model.named


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (np.zeros((5, 2, 2)), r"must return probabilities \(batch, classes\), got shape \(5, 2, 2\)"),
        (np.full((5, 2), "a"), "got shape .* dtype <U1"),
        (np.ones((5, 1)), "Fixed returned one column; return one probability per class, for two classes 1 - p and p"),
        (
            np.full((5, 3), 0.4),
            r"no probabilities \(the first is \[0.4, 0.4, 0.4\]\). They must be at least 0",
        ),
        (np.tile([1.5, -0.5], (5, 1)), "no probabilities"),
        (np.full((5, 2), np.nan), "returned NaN or infinity as a probability"),
        (np.tile([np.inf, 0.5], (5, 1)), "returned NaN or infinity as a probability"),
    ],
)
def test_what_is_no_table_of_probabilities_is_refused_and_forgotten(output, message):
    model = Fixed(output)
    with pytest.raises(ModelOutputError, match=message):
        model.predict_proba(X)
    assert not model.n_classes_known


def test_the_number_of_columns_may_not_change():
    model = Fixed(even)
    model.predict_proba(X)
    model.output = lambda X: np.full((len(X), 4), 0.25)
    with pytest.raises(ModelOutputError, match=r"returned 4 columns for 2 classes \(0, 1\)"):
        model.predict_proba(X)


def test_whole_numbers_and_coarse_floats_are_probabilities_too():
    one_hot = Fixed(lambda X: np.tile([0, 1], (len(X), 1))).predict_proba(X)
    assert one_hot.dtype == np.float64 and one_hot[0].tolist() == [0.0, 1.0]
    Fixed(lambda X: np.full((len(X), 3), 1 / 3, dtype=np.float16)).predict_proba(X)


@pytest.mark.parametrize(
    ("series", "error", "message"),
    [
        (X[0], ShapeError, r"got shape \(4, 2\). For a single series pass X\[None\]"),
        (X[:0], ShapeError, "X is empty"),
        (np.where(np.arange(40).reshape(5, 4, 2) == 13, np.nan, X), NonFiniteError, r"NaN at \[1, 2, 1\]"),
        (np.zeros((2, 4, 3)), FeatureMismatchError, "Fixed was fitted on 2 features, X has 3"),
        (np.zeros((2, 6, 2)), FeatureMismatchError, "Fixed was fitted on series of 4 steps, X has 6"),
    ],
)
def test_wrong_series_never_reach_the_model(series, error, message):
    model = Fixed(even)
    model.n_features, model.n_steps = 2, 4
    with pytest.raises(error, match=message):
        model.predict_proba(series)
    assert model.given == []


def test_lengths_are_checked():
    with pytest.raises(ShapeError, match=r"lengths must lie in 1\.\.4, got 5 for series 2"):
        Fixed(even).predict_proba(X, lengths=[1, 2, 5, 1, 1])
