"""What a method needs of a model, and agreement of model and data on the classes."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.datasets.base import Dataset
from sparcets.errors import CapabilityError, LabelError
from sparcets.validation import check_labels

log = logging.getLogger(__name__)


def require_gradients(model: Classifier, owner: str) -> DifferentiableClassifier:
    """Return the classifier of a method, ``owner``, that needs its gradients; raise for a black box."""
    if not isinstance(model, DifferentiableClassifier):
        raise CapabilityError(
            f"{owner} needs gradients, but {model.name} is a black box. "
            "Wrap an nn.Module, or use sp.Explainer or sp.Nearest, which need none."
        )
    return model


def check_fit_labels(
    model: Classifier, X: FloatArray, lengths: IntArray | None, y: Any, source: Dataset | None
) -> tuple[IntArray, tuple[str, ...]]:
    """Return labels (batch,) and class names for a fit; see :func:`agree_on_class_names`."""
    agreed = agree_on_class_names(model, X[:1], None if lengths is None else lengths[:1], y, source)
    labels, names = check_labels(y, n_samples=len(X), class_names=agreed)
    absent = [name for k, name in enumerate(names) if k not in labels]
    if absent:
        log.warning(
            "no training series is of class %s: an answer towards it resembles no real series, and may not be found. "
            "Add series of it, or choose other targets.",
            ", ".join(absent),
        )
    return labels, names


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
