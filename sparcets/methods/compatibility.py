"""Checks of a model before a fit: whether it has what a method needs, and agrees with the labels and with itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcets.core.errors import (
    CapabilityError,
    ConfigError,
    LabelError,
    ModelOutputError,
    ModelWarning,
    ShapeError,
    SparcetsError,
    warn_user,
)
from sparcets.core.info import MIN_LIKELY, ModelCheck, Outcome
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.core.validation import check_labels, check_numbers
from sparcets.core.words import percent
from sparcets.data.dataset import Dataset
from sparcets.models.base import Classifier, Model, Regressor, contradicts

if TYPE_CHECKING:
    from sparcets.methods.base import BaseExplainer

log = logging.getLogger(__name__)
COMPARED, MOST_COMPARED = 512, 4096  # series whose labels are compared; more only if the first ones leave a doubt
MOST_ENTRIES = 50_000_000  # entries of these series, bounding memory
MIN_HELD_OUT = 10  # with fewer series that it was not trained on, the training series are compared
ASKED_TWICE, ASKED_ALONE = 64, 16  # series that are predicted again, to compare a model with itself
NOISE_NUMBERS = 1e-3  # standard deviations of the labels by which repeated predictions of numbers may differ
SMOOTH, ROUGH = 0.8, 0.3  # correlations of neighbours along an axis: at least for time, at most for features


@dataclass(frozen=True, eq=False)
class Labels:
    """Checked labels of a fit.

    Attributes
    ----------
    values
        Class indices (batch,); for a regressor, numbers (batch, outputs).
    class_names, outcome
        Names of the classes; for a regressor, the description of the numbers, else None.
    """

    values: np.ndarray[Any, Any]
    class_names: tuple[str, ...] = ()
    outcome: Outcome | None = None

    @property
    def y(self) -> IntArray:
        """Class of each series (batch,); zeros for a regressor."""
        return self.values if self.class_names else np.zeros(len(self.values), dtype=np.int64)

    @property
    def numbers(self) -> FloatArray:
        """Numbers (batch, outputs) of a regressor; no columns for classes."""
        return np.zeros((len(self.values), 0)) if self.class_names else self.values

    def judge(self, outputs: FloatArray, some: _Labelled) -> ModelCheck:
        """Compare outputs (batch, classes or numbers) for some labelled series with their labels."""
        if not self.outcome:
            said = np.asarray(outputs.argmax(1), dtype=np.int64)
            return ModelCheck.of_classes(said, some.y, self.class_names, held_out=some.held_out)
        center, scale = self.outcome.center, self.outcome.scale
        return ModelCheck.of_numbers(outputs, some.y, center, scale, held_out=some.held_out)

    def n_other(self, first: FloatArray, again: FloatArray) -> int:
        """Return how many predictions (batch, outputs) differ in the class, or in a number by more than noise."""
        if not self.outcome:
            return int(contradicts(first, again).sum())
        return int(((np.abs(first - again) / self.outcome.scale).max(1) > NOISE_NUMBERS).sum())


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
    if explainer.needs_gradients and not model.differentiable:
        raise CapabilityError(
            f"{owner} needs gradients, but {model.name} is a black box. "
            "Wrap an nn.Module, or use sp.Explainer or sp.Nearest, which need none."
        )


def agree_on_labels(model: Classifier | Regressor, series: Series, y: Any, source: Dataset | None) -> Labels:
    """Return the labels of a fit: classes that model and data agree on, or one number per output of the model.

    The series are checked, the labels ``y`` are not; ``source`` is the data set of both, if any.
    """
    wanted = "regression" if isinstance(model, Regressor) else "classification"
    if source is not None and source.task != wanted:
        what = "numbers" if wanted == "regression" else "classes"
        raise LabelError(
            f"{model.name} predicts {what}, but {source.name!r} is a data set for {source.task}. For numbers, use "
            "sp.wrap(model, task='regression') and sp.Dataset.from_arrays(X, y, task='regression')."
        )
    if not isinstance(model, Regressor):
        names = agree_on_class_names(model, series, y, source)
        labels, names = check_labels(y, n_samples=len(series), class_names=names)
        if absent := [name for k, name in enumerate(names) if k not in labels]:
            log.warning(
                "no training series is of class %s: an answer towards it resembles no real series, and may not be "
                "found. Add series of it, or choose other targets.",
                ", ".join(absent),
            )
        return Labels(labels, names)
    numbers = check_numbers(y, n_samples=len(series))
    n_outputs = _first_outputs(model, series, numbers).shape[1]
    if numbers.shape[1] != n_outputs:
        raise ShapeError(
            f"{model.name} predicts {n_outputs} numbers per series, y holds {numbers.shape[1]}; pass one label for "
            f"each, (batch, {n_outputs})."
        )
    outputs, units = (None, None) if source is None else (source.output_names, source.output_units)
    return Labels(numbers, outcome=Outcome.of_labels(numbers, outputs, units))


def agree_on_class_names(model: Classifier, series: Series, y: Any, source: Dataset | None) -> tuple[str, ...]:
    """Return the class names for a fit, from the data set, the model, or the unchecked labels."""
    _first_outputs(model, series, y)  # a wrapped model may know its number of classes only after a prediction
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
    """Return class names from string labels, in alphabetical order, for a model without names of classes."""
    labels = np.asarray(y)
    if labels.ndim != 1 or not all(isinstance(v, str) for v in labels.tolist()):
        return model.class_names
    names = tuple(str(v) for v in np.unique(labels.astype(str)))
    if set(names) <= set(model.class_names):
        return model.class_names  # the numbers themselves, so that "10" is not before "2"
    if len(names) != model.n_classes:
        raise LabelError(
            f"{model.name} tells {model.n_classes} classes apart, y names {len(names)} ({', '.join(names[:8])})."
        )
    return names


def check_against_labels(
    model: Classifier | Regressor, series: Series, labels: Labels, source: Dataset | None
) -> ModelCheck:
    """Compare a model with the labels of a fit, and with itself; warn of contradictions.

    The test series of a data set ``source`` are used if there are more of them than other held-out series.
    """
    part = _held_out(model, series, labels, source)
    for at_most in (COMPARED, MOST_COMPARED):
        some = part.spread(at_most)
        outputs = model.outputs_unchecked(some.series)
        check = labels.judge(outputs, some)
        if not check.doubts or len(some.series) == len(part.series):
            break
    if model.may_contradict:
        check = _compare_with_itself(model, some, outputs, labels, check)
    remarks = [*check.remarks, *_remarks_on_axes(model, part, labels, check)]
    check = replace(check, remarks=tuple(remarks))
    order = ", in the same order (class_names of sp.wrap, --classes)" if labels.class_names else ""
    advice = f"Train the model first, or check that its outputs are what the labels are{order}."
    for doubt in check.doubts:
        warn_user(f"{model.name}: {doubt}. No answer will have the verdict believed. {advice}", ModelWarning)
    for remark in check.remarks:
        warn_user(f"{model.name}: {remark}.", ModelWarning)
    return check


@dataclass(frozen=True, eq=False)
class _Labelled:
    """Series with labels: classes (batch,) or numbers (batch, outputs)."""

    series: Series
    y: Any
    held_out: bool = False

    def spread(self, n: int) -> _Labelled:
        """Return at most ``n`` of the series, evenly spaced."""
        n = min(n, len(self.series), max(ASKED_TWICE, MOST_ENTRIES // self.series.values[0].size))
        whole = len(self.series)
        return self if n == whole else self.take(np.linspace(0, whole - 1, n).astype(np.int64))

    def take(self, rows: IntArray) -> _Labelled:
        """Return some of the series."""
        return replace(self, series=self.series[rows], y=self.y[rows])


def _held_out(model: Classifier | Regressor, series: Series, labels: Labels, source: Dataset | None) -> _Labelled:
    """Return series that the model was not trained on; the training series if there are too few of them."""
    training = _Labelled(series, labels.values)
    parts = []
    if source is not None and len(source.X_test):
        y = source.y_test if labels.class_names else check_numbers(source.y_test, n_samples=len(source.X_test))
        side = None if model.side is None else source.side_test
        try:
            tested = model.check_input(source.X_test, source.lengths_test, side, owner=model.name, like=model)
        except (
            SparcetsError
        ):  # for example, gaps that it does not take, which are an error only if these series are explained
            pass
        else:
            if (tested.steps == tested.n_steps).all() and not series.unequal:
                tested = Series(tested.values)  # nothing is padded
            parts.append(_Labelled(tested, y, held_out=True))
    rows = model.validation_rows(series)
    if rows is not None:
        parts.append(replace(training.take(rows), held_out=True))
    found = max(parts, key=lambda part: len(part.series), default=training)
    return found if len(found.series) >= MIN_HELD_OUT else training


def _compare_with_itself(
    model: Classifier | Regressor, some: _Labelled, outputs: FloatArray, labels: Labels, check: ModelCheck
) -> ModelCheck:
    """Add repeated predictions to the check: in another batch, in another order, one by one, and by ``predict``."""
    rows = np.linspace(0, len(outputs) - 1, min(ASKED_TWICE, len(outputs))).astype(np.int64)
    asked, first = some.series[rows[::-1].copy()], outputs[rows[::-1]]
    again = model.outputs_unchecked(asked)
    alone = np.concatenate([model.outputs_unchecked(one) for one in asked[:ASKED_ALONE].batches(1)])
    n_other, n_alone = labels.n_other(first, again), labels.n_other(first[: len(alone)], alone)
    other = "another class" if labels.class_names else "other numbers"
    doubts = list(check.doubts)
    if n_other:
        doubts.append(
            f"the model contradicts itself: asked again, in another batch, it predicts {other} for {n_other} of "
            f"{len(rows)} series (is it random, does it keep a state, or does it normalise over the batch?)"
        )
    elif n_alone:
        doubts.append(
            f"the model contradicts itself: asked about one series alone, it predicts {other} than in a batch, for "
            f"{n_alone} of {len(alone)} series (does it normalise over the batch?)"
        )
    remarks = list(check.remarks)
    own = model.own_predictions(some.series) if isinstance(model, Classifier) else None
    if own is not None and (unlike := own != outputs.argmax(1)).any():
        remarks.append(
            f"predict and predict_proba disagree on {percent(float(unlike.mean()))} of {len(own)} series; sparcets "
            "goes by predict_proba, and does not believe answers where they disagree. scikit-learn's "
            "CalibratedClassifierCV around the model makes them agree"
        )
    consistent = not n_other and not n_alone
    return replace(check, doubts=tuple(doubts), remarks=tuple(remarks), consistent=consistent)


# A model that fails, or is near chance, because time and features are exchanged, in its layout or in the array.


def _first_outputs(model: Classifier | Regressor, series: Series, y: Any) -> FloatArray:
    """Return a model's outputs for the first series; if it fails, the error says whether exchanged axes would help."""
    try:
        return model.outputs_unchecked(series[:1])
    except ModelOutputError as error:
        if (said := _outputs_exchanged(model, series)) is None:
            raise
        try:
            if isinstance(model, Classifier):
                names = model.class_names if model.named else None
                labels = Labels(*check_labels(y, n_samples=len(series), class_names=names))
            else:
                numbers = check_numbers(y, n_samples=len(series))
                labels = Labels(numbers, outcome=Outcome.of_labels(numbers))
            check = labels.judge(said, _Labelled(series, labels.values).spread(len(said)))
        except (SparcetsError, IndexError, ValueError):  # labels that do not fit the outputs
            raise error from None
        raise ModelOutputError(f"{error} {_exchanged_words(check)}. {_which_axes(series.values)}") from error


def _outputs_exchanged(model: Classifier | Regressor, series: Series) -> FloatArray | None:
    """Return a model's outputs for some series with time and features exchanged; None if it fails."""
    if series.unequal or model.side is not None or model.n_steps is not None:
        return None
    some = _Labelled(series, np.zeros(len(series))).spread(COMPARED).series
    try:
        return model.outputs_unchecked(Series(np.ascontiguousarray(some.values.swapaxes(1, 2))))
    except SparcetsError:
        return None


def _exchanged_words(check: ModelCheck) -> str:
    """Describe how a model compares with the labels if the two axes are exchanged."""
    if check.score is None:
        return "With the last two axes of X exchanged it runs"
    if check.chance == 0:
        return f"With the last two axes of X exchanged it explains {check.score:.2f} of the variance of the labels"
    near = ", which is not better than chance" if check.doubts else ""
    return f"With the last two axes of X exchanged it agrees with {percent(check.score)} of the labels{near}"


def _which_axes(X: FloatArray) -> str:
    """Describe whether the model's layout or the array seems to be exchanged."""
    both = "Labels cannot tell layout='bft' from an array that is transposed: the model gets the same numbers"
    if _time_is_last(X):
        return f"{both}; but values follow each other along the last axis of X, as in time: pass X.swapaxes(1, 2)."
    if _time_is_last(X.swapaxes(1, 2)):
        return f"{both}; but values follow each other along the middle axis of X, as in time: wrap with layout='bft'."
    return f"{both}. Is X (batch, time, features)?"


def _time_is_last(X: FloatArray) -> bool:
    """Return whether values are smooth along the last axis, like time, and not along the middle one."""
    return _correlation_of_neighbours(X.swapaxes(1, 2)) > SMOOTH and _correlation_of_neighbours(X) < ROUGH


def _correlation_of_neighbours(X: FloatArray) -> float:
    """Return the mean correlation of consecutive steps of series (batch, time, features), without their mean."""
    x = np.asarray(X[:COMPARED], dtype=np.float64)
    x = x - np.nanmean(x, axis=(0, 1))
    spread = np.nanmean(x**2, axis=(0, 1))
    products = np.nanmean(x[:, 1:] * x[:, :-1], axis=(0, 1)) if x.shape[1] > 1 else np.zeros_like(spread)
    return float(np.mean(products / np.where(spread > 0, spread, 1.0)))


def _remarks_on_axes(model: Classifier | Regressor, part: _Labelled, labels: Labels, check: ModelCheck) -> list[str]:
    """Return remarks for ``fit`` if time and features seem to be exchanged."""
    if check.doubts:
        said = _outputs_exchanged(model, part.series)
        if said is None or said.shape[1] != (len(labels.class_names) or labels.values.shape[-1]):
            return []
        other = labels.judge(said, part.spread(len(said)))
        if other.doubts or other.score is None or other.score < MIN_LIKELY:  # weights at random may do a little better
            return []
        return [f"{_exchanged_words(other)}. {_which_axes(part.series.values)}".rstrip(".")]
    interface: Any = getattr(model, "interface", None)
    given = interface is not None and interface.layout == "bft" and "layout" not in interface.assumed
    if given and not part.series.unequal and model.side is None and _time_is_last(part.series.values):
        return [
            "X may be (batch, features, time): its values follow each other along the last axis, as in time, and not "
            "along the middle one. If so, pass X.swapaxes(1, 2) and leave layout='bft' out"
        ]
    return []
