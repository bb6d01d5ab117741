"""Checks of the arguments of an evaluation, each with an error message that says what to pass instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeGuard

import numpy as np

from sparcets.arrays import FloatArray, missing_entries
from sparcets.classifiers.base import Classifier
from sparcets.classifiers.regressor import Regressor
from sparcets.datasets.base import Dataset
from sparcets.errors import CapabilityError, DataError
from sparcets.evaluation.numbers import check_explained_numbers
from sparcets.explanation.result import Explanation
from sparcets.side_inputs import take_rows

N_COMPARED = (
    16  # answers whose probabilities are computed again: the least certain ones, which differ most between models
)
# Tolerance of a probability. Another device or batch size makes a smaller difference, another model a larger one; where
# both models are certain, it shows in the small probabilities only, hence the relative part.
ATOL, RTOL = 1e-4, 0.1


def check_explanation(e: Any) -> None:
    """Raise an error unless ``e`` is an explanation with at least one answer to measure."""
    if not isinstance(e, Explanation):
        raise DataError(
            f"evaluate measures an Explanation, got {type(e).__name__}. Make one with explainer.explain(X, target), "
            "or read one with sp.load_explanation."
        )
    if not len(e):
        raise DataError("there are no answers to evaluate. Explain at least one query.")
    if (e.status == "unchanged").all():
        raise DataError(
            f"there is nothing to measure: all {len(e)} answers are 'unchanged', because the classifier puts their "
            "queries into the target class already. Explain queries of other classes, or choose another target."
        )


def check_dataset(dataset: Any) -> None:
    """Raise an error unless ``dataset`` is a Dataset."""
    if not isinstance(dataset, Dataset):
        raise DataError(
            f"dataset must be a Dataset, got {type(dataset).__name__}. sp.load_dataset(name) loads one, "
            "sp.Dataset.from_arrays(X, y) makes one of arrays."
        )


def check_kind(classifier: Any) -> None:
    """Raise an error unless ``classifier`` is a sparcets classifier, or a regressor."""
    if not isinstance(classifier, (Classifier, Regressor)):
        raise CapabilityError(
            f"classifier must be a sparcets classifier, got {classifier!r}. Pass the explained one; wrap a model of "
            "your own with sp.wrap(model)."
        )


def check_explained(classifier: Any, e: Explanation) -> None:
    """Raise an error if the classifier's probabilities of the answers differ from those in the explanation."""
    check_kind(classifier)
    if isinstance(classifier, Regressor) != (e.numbers is not None):
        raise DataError(
            f"{classifier!r} is not the model that was explained: one predicts numbers, the other classes. Pass the "
            "one the explainer was given, or leave classifier= out."
        )
    if e.numbers is not None:
        some = slice(0, N_COMPARED)
        ask: Callable[..., Any] = classifier.predict_unchecked if takes(classifier, e.query) else classifier.predict
        if e.side is not None:
            ask = partial(classifier.predict, side=take_rows(e.side, some))
        check_explained_numbers(classifier, e, np.arange(len(e))[some], ask)
    else:
        _check_probabilities(classifier, e)


def _check_probabilities(classifier: Classifier, e: Explanation) -> None:
    rows = np.argsort(e.proba_after.max(1), kind="stable")[:N_COMPARED]
    stored, X = e.proba_after[rows], e.counterfactual[rows]
    # Where the shape does not fit, the checked path raises the error that says so.
    fits = takes(classifier, X)
    predict: Callable[..., FloatArray] = classifier.proba_unchecked if fits else classifier.predict_proba
    if e.side is not None:
        predict = partial(classifier.predict_proba, side=take_rows(e.side, rows))
    predicted = predict(X, None if e.lengths is None else e.lengths[rows])
    hint = "Pass the one the explainer was given, or leave classifier= out."
    if predicted.shape != stored.shape:
        raise DataError(
            f"{classifier!r} is not the classifier that was explained: it has {predicted.shape[1]} classes, the "
            f"explanation {stored.shape[1]}. {hint}"
        )
    excess = np.abs(predicted - stored) - (ATOL + RTOL * stored)
    i, k = np.unravel_index(excess.argmax(), excess.shape)
    if excess[i, k] > 0:
        raise DataError(
            f"{classifier!r} is not the classifier that was explained: for answer {rows[i]} its probability of class "
            f"{e.class_names[k]!r} is {predicted[i, k]:.3g}, but the explanation has {stored[i, k]:.3g}. {hint}"
        )


def takes(classifier: object, X: FloatArray) -> TypeGuard[Classifier | Regressor]:
    """Return whether ``classifier`` is a sparcets classifier of series like ``X`` (batch, time, features).

    Series of an explanation were checked when it was made; if this holds, they need no second check.
    """
    return (
        isinstance(classifier, (Classifier, Regressor))
        and classifier.n_steps in (None, X.shape[1])
        and classifier.n_features in (None, X.shape[2])
        and (classifier.takes_gaps or missing_entries(X) is None)
    )


def check_judges(judges: Any) -> None:
    """Raise an error unless ``judges`` maps names to objects with a ``predict`` method."""
    if not isinstance(judges, Mapping):
        raise DataError(
            f"judges must be a mapping from names to classifiers, got {type(judges).__name__}. "
            "Write judges={'mine': classifier}; an empty mapping leaves transfer out."
        )
    for name, judge in judges.items():
        if not callable(getattr(judge, "predict", None)):
            raise CapabilityError(
                f"the judge {name!r} ({type(judge).__name__}) has no predict(X, lengths). Wrap it: sp.wrap(model)."
            )
