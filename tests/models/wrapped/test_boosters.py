"""Boosters, as stubs that have what sparcets uses of one. They were compared with xgboost 3.2 and lightgbm 4.7."""

import json

import numpy as np
import pytest
import torch

import sparcets as sp
from sparcets.core.errors import CapabilityError, ConfigError, ModelOutputError
from sparcets.testing.data import make_series

X, Y = make_series(60, n_steps=9)
FLAT = X.reshape(60, -1)


def margins(table, n_classes):
    """Return made-up margins: one column for two classes."""
    if table.ndim != 2 or table.shape[1] != 36:
        raise ValueError(f"Feature shape mismatch, expected: 36, got {table.shape[1]}")
    weight = np.random.default_rng(0).normal(size=(36, 1 if n_classes == 2 else n_classes))
    values = table.astype(np.float64) @ weight / 6
    return values[:, 0] if n_classes == 2 else values


def proba(z):
    return 1 / (1 + np.exp(-z)) if z.ndim == 1 else torch.from_numpy(z).softmax(1).numpy()


class Booster:
    def __init__(self, objective, n_classes):
        self.objective, self.n_classes = objective, n_classes


class Xgboost(Booster):
    """``inplace_predict`` gives labels, probabilities or margins; ``save_config`` the objective."""

    def save_config(self):
        parameters = {"num_class": "0" if self.n_classes == 2 else str(self.n_classes)}
        return json.dumps({"learner": {"objective": {"name": self.objective}, "learner_model_param": parameters}})

    def inplace_predict(self, table, predict_type="value"):
        z = margins(table, self.n_classes)
        if predict_type == "margin":
            return z
        return z.argmax(1).astype(np.float32) if self.objective == "multi:softmax" else proba(z)


class Lightgbm(Booster):
    """``predict`` gives probabilities; ``model_to_string`` the objective."""

    def model_to_string(self, num_iteration=None):
        return f"tree\nversion=v4\nobjective={self.objective} num_class:{self.n_classes}\nfeature_names=a b"

    def num_model_per_iteration(self):
        return 1 if self.n_classes == 2 else self.n_classes

    def predict(self, table):
        z = margins(table, self.n_classes)
        return 1 / (1 + np.exp(-z)) if self.objective == "multiclassova" else proba(z)


for stub, module in ((Xgboost, "xgboost.core"), (Lightgbm, "lightgbm.basic")):
    stub.__name__, stub.__module__ = "Booster", module


@pytest.mark.parametrize(
    ("make", "objective", "n_classes"),
    [
        (Xgboost, "binary:logistic", 2),
        (Xgboost, "binary:logitraw", 2),
        (Xgboost, "multi:softprob", 3),
        (Xgboost, "multi:softmax", 3),
        (Lightgbm, "binary", 2),
        (Lightgbm, "multiclass", 3),
        (Lightgbm, "multiclassova", 3),
    ],
)
def test_a_booster_gives_its_own_probabilities(make, objective, n_classes):
    booster = make(objective, n_classes)
    clf = sp.wrap(booster)
    package = "xgboost" if make is Xgboost else "lightgbm"
    assert (clf.n_classes, clf.interface.layout, clf.name) == (n_classes, "flat", f"{package}.Booster")
    z = margins(FLAT, n_classes)
    expected = proba(z)
    if objective == "multiclassova":  # one against all others
        expected = booster.predict(FLAT) / booster.predict(FLAT).sum(1, keepdims=True)
    expected = np.stack([1 - expected, expected], axis=1) if n_classes == 2 else expected
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-6)
    if objective == "multi:softmax":
        np.testing.assert_array_equal(clf.predict(X), booster.inplace_predict(FLAT))


@pytest.mark.parametrize(
    ("make", "objective", "other"),
    [(Xgboost, "multi:softprob", "reg:squarederror"), (Lightgbm, "multiclass", "regression")],
)
def test_what_a_booster_says_of_itself_is_not_contradicted(make, objective, other):
    booster = make(objective, 3)
    with pytest.raises(CapabilityError, match=f"objective '{other}', which does not tell classes apart"):
        sp.wrap(make(other, 2))
    with pytest.raises(ConfigError, match="cannot have output='sigmoid'"):
        sp.wrap(booster, output="sigmoid")
    with pytest.raises(ConfigError, match="n_classes says 2, the model itself says 3"):
        sp.wrap(booster, n_classes=2)
    with pytest.raises(ModelOutputError, match=r"failed on an input of shape .*It may want another layout"):
        sp.wrap(booster).predict_proba(X[:, :5])


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_the_estimators_of_the_packages_take_tables(package):
    about = {"__module__": f"{package}.sklearn", "classes_": np.array(["a", "b", "c"])}
    model = type("Estimator", (), {**about, "predict_proba": lambda self, table: proba(margins(table, 3))})()
    clf = sp.wrap(model)
    assert clf.interface.layout == "flat" and clf.class_names == ("a", "b", "c")
    np.testing.assert_allclose(clf.predict_proba(X), model.predict_proba(FLAT), atol=1e-6)
