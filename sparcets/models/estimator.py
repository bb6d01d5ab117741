"""Black boxes: estimators of scikit-learn, aeon and sktime, boosters of xgboost and lightgbm, and functions."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np

from sparcets.core.errors import CapabilityError
from sparcets.core.series import FloatArray
from sparcets.models.interface import Interface, Layout, name_of

CHANNELS_FIRST = ("aeon", "sktime")
OF_TABLES = ("xgboost", "lightgbm")
NOTE = "'decision_function', as the softmax or sigmoid of its values: their order is kept, they are not calibrated"


def adapt(model: Any) -> Interface:
    """Return the interface of a model of classes: a booster, an estimator, or a callable."""
    name = name_of(model)
    if name == "Booster" and package(model) in OF_TABLES:
        return {"xgboost": _xgboost, "lightgbm": _lightgbm}[package(model)](model)
    if callable(getattr(model, "predict_proba", None)):
        return Interface(
            call=model.predict_proba, name=name, kind="probabilities", kind_is_certain=True, layout=layout_of(model)
        )
    if callable(getattr(model, "decision_function", None)):
        return _by_decisions(model, name)
    if callable(model):
        return Interface(call=model, name=name, kind="probabilities")
    hint = " It predicts without them, by predict()." if hasattr(model, "predict") else ""
    raise CapabilityError(
        f"{name} has neither predict_proba nor decision_function and is not callable, so it gives no probabilities."
        f"{hint} Wrap a function that returns them, (batch, classes)."
    )


def adapt_regressor(model: Any) -> Interface:
    """Return the interface of a model of numbers: a booster, an estimator by its ``predict``, or a callable."""
    name = name_of(model)
    if hasattr(model, "predict_proba") or hasattr(model, "classes_"):
        raise CapabilityError(
            f"{name} is a classifier; leave task='regression' out, or wrap a function that returns a number of it, "
            "such as lambda X: model.predict_proba(X)[:, 1]."
        )
    if name == "Booster" and package(model) == "xgboost":
        return Interface(call=model.inplace_predict, name="xgboost.Booster", kind="logits", layout="flat")
    call = getattr(model, "predict", model)
    if not callable(call):
        raise CapabilityError(f"{name} has no predict and is not callable, so it gives no numbers.")
    return Interface(call=call, name=name, kind="logits", layout=layout_of(model))


def _by_decisions(model: Any, name: str) -> Interface:
    if any(getattr(part, "decision_function_shape", "ovr") == "ovo" for part in _parts(model)):
        raise CapabilityError(
            f"the decision_function of {name} gives one value per pair of classes. Set decision_function_shape='ovr', "
            "which needs no new fit, for one value per class."
        )
    call, layout = partial(decisions, model), layout_of(model)
    return Interface(call=call, name=name, kind="logits", kind_is_certain=True, layout=layout, note=NOTE)


def decisions(model: Any, series: FloatArray, **side: Any) -> FloatArray:
    """Return the decision function (batch, classes), or (batch,) for two classes; side inputs are passed on by name.

    The class that ``model.predict`` gives has the largest value of a row: an SVC decides between several classes by
    votes, which may contradict its decision function. Then the two values are exchanged.
    """
    values: FloatArray = np.asarray(model.decision_function(series, **side))
    if values.ndim != 2:
        return values
    predicted = np.searchsorted(model.classes_, model.predict(series, **side))
    largest, rows = values.argmax(1), np.arange(len(values))
    exchanged: FloatArray = values.copy()
    exchanged[rows, largest], exchanged[rows, predicted] = values[rows, predicted], values[rows, largest]
    return exchanged


def layout_of(model: Any) -> Layout:
    """Return the layout of the series that an estimator takes, by the packages that it comes from."""
    packages = {package(part) for part in _parts(model)}
    if packages.intersection(CHANNELS_FIRST):
        return "bft"
    return "flat" if package(model) in OF_TABLES else "btf"


def _parts(model: Any) -> list[Any]:
    """Return the model and, for a pipeline, its steps."""
    steps = getattr(model, "steps", None)
    return [model, *(part for _, part in steps)] if isinstance(steps, list) else [model]


def package(model: Any) -> str:
    """Return the package that a model, or one of its base classes, comes from.

    >>> from sklearn.svm import SVC
    >>> package(SVC()), package(3)
    ('sklearn', 'builtins')
    """
    known = (*CHANNELS_FIRST, *OF_TABLES, "keras", "tf_keras", "tensorflow", "onnxruntime")
    packages = [kind.__module__.split(".")[0] for kind in type(model).__mro__]
    return next((one for one in packages if one in known), packages[0])


def _xgboost(booster: Any) -> Interface:
    learner = json.loads(booster.save_config())["learner"]
    objective = str(learner["objective"]["name"])
    if objective not in ("binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob"):
        raise _no_classifier(objective)
    # The margins are logits, also of multi:softmax, which predicts labels. A plain array needs no names of features.
    return Interface(
        call=lambda table: booster.inplace_predict(table, predict_type="margin"),
        name="xgboost.Booster",
        kind="logits",
        kind_is_certain=True,
        layout="flat",
        n_classes=int(learner["learner_model_param"]["num_class"]) or 2,
    )


def _lightgbm(booster: Any) -> Interface:
    header = booster.model_to_string(num_iteration=1).splitlines()
    objective = next((line.partition("=")[2].split()[0] for line in header if line.startswith("objective=")), "none")
    if objective not in ("binary", "cross_entropy", "multiclass", "multiclassova"):
        raise _no_classifier(objective)
    several = objective.startswith("multiclass")

    def call(table: FloatArray) -> FloatArray:
        proba: FloatArray = np.asarray(booster.predict(table))
        # One classifier against all others per class: their probabilities do not sum to 1.
        return proba / proba.sum(1, keepdims=True) if objective == "multiclassova" else proba

    return Interface(
        call=call,
        name="lightgbm.Booster",
        kind="probabilities" if several else "sigmoid",
        kind_is_certain=True,
        layout="flat",
        n_classes=booster.num_model_per_iteration() if several else 2,
    )


def _no_classifier(objective: str) -> CapabilityError:
    return CapabilityError(
        f"this booster was trained with the objective {objective!r}, which does not tell classes apart. Train it with "
        "a binary or multi-class objective, or wrap a function that turns its predictions into probabilities."
    )
