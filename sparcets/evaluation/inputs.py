"""What an evaluation is given: refused in words where it cannot be, or where it does not belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparcets.classifiers.base import Classifier
from sparcets.datasets.base import Dataset
from sparcets.errors import CapabilityError, DataError
from sparcets.explanation import Explanation

ASKED = 16  # answers that a classifier is asked about again: those it was least sure of tell most
# How far a probability may be off, absolutely and in parts of itself: another device or batch makes less of a
# difference, another model more, and where both are sure it shows in the small probabilities only.
ABSOLUTE, RELATIVE = 1e-4, 0.1


def check_explanation(e: Any) -> None:
    """Refuse what is no explanation, and one that holds nothing to measure."""
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
    """Refuse what is no data set."""
    if not isinstance(dataset, Dataset):
        raise DataError(
            f"dataset must be a Dataset, got {type(dataset).__name__}. sp.load_dataset(name) loads one, "
            "sp.Dataset.from_arrays(X, y) makes one of arrays."
        )


def check_kind(classifier: Any) -> None:
    """Refuse what is no classifier of sparcets."""
    if not isinstance(classifier, Classifier):
        raise CapabilityError(
            f"classifier must be a classifier of sparcets, got {classifier!r}. Pass the explained one; a model of "
            "your own goes through sp.wrap(model)."
        )


def check_explained(classifier: Any, e: Explanation) -> None:
    """Refuse a classifier that says other things of the answers than the one that was explained."""
    check_kind(classifier)
    asked = np.argsort(e.proba_after.max(1), kind="stable")[:ASKED]
    kept = e.proba_after[asked]
    said = classifier.predict_proba(e.counterfactual[asked], None if e.lengths is None else e.lengths[asked])
    hint = "Pass the one the explainer was given, or leave classifier= out."
    if said.shape != kept.shape:
        raise DataError(
            f"{classifier!r} is not the classifier that was explained: it tells {said.shape[1]} classes apart, the "
            f"explanation {kept.shape[1]}. {hint}"
        )
    off = np.abs(said - kept) - (ABSOLUTE + RELATIVE * kept)
    i, k = np.unravel_index(off.argmax(), off.shape)
    if off[i, k] > 0:
        raise DataError(
            f"{classifier!r} is not the classifier that was explained: to answer {asked[i]} it gives class "
            f"{e.class_names[k]!r} the probability {said[i, k]:.3g}, but the explanation has {kept[i, k]:.3g}. {hint}"
        )


def check_judges(judges: Any) -> None:
    """Refuse judges without a name, or that cannot be asked."""
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
