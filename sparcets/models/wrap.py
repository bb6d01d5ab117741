"""wrap: a user's model as a Classifier or a Regressor; the model itself is left unchanged.

What is particular to a kind of model, from Keras to ONNX, is in a module beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, get_args, overload

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.errors import CapabilityError, ConfigError, ModelOutputError, SparcetsError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import Series
from sparcets.core.side_inputs import Side, SideInputs
from sparcets.io.files import digest_of_json
from sparcets.models import estimator, module, onnx
from sparcets.models.base import PREDICT_BATCH, Classifier, Model, Regressor, frozen
from sparcets.models.inputs import (
    Lengths,
    Missing,
    arrange,
    call_parts,
    check_batch,
    check_missing,
    check_side_arguments,
    filled,
    find_lengths_form,
    split_side,
)
from sparcets.models.interface import (
    NUMBERS,
    Interface,
    Kind,
    Layout,
    Part,
    find_class_names,
    has_names,
    own_names,
)
from sparcets.models.outputs import as_rows, log_probabilities, model_failed, no_distribution, parse_output, pick
from sparcets.training.networks import blank_padding

Task = Literal["classification", "regression"]


class _Wrapped(Model):
    """A user's model: a module, used as it is at each call and left as it was found, or a black box of arrays.

    Parameters
    ----------
    model
        The user's model itself.
    interface
        How it is called, and what it takes and returns.
    """

    takes_side = True

    def __init__(self, model: Any, interface: Interface) -> None:
        self.model, self.interface = model, interface
        self.missing, self.takes_longer = interface.missing, interface.lengths.kind != "padding"
        if isinstance(interface.call, nn.Module):
            self.differentiable, self.module = True, interface.call

    def __repr__(self) -> str:
        kind = "WrappedModule" if self.differentiable else "BlackBox"
        return f"{kind}{super().__repr__().removeprefix(type(self).__name__)}"

    @property
    def name(self) -> str:
        """The model's class or file, or the function's name."""
        return self.interface.name

    @property
    def description(self) -> str:
        """The model's name, and what it was said or assumed to take and to return."""
        return f"{self.name} ({self.interface.describe(self.side)})"

    @property
    def device(self) -> torch.device:
        """Where the weights of a module are; the CPU if it has none."""
        first = next(self._tensors(), None)
        return torch.device("cpu") if first is None else first.device

    @property
    def dtype(self) -> torch.dtype | None:
        """The type of a module's weights, in which it receives its input; None if it has none and takes any."""
        return next((p.dtype for p in self._tensors() if p.is_floating_point()), None)

    def _tensors(self) -> Iterator[Tensor]:
        return chain(self.module.parameters(), self.module.buffers()) if self.differentiable else iter(())

    def digest(self) -> str | None:
        """Return a digest of the model's file and of how it is used, or None where there is no file."""
        form, rule = self.interface, [self.missing] if self.takes_gaps else []
        if self.interface.digest is None or callable(form.part) or callable(self.missing):
            return None
        return digest_of_json([self.interface.digest, form.kind, form.part, form.layout, *rule])

    def _check_side(self, side: SideInputs) -> None:
        check_side_arguments(self.interface.call, side, self.name, lengths=self.interface.lengths.keyword)

    def _ask(self, x: Any, lengths: Any, call: Callable[[Any, Any, Any], Any] | None = None) -> Any:
        """Call the model, or another function, with checked series as it wants them; arrays and tensors alike."""
        x, side = (x, {}) if self.side is None else split_side(x, self.side, self.dtype)
        x = filled(x, self.missing, lengths) if self.takes_gaps else x
        if isinstance(x, Tensor):
            x = blank_padding(x.to(self.dtype or x.dtype), lengths)
        else:
            x = Series(x, lengths).blank().values
        return call_parts(call or self._call, arrange(x, self.interface.layout), lengths, side, self.interface.batch)

    def _ask_module(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if not self.differentiable:
            raise self._no_gradients()
        with frozen(self.module):
            raw: Tensor = self._ask(x, lengths)
        return raw

    def _pass(self, call: Callable[..., Any], x: Any, lengths: Any, side: Side) -> Any:
        """Return what the model, or another function, returns for series in its layout."""
        x = x if isinstance(x, Tensor) else np.array(x, order="C")  # a copy: the model may write into it
        return self.interface.lengths.call(call, x, lengths, side, time=2 if self.interface.layout == "bft" else 1)

    def _call(self, x: Any, lengths: Any, side: Side) -> Any:
        form, call = self.interface, self.interface.call
        try:
            raw = pick(self._pass(call, x, lengths, side), form.kind, form.part, self.name)
            if not isinstance(x, Tensor):
                raw = raw.detach().cpu().numpy() if isinstance(raw, Tensor) else np.asarray(raw)
        except SparcetsError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise model_failed(self.name, tuple(x.shape), form.layout, error, call) from error
        if not isinstance(raw, (Tensor, np.ndarray)):
            raise ModelOutputError(
                f"{self.name} returned {type(raw).__name__}; wrap a module that returns a tensor (batch, outputs), "
                "or say where it is: output=('logits', function of what it returns)."
            )
        return as_rows(raw, len(x), form.kind, self.name)


class WrappedClassifier(_Wrapped, Classifier):
    """A user's model of classes."""

    def __init__(self, model: Any, interface: Interface) -> None:
        super().__init__(model, interface)
        self._class_names, self.named = interface.class_names, interface.named

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series in the data's own units, with gradients to ``x``."""
        return log_probabilities(self._ask_module(x, lengths), self.interface.kind, self.name)

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        if self.differentiable:
            return super()._outputs(X, lengths)
        raw, kind = self._ask(X, lengths), self.interface.kind
        if kind == "probabilities":
            return raw  # bit for bit
        with torch.no_grad():
            return log_probabilities(torch.from_numpy(raw.astype(np.float64)), kind, self.name).exp().numpy()

    def own_predictions(self, X: FloatArray, lengths: IntArray | None = None) -> IntArray | None:
        """Return what the estimator's ``predict`` says, (batch,); None if it has none beside ``predict_proba``."""
        predict, names = getattr(self.model, "predict", None), own_names(self.model)
        if not callable(predict) or names is None or not callable(getattr(self.model, "predict_proba", None)):
            return None
        index = {label: k for k, label in enumerate(np.asarray(self.model.classes_).tolist())}

        def call(x: Any, lengths: Any, side: Side) -> Any:
            return np.asarray(self._pass(predict, x, lengths, side))

        try:
            parts = [self._ask(part.values, part.lengths, call) for part in Series(X, lengths).batches(PREDICT_BATCH)]
            said = np.array([index[label] for part in parts for label in part.tolist()], dtype=np.int64)
        except (Exception, SystemExit):  # the probabilities count: a predict that fails is none
            return None
        return said if len(said) == len(X) else None

    def _hint(self, proba: FloatArray) -> str:
        return no_distribution(proba, may_be_logits=not self.interface.kind_is_certain)


class WrappedRegressor(_Wrapped, Regressor):
    """A user's model of numbers (batch,) or (batch, outputs)."""

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``."""
        raw = self._ask_module(x, lengths)
        return raw.to(torch.promote_types(raw.dtype, torch.float32))

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        return super()._outputs(X, lengths) if self.differentiable else self._ask(X, lengths)


@overload
def wrap(
    model: Any,
    *,
    task: Literal["regression"],
    output: Part | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
    lengths: Lengths | None = None,
    missing: Missing | None = None,
) -> Regressor: ...


@overload
def wrap(
    model: Any,
    *,
    task: Literal["classification"] = "classification",
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    output: Kind | Part | tuple[Kind, Part] | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
    lengths: Lengths | None = None,
    missing: Missing | None = None,
) -> Classifier: ...


def wrap(
    model: Any,
    *,
    task: Task = "classification",
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    output: Kind | Part | tuple[Kind, Part] | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
    lengths: Lengths | None = None,
    missing: Missing | None = None,
) -> Classifier | Regressor:
    """Make a model usable by explainers. What was assumed of it is in the ``repr`` of the result.

    Parameters
    ----------
    model
        An ``nn.Module`` or a program of ``torch.export``; a model of Keras; the path of an ``.onnx`` file or a session
        of onnxruntime; an estimator with ``predict_proba`` or ``decision_function``; a ``Booster`` of xgboost or
        lightgbm; or a function that returns probabilities. A module is used as it is at each call, in evaluation mode,
        and left as it was found; what has no gradients is a black box.
    task
        ``"regression"`` for a model that predicts one number per series or several: by its ``predict``, its output, or
        what a function returns. ``n_classes``, ``class_names`` and kinds of ``output`` are for classes only.
    n_classes, class_names
        Number of classes and their names; found out where the model knows them.
    output
        What the model returns: ``"logits"`` (one column means the logit of class 1; the default for modules),
        ``"probabilities"`` (the default for others), or ``"sigmoid"`` (one probability, of class 1). If it returns a
        tuple or a dict, the part that is meant, by key, index or function: ``output=1``, or with what it is,
        ``output=("logits", "scores")``, ``output=("sigmoid", lambda p: p[:, 0])``.
    layout
        How the model wants its series: ``"btf"`` (batch, time, features; default), ``"bft"`` (batch, features, time;
        the default for aeon and sktime), or ``"flat"`` (batch, time * features; the default for boosters).
    batch
        Smallest and largest number of series that the model accepts in a call, such as ``(2, 64)``; None for any. A
        smaller call is padded by repeating its last series, a larger one is split.
    lengths
        What the model gets for series of unequal length: ``"argument"``, series padded with zeros and a second argument
        with their lengths; ``"packed"``, a ``PackedSequence`` of torch; ``"list"``, a list of the series without
        padding; ``"padding"``, series padded with zeros and no lengths. By itself, it is an argument if the model has
        one called ``lengths`` or alike, a list for estimators of aeon that take one, and padding otherwise.
    missing
        What the model gets for missing values (NaN): ``"refuse"`` (default; they are an error), ``"keep"`` (NaN),
        ``"forward"`` (the last value before; for the first ones, the next), ``"mean"`` (of the same feature of the same
        series), or a function from series with NaN (batch, time, features), a NumPy array, to filled ones.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> model = LogisticRegression(max_iter=500).fit(X.reshape(60, -1), y)
    >>> wrap(model, layout="flat")
    BlackBox(LogisticRegression (classification, output 'probabilities', layout 'flat'): 0, 1, 2)
    """
    if isinstance(model, (Classifier, Regressor)):
        what = "classifier" if isinstance(model, Classifier) else "regressor"
        other = task == "regression" and what == "classifier"
        if other or any(v is not None for v in (n_classes, class_names, output, layout, batch, lengths, missing)):
            raise ConfigError(
                f"{model.name} is a {what} of sparcets already; use it as it is, or wrap the model inside anew."
            )
        return model
    if isinstance(model, type):
        made = "(...)" if issubclass(model, nn.Module) else "(...).fit(X, y)"
        raise CapabilityError(
            f"{model.__name__} is a class. Wrap a trained model of it: sp.wrap({model.__name__}{made})."
        )
    layouts = get_args(Layout)
    for what, value, known in (("layout", layout, (None, *layouts)), ("task", task, get_args(Task))):
        if not (value is None or isinstance(value, str)) or value not in known:
            choices = [name for name in known if name is not None]
            hint = did_you_mean(value, choices) if isinstance(value, str) else ""
            raise ConfigError(f"no {what} {quoted(value)}.{hint} Known: {', '.join(choices)}.")
    kind, part = parse_output(output)
    numbers = task == "regression"
    if numbers and any(v is not None for v in (n_classes, class_names, kind)):
        raise ConfigError("n_classes, class_names and kinds of output are for classes; a regressor has none.")
    adapted = _adapt(model, numbers=numbers)
    if adapted.kind_is_certain and kind not in (None, adapted.kind):
        raise ConfigError(
            f"{adapted.name} returns {adapted.kind}, so it cannot have output={quoted(kind)}. Leave it out."
        )
    said = {"output": kind or adapted.kind_is_certain, "layout": layout, "lengths": lengths}
    found = replace(
        adapted,
        kind=NUMBERS if numbers else kind or adapted.kind,
        part=part,
        layout=layout or adapted.layout,
        batch=check_batch(batch) or adapted.batch,
        lengths=find_lengths_form(model, adapted.call, lengths, layout or adapted.layout),
        missing=check_missing("refuse" if missing is None else missing),
    )
    if numbers:
        return WrappedRegressor(model, found)
    declared = adapted.n_classes if part is None else None
    names = find_class_names(model, n_classes=n_classes, class_names=class_names, kind=found.kind, declared=declared)
    named = class_names is not None or has_names(model)
    assumed = tuple(name for name, given in said.items() if not given)
    return WrappedClassifier(model, replace(found, class_names=names, named=named, assumed=assumed))


def _adapt(model: Any, *, numbers: bool) -> Interface:
    if isinstance(model, (str, os.PathLike)):
        return onnx.adapt_file(model)
    return (
        module.adapt(model) or onnx.adapt(model) or (estimator.adapt_regressor if numbers else estimator.adapt)(model)
    )
