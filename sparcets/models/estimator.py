"""Estimators with ``predict_proba`` or ``decision_function``: of scikit-learn, aeon, sktime, and boosters' own."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import CapabilityError
from sparcets.models.interface import Adapted, Layout

CHANNELS_FIRST = ("aeon", "sktime")
OF_TABLES = ("xgboost", "lightgbm")
NOTE = "'decision_function', as the softmax or sigmoid of its values: their order is kept, they are not calibrated"


def adapt(model: Any) -> Adapted | None:
    """Return an estimator by its ``predict_proba`` or, where it has none, by its ``decision_function``."""
    name = type(model).__name__
    if callable(getattr(model, "predict_proba", None)):
        return Adapted(
            call=model.predict_proba, name=name, kind="probabilities", kind_is_certain=True, layout=layout_of(model)
        )
    if not callable(getattr(model, "decision_function", None)):
        return None
    if any(getattr(part, "decision_function_shape", "ovr") == "ovo" for part in _parts(model)):
        raise CapabilityError(
            f"the decision_function of {name} gives one value per pair of classes. Set decision_function_shape='ovr', "
            "which needs no new fit, for one value per class."
        )
    return Adapted(
        call=partial(decisions, model),
        name=name,
        kind="logits",
        kind_is_certain=True,
        layout=layout_of(model),
        note=NOTE,
    )


def decisions(model: Any, series: FloatArray, **side: Any) -> FloatArray:
    """Return the decision function (batch, classes), or (batch,) for two classes; side inputs are passed on by name.

    The largest value of a row is that of the class that ``model.predict`` gives: an SVC decides between several classes
    by votes, and a tie of votes against the decision function. There, the two values are exchanged.
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
    """Return how an estimator wants its series, by the packages that it comes from."""
    packages = {package(part) for part in _parts(model)}
    if packages.intersection(CHANNELS_FIRST):
        return "bft"
    return "flat" if package(model) in OF_TABLES else "btf"


def _parts(model: Any) -> list[Any]:
    """Return the model and, of a pipeline, its steps."""
    steps = getattr(model, "steps", None)
    return [model, *(part for _, part in steps)] if isinstance(steps, list) else [model]


def package(model: Any) -> str:
    """Return the package that a model comes from, or that one of its base classes does.

    >>> from sklearn.svm import SVC
    >>> package(SVC()), package(3)
    ('sklearn', 'builtins')
    """
    known = (*CHANNELS_FIRST, *OF_TABLES, "keras", "tf_keras", "tensorflow", "onnxruntime")
    packages = [kind.__module__.split(".")[0] for kind in type(model).__mro__]
    return next((one for one in packages if one in known), packages[0])
