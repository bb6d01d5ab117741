"""What a method needs of a model, and agreement of model and data on the labels."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier, Model
from sparcets.classifiers.regressor import DifferentiableRegressor, Regressor
from sparcets.datasets.base import Dataset
from sparcets.datasets.labels import check_numbers
from sparcets.errors import CapabilityError, ConfigError, LabelError, ShapeError
from sparcets.explanation.outcome import Outcome
from sparcets.validation import check_labels

if TYPE_CHECKING:
    from sparcets.explainers.base import BaseExplainer

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Labels:
    """Checked labels of a fit.

    Attributes
    ----------
    y, class_names
        Class indices (batch,) and the names of the classes; zeros and no names for a regressor.
    numbers, outcome
        For a regressor, the labels (batch, outputs) and what they are; else None.
    """

    y: IntArray
    class_names: tuple[str, ...]
    numbers: FloatArray | None = None
    outcome: Outcome | None = None


def check_model(model: Any, explainer: BaseExplainer[Any]) -> None:
    """Raise unless a model is one that a method can explain."""
    owner = type(explainer).__name__
    if not isinstance(model, Model):
        raise CapabilityError(
            f"{owner} explains a classifier of sparcets, got {type(model).__name__}. Wrap your model first: "
            "sp.wrap(model)."
        )
    if isinstance(model, Regressor) and not explainer.supports_numbers:
        raise CapabilityError(
            f"{owner} explains classifiers, but {model.name} predicts numbers. Use sp.Explainer or sp.Nearest, or "
            "sp.Ics for a model with gradients."
        )
    if isinstance(model, Regressor) and explainer.config.target is not None:
        raise ConfigError("the settings name a target class; a regressor has none. Leave target out of them.")
    if explainer.needs_gradients and not isinstance(model, DifferentiableRegressor):
        require_gradients(model, owner)


def require_gradients(model: Model, owner: str) -> DifferentiableClassifier:
    """Return the classifier of a method, ``owner``, that needs its gradients; raise for a black box."""
    if not isinstance(model, DifferentiableClassifier):
        raise CapabilityError(
            f"{owner} needs gradients, but {model.name} is a black box. "
            "Wrap an nn.Module, or use sp.Explainer or sp.Nearest, which need none."
        )
    return model


def agree_on_labels(
    model: Classifier | Regressor, X: FloatArray, lengths: IntArray | None, y: Any, source: Dataset | None
) -> Labels:
    """Return the labels of a fit: classes that model and data agree on, or as many numbers as the model predicts.

    Parameters
    ----------
    model
        The model to explain.
    X, lengths, y
        Checked training series, their true lengths or None, and labels that are not checked yet.
    source
        The data set they come from, if any.
    """
    wanted = "regression" if isinstance(model, Regressor) else "classification"
    if source is not None and source.task != wanted:
        what = "numbers" if wanted == "regression" else "classes"
        raise LabelError(
            f"{model.name} predicts {what}, but {source.name!r} is a data set for {source.task}. For numbers, use "
            "sp.wrap(model, task='regression') and sp.Dataset.from_arrays(X, y, task='regression')."
        )
    first = None if lengths is None else lengths[:1]
    if not isinstance(model, Regressor):
        names = agree_on_class_names(model, X[:1], first, y, source)
        labels, names = check_labels(y, n_samples=len(X), class_names=names)
        _warn_of_absent(labels, names)
        return Labels(labels, names)
    numbers = check_numbers(y, n_samples=len(X))
    n_outputs = model.predict_unchecked(X[:1], first).shape[1]
    if numbers.shape[1] != n_outputs:
        raise ShapeError(
            f"{model.name} predicts {n_outputs} numbers per series, y holds {numbers.shape[1]}; pass one label for "
            f"each, (batch, {n_outputs})."
        )
    outputs, units = (None, None) if source is None else (source.output_names, source.output_units)
    return Labels(np.zeros(len(X), dtype=np.int64), (), numbers, Outcome.of_labels(numbers, outputs, units))


def _warn_of_absent(labels: IntArray, names: Sequence[str]) -> None:
    absent = [name for k, name in enumerate(names) if k not in labels]
    if absent:
        log.warning(
            "no training series is of class %s: an answer towards it resembles no real series, and may not be found. "
            "Add series of it, or choose other targets.",
            ", ".join(absent),
        )


def agree_on_class_names(
    model: Classifier, X: FloatArray, lengths: IntArray | None, y: Any, source: Dataset | None
) -> tuple[str, ...]:
    """Return the class names for a fit: those of the data set, of the model, or of the labels.

    Parameters
    ----------
    model
        The classifier.
    X, lengths
        A checked training series, or some, and their true lengths or None.
    y
        Labels that are not checked yet.
    source
        The data set they come from, if any.
    """
    model.proba_unchecked(X[:1], lengths)  # a wrapped model may know its number of classes only after a prediction
    if source is None:
        return model.class_names if model.named else _names_from_labels(model, y)
    if model.n_classes != source.n_classes:
        raise LabelError(
            f"{model.name} tells {model.n_classes} classes apart ({', '.join(model.class_names)}), "
            f"the data set has {source.n_classes} ({', '.join(source.class_names)})."
        )
    if model.named and model.class_names != source.class_names:
        raise LabelError(
            f"the classes of {model.name} ({', '.join(model.class_names)}) and of the data set "
            f"({', '.join(source.class_names)}) must be the same, in the same order."
        )
    return source.class_names


def _names_from_labels(model: Classifier, y: Any) -> tuple[str, ...]:
    """Return class names from string labels, in alphabetical order, for a model whose classes are only numbered."""
    labels = np.asarray(y)
    if labels.ndim != 1 or not all(isinstance(v, str) for v in labels.tolist()):
        return model.class_names
    names = tuple(str(v) for v in np.unique(labels.astype(str)))
    if set(names) <= set(model.class_names):
        return model.class_names  # the numbers themselves, as text: "10" does not stand before "2"
    if len(names) != model.n_classes:
        raise LabelError(
            f"{model.name} tells {model.n_classes} classes apart, y names {len(names)} ({', '.join(names[:8])})."
        )
    return names
