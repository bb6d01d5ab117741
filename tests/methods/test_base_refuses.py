"""Wrong input to fit and explain: each with a message that says what to do, and nothing left behind."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import sparcets as sp
from sparcets.core import errors
from sparcets.testing.data import make_series
from sparcets.testing.mocks import MeanModule, mean_proba
from tests.scripted import Scripted

X, Y = make_series(30, n_steps=8)
QUERIES = X[Y != 1]


def clf():
    return sp.wrap(mean_proba, class_names=["calm", "brisk", "wild"])


def fitted():
    return sp.Nearest(clf()).fit(X, Y)


def with_value(value, place):
    series = X.copy()
    series[place] = value
    return series


def test_series_that_the_classifier_does_not_take_are_refused_by_fit():
    tiny = sp.ClassifierConfig.from_dict({**sp.ClassifierConfig.tiny().to_dict(), "epochs": 1})
    model = sp.TorchClassifier("fcn", tiny).fit(X, Y)
    for series in (X[..., :3], X[:, :6]):
        with pytest.raises(errors.FeatureMismatchError, match="TorchClassifier was fitted on"):
            sp.Nearest(model).fit(series, Y)
    with pytest.raises(errors.NotFittedError, match="this TorchClassifier"):
        sp.Nearest(sp.TorchClassifier("fcn")).fit(X, Y)


@pytest.mark.parametrize("model", [MeanModule(), LogisticRegression(), mean_proba, MeanModule, None])
def test_a_model_must_be_wrapped_first(model):
    with pytest.raises(errors.CapabilityError, match=r"explains a classifier of sparcets, got .*sp.wrap\(model\)"):
        sp.Nearest(model).fit(X, Y)


def test_a_method_for_equal_lengths_refuses_lengths_in_fit_and_in_explain():
    class Even(Scripted):
        supports_lengths = False

    for lengths, given in ((np.full(30, 7), X), (None, [*X[:-1], X[-1, :7]])):
        with pytest.raises(errors.CapabilityError, match="Even does not support series of unequal length"):
            Even(clf()).fit(given, Y, lengths=lengths)
    fitted = Even(clf()).fit(X, Y, lengths=np.full(30, 8))  # nothing is padded
    assert len(fitted.explain(QUERIES, target=1, lengths=np.full(20, 8))) == 20
    for queries in (QUERIES, iter(QUERIES)):
        with pytest.raises(errors.CapabilityError, match="Cut or resample them to one"):
            fitted.explain(queries, target=1, lengths=np.full(20, 7))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"X": QUERIES[0]}, errors.ShapeError, None),  # whose words are those of validation.py
        ({"X": QUERIES[..., :3]}, errors.FeatureMismatchError, "Nearest was fitted on 4 features"),
        ({"X": QUERIES[:, :6]}, errors.FeatureMismatchError, "Nearest was fitted on series of 8 steps"),
        ({"X": with_value(np.nan, (2, 7, 0))}, errors.NonFiniteError, None),
        ({"target": "wlid"}, errors.TargetError, None),
        ({"target": [1, 2]}, errors.TargetError, "one class, or one per query: 20 queries came with 2 targets"),
        ({"lengths": [8] * 19}, errors.ShapeError, None),
        ({"n": 0}, errors.ConfigError, "n must be a whole number from 1 to 1,000,000, got 0"),
        ({"confidence": 1.0}, errors.ConfigError, "confidence must be a probability between 0 and 1"),
        ({"sparsity": 1.01}, errors.ConfigError, r"sparsity must be a share in \(0, 1\], got 1.01"),
        ({"constraints": {"immutable": [0]}}, errors.ConfigError, r"must be sp.Constraints\(\.\.\.\), got dict"),
        ({"constraints": sp.Constraints(immutable=["f9"])}, errors.ConstraintError, "no feature 'f9'"),
        ({"constraints": sp.Constraints(immutable=range(4))}, errors.ConstraintError, "leave nothing that may change"),
        ({"X": sp.Dataset.from_arrays(X, Y), "lengths": [8] * 6}, errors.DataError, "a Dataset brings its lengths"),
    ],
)
def test_what_explain_refuses(arguments, error, message):
    with pytest.raises(error, match=message):
        fitted().explain(**{"X": QUERIES, "target": 1, **arguments})


def test_constraints_that_are_none_or_too_strict_and_data_sets_with_more_are_refused():
    with pytest.raises(errors.ConfigError):
        sp.Nearest(clf()).fit(X, Y, constraints={"immutable": [0]})
    ex = sp.Nearest(clf()).fit(X, Y, constraints=sp.Constraints(immutable=[0, 1]))
    with pytest.raises(errors.ConstraintError, match="given to fit and to explain together"):
        ex.explain(QUERIES, target=1, constraints=sp.Constraints(immutable=[2, 3]))
    ds = sp.Dataset.from_arrays(X, Y, class_names=["calm", "brisk", "wild"])
    for extra in ({"y": ds.y_train}, {"lengths": np.full(24, 8)}):
        with pytest.raises(errors.DataError, match=r"a Dataset brings its own labels and lengths: call fit\(dataset\)"):
            sp.Nearest(clf()).fit(ds, **extra)


def test_a_fit_that_is_refused_keeps_the_last_one_and_one_that_fails_midway_keeps_none():
    ex = fitted()
    with pytest.raises(errors.NonFiniteError):
        ex.fit(with_value(np.nan, (0, 0, 0)), Y)
    ex.explain(QUERIES, target=1)
    with pytest.raises(errors.DataError, match="predicts none of the 30 training series as it is labelled"):
        ex.fit(X, (Y + 1) % 3)
    with pytest.raises(errors.NotFittedError):
        ex.explain(QUERIES, target=1)
