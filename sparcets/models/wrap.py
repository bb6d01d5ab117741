"""wrap: a user's model as a Classifier or a Regressor; the model itself is left unchanged.

What is particular to a kind of model, from Keras to ONNX, is in a module beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import Parameter
from itertools import chain
from typing import Any, Literal, get_args, overload

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError, ConfigError, ModelOutputError, SparcetsError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import FloatArray, IntArray, Series, is_integer
from sparcets.core.side_inputs import Side, SideInputs
from sparcets.core.validation import check_names
from sparcets.io.files import digest_of_json
from sparcets.models import estimator, module, onnx
from sparcets.models.base import PREDICT_BATCH, Classifier, Missing, Model, Regressor, frozen
from sparcets.models.interface import (
    EXAMPLE,
    KINDS,
    NUMBERS,
    Batch,
    Interface,
    Kind,
    Layout,
    Lengths,
    Part,
    as_rows,
    call_in_batches,
    filled,
    log_probabilities,
    model_failed,
    parameters_of,
    pick,
    split_side,
)
from sparcets.training.networks import blank_padding, lengths_of

Task = Literal["classification", "regression"]
RULES = ("refuse", "keep", "forward", "mean")  # for missing values
LENGTHS_NAMES = ("lengths", "length", "lens", "seq_lengths", "seq_lens", "x_lengths", "input_lengths")
MOST_CLASSES = 1_000_000


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
        self.missing, self.takes_longer = interface.missing, interface.lengths != "padding"
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
        check_side_arguments(self.interface, side)

    def _ask(self, x: Any, lengths: Any, call: Callable[[Any, Any, Any], Any] | None = None) -> Any:
        """Call the model, or another function, with checked series as it wants them; arrays and tensors alike."""
        function, form = call or self._call, self.interface
        x, side = (x, {}) if self.side is None else split_side(x, self.side, self.dtype)
        x = filled(x, self.missing, lengths) if self.takes_gaps else x
        if isinstance(x, Tensor):
            x = blank_padding(x.to(self.dtype or x.dtype), lengths)
        else:
            x = Series(x, lengths).blank().values
        x = form.arranged(x)
        if form.batch is None:
            return function(x, lengths, side)

        def call_some(rows: IntArray) -> Any:
            beside = {name: values[rows] for name, values in side.items()}
            return function(x[rows], lengths_of(lengths, rows), beside)

        return call_in_batches(call_some, len(x), form.batch)

    def _ask_module(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        if not self.differentiable:
            raise self._no_gradients()
        with frozen(self.module):
            raw: Tensor = self._ask(x, lengths)
        return raw

    def _call(self, x: Any, lengths: Any, side: Side) -> Any:
        form = self.interface
        try:
            raw = pick(form.ask(form.call, x, lengths, side), form.kind, form.part, self.name)
            if not isinstance(x, Tensor):
                raw = raw.detach().cpu().numpy() if isinstance(raw, Tensor) else np.asarray(raw)
        except SparcetsError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise model_failed(form, tuple(x.shape), error) from error
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
        self.may_be_logits = not interface.kind_is_certain

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
            return np.asarray(self.interface.ask(predict, x, lengths, side))

        try:
            parts = [self._ask(part.values, part.lengths, call) for part in Series(X, lengths).batches(PREDICT_BATCH)]
            said = np.array([index[label] for part in parts for label in part.tolist()], dtype=np.int64)
        except (Exception, SystemExit):  # the probabilities count: a predict that fails is none
            return None
        return said if len(said) == len(X) else None


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
    check_word("task", str(task), get_args(Task))
    check_word("layout", layout, get_args(Layout))
    check_word("lengths", lengths, get_args(Lengths))
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
        missing=check_missing("refuse" if missing is None else missing),
    )
    found = find_lengths_form(model, found, lengths)
    if numbers:
        return WrappedRegressor(model, found)
    declared = adapted.n_classes if part is None else None
    names = find_class_names(model, n_classes=n_classes, class_names=class_names, kind=found.kind, declared=declared)
    own = own_names(model)
    named = class_names is not None or (own is not None and own != tuple(str(k) for k in range(len(own))))
    assumed = tuple(name for name, given in said.items() if not given)
    return WrappedClassifier(model, replace(found, class_names=names, named=named, assumed=assumed))


def _adapt(model: Any, *, numbers: bool) -> Interface:
    if isinstance(model, (str, os.PathLike)):
        return onnx.adapt_file(model)
    return (
        module.adapt(model) or onnx.adapt(model) or (estimator.adapt_regressor if numbers else estimator.adapt)(model)
    )


def check_word(what: str, value: Any, known: Sequence[str]) -> None:
    """Raise unless an option is one of the known words, or None."""
    if value is not None and not (isinstance(value, str) and value in known):
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        raise ConfigError(f"no {what} {quoted(value)}.{hint} Known: {', '.join(known)}.")


def check_batch(batch: Any) -> Batch | None:
    """Return the smallest and the largest batch that a model accepts, or None for any.

    >>> check_batch([2, 64])
    (2, 64)
    """
    if batch is None:
        return None
    sizes = tuple(batch) if isinstance(batch, (tuple, list)) else ()
    whole = all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in sizes)
    if len(sizes) != 2 or not whole or not 1 <= sizes[0] <= sizes[1]:
        raise ConfigError(
            f"batch must be the smallest and the largest number of series that the model accepts, such as (2, 64), "
            f"got {quoted(batch)}."
        )
    return int(sizes[0]), int(sizes[1])


def find_lengths_form(model: Any, form: Interface, given: Any) -> Interface:
    """Return how a model is called, with how it takes lengths: as the user says, else by an argument of such a name.

    Parameters
    ----------
    model, form
        The model, and how it is called.
    given
        What the user said, or None.
    """
    if given == "packed" and not (isinstance(model, nn.Module) and form.layout == "btf"):
        raise ConfigError("lengths='packed' is for an nn.Module of (batch, time, features), layout='btf'.")
    if given in ("argument", "list") and form.layout == "flat":
        raise ConfigError(
            f"lengths={quoted(given)} needs the axis of time: layout='btf' or 'bft'. Flat series are padded."
        )
    parameters = parameters_of(form.call) if form.layout != "flat" else {}
    name = next((name for name in LENGTHS_NAMES if name in parameters), None)
    # An estimator of aeon says whether it takes lists of series of unequal length.
    by_tag = type(model).__module__.startswith("aeon.") and hasattr(model, "get_tag")
    if by_tag and model.get_tag("capability:unequal_length", raise_error=False, tag_value_default=False):
        assumed: Lengths = "list"
    else:
        assumed = "padding"
    kind: Lengths = given or ("argument" if name else assumed)
    return replace(form, lengths=kind, lengths_name=name if kind == "argument" else None)


def check_side_arguments(form: Interface, known: SideInputs) -> None:
    """Raise unless a model has an argument for each of its side inputs, as far as its signature is known."""
    parameters = parameters_of(form.call)
    kinds = {parameter.kind for parameter in parameters.values()}
    if not parameters or Parameter.VAR_KEYWORD in kinds:
        return
    further = [one for one in list(parameters)[1:] if one != form.lengths_name]
    for one in known.names:
        if one not in further:
            takes = f"beside the series it takes {', '.join(further)}" if further else "it takes the series alone"
            raise CapabilityError(
                f"{form.name} has no argument {one!r} for a side input.{did_you_mean(one, further)} Side inputs are "
                f"passed by name, and {takes}. Rename it in side=, or wrap a function of the series and {one}."
            )


def check_missing(missing: Any) -> Missing:
    """Return what a model gets for missing values: one of ``RULES``, or a function.

    >>> check_missing("forward")
    'forward'
    """
    if isinstance(missing, str) and missing in RULES:
        return missing
    if callable(missing):
        function: Callable[[Any], Any] = missing
        return function
    hint = did_you_mean(missing, RULES) if isinstance(missing, str) else ""
    raise ConfigError(
        f"missing must be one of {', '.join(RULES)}, or a function that fills series, got {quoted(missing)}.{hint}"
    )


def parse_output(output: Any) -> tuple[Kind | None, Part | None]:
    """Return the kind of the output and the part of it that is meant; None where the user left it open.

    >>> parse_output("logits"), parse_output(1), parse_output(("sigmoid", "anomaly"))
    (('logits', None), (None, 1), ('sigmoid', 'anomaly'))
    """
    if output is None or (isinstance(output, str) and output in KINDS):
        return output, None
    if isinstance(output, (tuple, list)):
        if len(output) == 2 and isinstance(output[0], str) and output[0] in KINDS and _is_part(output[1]):
            return output[0], output[1]
        raise ConfigError(f"output must be a kind ({', '.join(KINDS)}) and a part, {EXAMPLE}, got {quoted(output)}.")
    meant = did_you_mean(output, KINDS) if isinstance(output, str) else ""
    if meant or not _is_part(output):
        key = f" If {quoted(output)} is a key of what the model returns, write output=('logits', {quoted(output)})."
        raise ConfigError(f"no output {quoted(output)}.{meant} Known: {', '.join(KINDS)}.{key if meant else ''}")
    return None, output


def _is_part(value: Any) -> bool:
    return (isinstance(value, (str, int)) and not isinstance(value, bool)) or callable(value)


def find_class_names(
    model: Any,
    *,
    n_classes: int | None,
    class_names: Sequence[str] | None,
    kind: Kind,
    declared: int | None = None,
) -> tuple[str, ...] | None:
    """Return the class names, or None if unknown; raise unless all sources of them agree.

    Parameters
    ----------
    model
        The user's model; its ``classes_`` count, if it has them.
    n_classes, class_names
        What the user said.
    kind
        What the model returns; ``"sigmoid"`` means two classes.
    declared
        Number of classes that the model declares in another way.
    """
    if n_classes is not None and not is_integer(n_classes):
        raise ConfigError(f"n_classes must be a whole number, got {quoted(n_classes)}.")
    if n_classes is not None and n_classes > MOST_CLASSES:
        raise ConfigError(f"n_classes must be at most {MOST_CLASSES:,}, got {quoted(n_classes)}.")
    own = check_names(own_names(model), what=f"{type(model).__name__}.classes_")
    given = check_names(class_names, what="class_names")
    sources = {
        "n_classes": None if n_classes is None else int(n_classes),
        "class_names": None if given is None else len(given),
        f"{type(model).__name__}.classes_": None if own is None else len(own),
        "the model itself": declared,
        "output='sigmoid'": 2 if kind == "sigmoid" else None,
    }
    counts = {what: n for what, n in sources.items() if n is not None}
    if not counts:
        return None
    if len(set(counts.values())) > 1:
        raise ConfigError(
            f"the number of classes is not clear: {', '.join(f'{what} says {n}' for what, n in counts.items())}."
        )
    n = next(iter(counts.values()))
    if n < 2:
        raise ConfigError(f"a classifier tells at least 2 classes apart, but {next(iter(counts))} says {n}.")
    if given is not None and own is not None and given != own and sorted(given) == sorted(own):
        raise ConfigError(
            f"class_names ({', '.join(given)}) are in another order than the model's classes ({', '.join(own)}). "
            "Leave class_names out: the model knows its own."
        )
    return given or own or tuple(str(k) for k in range(n))


def own_names(model: Any) -> tuple[str, ...] | None:
    """Return the names that an estimator gives its classes; whole numbers are written without a point."""
    classes = getattr(model, "classes_", None)
    if classes is None or any(np.ndim(c) for c in classes):  # the classes of several outputs
        return None
    whole = [isinstance(c, (float, np.floating)) and float(c).is_integer() for c in classes]
    return tuple(str(int(c)) if is_whole else str(c) for c, is_whole in zip(classes, whole, strict=True))
