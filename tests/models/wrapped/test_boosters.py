"""Boosters: the real ones where xgboost and lightgbm are installed, and otherwise stubs of the same interface.

The stubs have what sparcets uses of a booster. They were compared with xgboost 3.2 and lightgbm 4.7.
"""

import importlib.util
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


class XgboostBooster:
    """``inplace_predict`` gives labels, probabilities or margins; ``save_config`` the objective."""

    def __init__(self, objective, n_classes):
        self.objective, self.n_classes = objective, n_classes

    def save_config(self):
        parameters = {"num_class": "0" if self.n_classes == 2 else str(self.n_classes)}
        return json.dumps({"learner": {"objective": {"name": self.objective}, "learner_model_param": parameters}})

    def inplace_predict(self, table, predict_type="value"):
        z = margins(table, self.n_classes)
        if predict_type == "margin":
            return z
        if self.objective == "multi:softmax":
            return z.argmax(1).astype(np.float32)
        return proba(z)


class LightgbmBooster:
    """``predict`` gives probabilities; ``model_to_string`` the objective."""

    def __init__(self, objective, n_classes):
        self.objective, self.n_classes = objective, n_classes

    def model_to_string(self, num_iteration=None):
        return f"tree\nversion=v4\nobjective={self.objective} num_class:{self.n_classes}\nfeature_names=a b"

    def num_model_per_iteration(self):
        return 1 if self.n_classes == 2 else self.n_classes

    def predict(self, table):
        z = margins(table, self.n_classes)
        return 1 / (1 + np.exp(-z)) if self.objective == "multiclassova" else proba(z)


for stub, module in ((XgboostBooster, "xgboost.core"), (LightgbmBooster, "lightgbm.basic")):
    stub.__name__, stub.__module__ = "Booster", module


def proba(z):
    return 1 / (1 + np.exp(-z)) if z.ndim == 1 else torch.from_numpy(z).softmax(1).numpy()


def build(source, objective, n_classes):
    package, _, real = source.partition(" ")
    if not real:
        return (XgboostBooster if package == "xgboost" else LightgbmBooster)(objective, n_classes)
    several = {} if n_classes == 2 else {"num_class": n_classes}
    if package == "xgboost":
        import xgboost

        settings = {"objective": objective, "verbosity": 0, "nthread": 1, **several}
        return xgboost.train(settings, xgboost.DMatrix(FLAT, label=Y % n_classes), 3)
    import lightgbm

    settings = {"objective": objective, "verbose": -1, "num_threads": 1, **several}
    return lightgbm.train(settings, lightgbm.Dataset(FLAT, label=Y % n_classes), 3)


def sources(package):
    missing = pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"{package} is not installed")
    return [package, pytest.param(f"{package} itself", marks=missing)]


BOTH = [*sources("xgboost"), *sources("lightgbm")]


@pytest.mark.parametrize("source", sources("xgboost"))
@pytest.mark.parametrize(
    ("objective", "n_classes"),
    [("binary:logistic", 2), ("binary:logitraw", 2), ("multi:softprob", 3), ("multi:softmax", 3)],
)
def test_a_booster_of_xgboost(source, objective, n_classes):
    booster = build(source, objective, n_classes)
    clf = sp.wrap(booster)
    assert clf.n_classes == n_classes and clf.interface.layout == "flat" and clf.name == "xgboost.Booster"
    own = np.asarray(booster.inplace_predict(FLAT), dtype=np.float64)
    if objective == "multi:softmax":
        np.testing.assert_array_equal(clf.predict(X), own)
    elif objective == "multi:softprob":
        np.testing.assert_allclose(clf.predict_proba(X), own, atol=1e-6)
    elif objective == "binary:logistic":
        np.testing.assert_allclose(clf.predict_proba(X)[:, 1], own, atol=1e-6)
    else:
        p = clf.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(p > 0.5, booster.inplace_predict(FLAT, predict_type="margin") > 0)


@pytest.mark.parametrize("source", sources("lightgbm"))
@pytest.mark.parametrize(("objective", "n_classes"), [("binary", 2), ("multiclass", 3), ("multiclassova", 3)])
def test_a_booster_of_lightgbm(source, objective, n_classes):
    booster = build(source, objective, n_classes)
    clf = sp.wrap(booster)
    assert clf.n_classes == n_classes and clf.interface.layout == "flat" and clf.name == "lightgbm.Booster"
    own = booster.predict(FLAT)
    expected = np.stack([1 - own, own], axis=1) if n_classes == 2 else own / own.sum(1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), expected, atol=1e-9)


@pytest.mark.parametrize("source", BOTH)
def test_what_a_booster_says_of_itself_is_not_contradicted(source):
    booster = build(source, "multi:softprob" if source.startswith("xgboost") else "multiclass", 3)
    objective = "reg:squarederror" if source.startswith("xgboost") else "regression"
    with pytest.raises(CapabilityError, match=f"objective '{objective}', which does not tell classes apart"):
        sp.wrap(build(source, objective, 2))
    with pytest.raises(ConfigError, match="cannot have output='sigmoid'"):
        sp.wrap(booster, output="sigmoid")
    with pytest.raises(ConfigError, match="n_classes says 2, the model itself says 3"):
        sp.wrap(booster, n_classes=2)
    with pytest.raises(ModelOutputError, match=r"failed on an input of shape .*It may want another layout"):
        sp.wrap(booster).predict_proba(X[:, :5])


class Estimator:
    """An estimator of a booster's package: ``predict_proba`` of a table."""

    classes_ = np.array(["a", "b", "c"])

    def predict_proba(self, table):
        return proba(margins(table, 3))


@pytest.mark.parametrize("source", BOTH)
def test_the_estimators_of_the_packages_take_tables(source):
    package, _, real = source.partition(" ")
    labels = np.array(["a", "b", "c"])[Y]
    if real and package == "xgboost":
        import xgboost

        model = xgboost.XGBClassifier(n_estimators=2, n_jobs=1).fit(FLAT, Y)
    elif real:
        import lightgbm

        model = lightgbm.LGBMClassifier(n_estimators=2, n_jobs=1, verbose=-1).fit(FLAT, labels)
    else:
        model = type("Estimator", (Estimator,), {"__module__": f"{package}.sklearn"})()
    clf = sp.wrap(model)
    assert clf.interface.layout == "flat" and clf.n_classes == 3
    np.testing.assert_allclose(clf.predict_proba(X), model.predict_proba(FLAT), atol=1e-6)
