"""``Booster`` of xgboost and of lightgbm: models of tables that do not name their classes.

The estimators of the two packages, ``XGBClassifier`` and ``LGBMClassifier``, have ``predict_proba``; see
:mod:`sparcets.models.estimator`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import CapabilityError
from sparcets.models.estimator import package
from sparcets.models.interface import Adapted


def adapt(model: Any) -> Adapted | None:
    """Return a booster that was trained to classify."""
    if type(model).__name__ != "Booster":
        return None
    return {"xgboost": _xgboost, "lightgbm": _lightgbm}.get(package(model), lambda _: None)(model)


def _xgboost(booster: Any) -> Adapted:
    learner = json.loads(booster.save_config())["learner"]
    objective = str(learner["objective"]["name"])
    if objective not in ("binary:logistic", "binary:logitraw", "multi:softmax", "multi:softprob"):
        raise _no_classifier(objective)
    # The margins are logits, also of multi:softmax, which predicts labels. A plain array needs no names of features.
    return Adapted(
        call=lambda table: booster.inplace_predict(table, predict_type="margin"),
        name="xgboost.Booster",
        kind="logits",
        kind_is_certain=True,
        layout="flat",
        n_classes=int(learner["learner_model_param"]["num_class"]) or 2,
    )


def _lightgbm(booster: Any) -> Adapted:
    header = booster.model_to_string(num_iteration=1).splitlines()
    objective = next((line.partition("=")[2].split()[0] for line in header if line.startswith("objective=")), "none")
    if objective not in ("binary", "cross_entropy", "multiclass", "multiclassova"):
        raise _no_classifier(objective)
    several = objective.startswith("multiclass")

    def call(table: FloatArray) -> FloatArray:
        proba: FloatArray = np.asarray(booster.predict(table))
        # One classifier against all others per class: their probabilities do not sum to 1.
        return proba / proba.sum(1, keepdims=True) if objective == "multiclassova" else proba

    return Adapted(
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
