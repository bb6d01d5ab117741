"""wrap: a user's model as a Classifier; the model itself is left unchanged.

This is one of the three places where axes are transposed (the others are :mod:`sparcets.datasets.uea` and
:mod:`sparcets.evaluation.families`): inside sparcets series are always (batch, time, features).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Literal, overload

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier, frozen, with_prediction
from sparcets.classifiers.batching import Batch, call_in_batches, check_batch
from sparcets.classifiers.regressor import Regressor, wrap_regressor
from sparcets.errors import CapabilityError, ConfigError, ModelOutputError
from sparcets.registry import did_you_mean
from sparcets.validation import check_names

Output = Literal["logits", "probabilities", "sigmoid"]
Layout = Literal["btf", "bft", "flat"]
Task = Literal["classification", "regression"]


@overload
def wrap(
    model: Any,
    *,
    task: Literal["regression"],
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
) -> Regressor: ...


@overload
def wrap(
    model: Any,
    *,
    task: Literal["classification"] = "classification",
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    output: Output | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
) -> Classifier: ...


def wrap(
    model: Any,
    *,
    task: Task = "classification",
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    output: Output | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
) -> Classifier | Regressor:
    """Make a model usable by explainers.

    Parameters
    ----------
    model
        An ``nn.Module``, anything with ``predict_proba``, or a callable that returns probabilities. A module is used
        as it is at each call, in evaluation mode, and left as it was found; what has no gradients is a black box.
    task
        ``"regression"`` for a model that predicts one number per series or several, by a module's output, by
        ``predict`` or by a callable; ``n_classes``, ``class_names`` and ``output`` are for classes only.
    n_classes, class_names
        Number of classes and their names; found out where the model knows them.
    output
        What an ``nn.Module`` returns: ``"logits"`` (default; one column means the logit of class 1),
        ``"probabilities"``, or ``"sigmoid"`` (one probability, of class 1).
    layout
        How the model wants its series: ``"btf"`` (batch, time, features; default), ``"bft"`` (batch, features, time;
        the default for aeon and sktime), or ``"flat"`` (batch, time * features).
    batch
        Smallest and largest number of series that the model accepts in a call, such as ``(2, 64)``; None for any. A
        smaller call is padded by repeating its last series, a larger one is split.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> model = LogisticRegression(max_iter=500).fit(X.reshape(60, -1), y)
    >>> wrap(model, layout="flat").predict(X[:3]).shape
    (3,)
    """
    if isinstance(model, (Classifier, Regressor)):
        kind = "classifier" if isinstance(model, Classifier) else "regressor"
        other = task == "regression" and kind == "classifier"
        if other or any(v is not None for v in (n_classes, class_names, output, layout, batch)):
            raise ConfigError(
                f"{model.name} is a {kind} of sparcets already; use it as it is, or wrap the model inside anew."
            )
        return model
    if isinstance(model, type):
        made = "(...)" if issubclass(model, nn.Module) else "(...).fit(X, y)"
        raise CapabilityError(
            f"{model.__name__} is a class. Wrap a trained model of it: sp.wrap({model.__name__}{made})."
        )
    for value, name, known in ((task, "task", Task), (output, "output", Output), (layout, "layout", Layout)):
        options = known.__args__  # type: ignore[attr-defined]
        if value is not None and value not in options:
            raise ConfigError(f"no {name} {value!r}.{did_you_mean(str(value), options)} Known: {', '.join(options)}.")
    batch = check_batch(batch)
    if task == "regression":
        if any(v is not None for v in (n_classes, class_names, output)):
            raise ConfigError(
                "n_classes, class_names and output are for models of classes; task='regression' has none."
            )
        order: Layout = layout or ("bft" if _wants_channels_first(model) else "btf")
        return wrap_regressor(model, partial(_arrange, layout=order), batch)
    names = _names(model, n_classes, class_names, output)
    named = class_names is not None or _has_names(model)
    if isinstance(model, nn.Module):
        return WrappedModule(model, names, named, output or "logits", layout or "btf", batch)
    if output is not None:
        raise ConfigError(f"output={output!r} is for an nn.Module; {type(model).__name__} must return probabilities.")
    call = getattr(model, "predict_proba", model)
    if not callable(call):
        hint = " sklearn's CalibratedClassifierCV gives it one." if hasattr(model, "decision_function") else ""
        raise CapabilityError(
            f"{type(model).__name__} has no predict_proba and is not callable, so it gives no probabilities.{hint}"
        )
    layout = layout or ("bft" if _wants_channels_first(model) else "btf")
    return WrappedFunction(model, call, names, named, layout, batch)


def _names(
    model: Any, n_classes: int | None, class_names: Sequence[str] | None, output: Output | None
) -> tuple[str, ...] | None:
    """Return the class names, or None if unknown; raise unless all sources of them agree."""
    if n_classes is not None and (isinstance(n_classes, bool) or not isinstance(n_classes, (int, np.integer))):
        raise ConfigError(f"n_classes must be a whole number, got {n_classes!r}.")
    own, given = _own_names(model), check_names(class_names, what="class_names")
    sources = {
        "n_classes": None if n_classes is None else int(n_classes),
        "class_names": None if given is None else len(given),
        f"{type(model).__name__}.classes_": None if own is None else len(own),
        "output='sigmoid'": 2 if output == "sigmoid" else None,
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


def _own_names(model: Any) -> tuple[str, ...] | None:
    """Return the names that an estimator gives its classes; whole numbers are written without a point."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return None
    whole = [isinstance(c, (float, np.floating)) and float(c).is_integer() for c in classes]
    return tuple(str(int(c)) if is_whole else str(c) for c, is_whole in zip(classes, whole, strict=True))


def _has_names(model: Any) -> bool:
    """Whether the model's classes are more than the numbers 0..K-1."""
    own = _own_names(model)
    return own is not None and own != tuple(str(k) for k in range(len(own)))


def _wants_channels_first(model: Any) -> bool:
    steps = getattr(model, "steps", None)
    parts = [model, *(part for _, part in steps)] if isinstance(steps, list) else [model]  # a pipeline's steps count
    kinds = [kind for part in parts for kind in type(part).__mro__]  # base classes count, too
    return any(kind.__module__.split(".")[0] in ("aeon", "sktime") for kind in kinds)


class WrappedModule(DifferentiableClassifier):
    """A user's ``nn.Module``."""

    _output_hint = "If they are logits, wrap with output='logits'."

    def __init__(
        self,
        module: nn.Module,
        class_names: tuple[str, ...] | None,
        named: bool,
        output: Output,
        layout: Layout,
        batch: Batch | None = None,
    ) -> None:
        self.module = module
        self._class_names, self.named = class_names, named
        self.output, self.layout, self.batch = output, layout, batch

    @property
    def name(self) -> str:
        """The module's class."""
        return type(self.module).__name__

    @property
    def device(self) -> torch.device:
        """Where the module's weights are; the CPU if it has none."""
        first = next(chain(self.module.parameters(), self.module.buffers()), None)
        return torch.device("cpu") if first is None else first.device

    @property
    def dtype(self) -> torch.dtype | None:
        """The type of the module's weights, in which it receives its input; None if it has none and takes any."""
        tensors = chain(self.module.parameters(), self.module.buffers())
        first = next((p for p in tensors if p.is_floating_point()), None)
        return None if first is None else first.dtype

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series in the data's own units, with gradients to ``x``."""
        with frozen(self.module):
            series = _arrange(x.to(self.dtype or x.dtype), self.layout).contiguous()
            raw = self._call(series) if self.batch is None else call_in_batches(self._call, series, self.batch)
        raw = raw.to(torch.promote_types(raw.dtype, torch.float32))  # half precision is too coarse for a softmax
        if self.output == "logits" and raw.shape[1] > 1:
            self._check_logits(raw)
            return with_prediction(raw.log_softmax(1), raw.argmax(1))
        if self.output == "logits":
            both = torch.cat([nn.functional.logsigmoid(-raw), nn.functional.logsigmoid(raw)], dim=1)
            return with_prediction(both, (raw[:, 0] > 0).long())
        self._check_probabilities(raw)
        proba = torch.cat([1 - raw, raw], dim=1) if self.output == "sigmoid" else raw
        # A saturated probability of 0 would give infinite losses and gradients.
        return with_prediction(proba.clamp_min(torch.finfo(proba.dtype).tiny).log(), proba.argmax(1))

    def _call(self, x: Tensor) -> Tensor:
        try:
            raw = self.module(x)
        except Exception as error:  # the user's code may raise anything
            raise ModelOutputError(
                f"your model {self.name} failed on an input of shape {tuple(x.shape)} (layout {self.layout!r}): "
                f"{type(error).__name__}: {str(error).rstrip('.')}. It may want another "
                "layout ('btf', 'bft' or 'flat') or other batches, batch=(2, 64)."
            ) from error
        if not isinstance(raw, Tensor):
            raise ModelOutputError(
                f"{self.name} returned {type(raw).__name__}; wrap a module that returns one tensor (batch, classes)."
            )
        shape = tuple(raw.shape)
        if len(x) == 1 and raw.ndim < 2:
            raw = raw.reshape(1, -1)  # a module that ends in squeeze() drops the batch of one
        elif raw.ndim == 1:
            raw = raw[:, None]
        if raw.ndim != 2 or len(raw) != len(x):
            raise ModelOutputError(f"{self.name} must return (batch, classes), got {shape} for {len(x)} series.")
        if not raw.is_floating_point():
            raise ModelOutputError(
                f"{self.name} returned {raw.dtype}; wrap a module that returns logits or probabilities, not labels."
            )
        if self.output == "sigmoid" and raw.shape[1] != 1:
            raise ModelOutputError(
                f"output='sigmoid' means one probability per series, but {self.name} returned {raw.shape[1]} columns."
            )
        if self.output == "probabilities" and raw.shape[1] == 1:
            raise ModelOutputError(f"{self.name} returned one probability per series; wrap it with output='sigmoid'.")
        return raw

    def _check_logits(self, raw: Tensor) -> None:
        """Raise for outputs that can only be probabilities; a second softmax would flatten them silently."""
        if not torch.is_grad_enabled() and bool((raw >= 0).all() & ((raw.sum(1) - 1).abs() < 1e-5).all()):
            raise ModelOutputError(
                f"{self.name} returned rows that are probabilities already, where output='logits' promises logits. "
                "Wrap it with output='probabilities'."
            )

    def _check_probabilities(self, raw: Tensor) -> None:
        if torch.is_grad_enabled():
            return  # checked at every prediction; here it would synchronise with the GPU
        if bool(((raw < -1e-4) | (raw > 1 + 1e-4)).any()):
            raise ModelOutputError(
                f"{self.name} returned {float(raw.min()):.3g} to {float(raw.max()):.3g} where output={self.output!r} "
                "promises probabilities. If these are logits, wrap with output='logits'."
            )


class WrappedFunction(Classifier):
    """A black box: an estimator's ``predict_proba``, or a callable."""

    _output_hint = "If they are logits, return their softmax."

    def __init__(
        self,
        model: Any,
        call: Callable[[Any], Any],
        class_names: tuple[str, ...] | None,
        named: bool,
        layout: Layout,
        batch: Batch | None = None,
    ) -> None:
        self.model = model
        self.call = call
        self._class_names, self.named = class_names, named
        self.layout, self.batch = layout, batch

    @property
    def name(self) -> str:
        """The model's class, or the function's name."""
        return getattr(self.model, "__name__", type(self.model).__name__)

    def _predict_proba(self, X: FloatArray, lengths: IntArray | None) -> Any:
        series = _arrange(X, self.layout)
        return self._call(series) if self.batch is None else call_in_batches(self._call, series, self.batch)

    def _call(self, given: FloatArray) -> Any:
        series = np.array(given, order="C")  # a copy: the model may write into it
        try:
            proba = np.asarray(self.call(series))
        except Exception as error:  # the user's code may raise anything
            raise ModelOutputError(
                f"your model {self.name} failed on an input of shape {series.shape} (layout {self.layout!r}): "
                f"{type(error).__name__}: {str(error).rstrip('.')}. It may want another layout: "
                "wrap(model, layout='flat') for models of tables, 'bft' for (batch, features, time)."
            ) from error
        if proba.ndim == 1 and len(proba) == len(series):
            raise ModelOutputError(
                f"{self.name} returned one number per series; wrap what returns probabilities (batch, classes)."
            )
        if proba.ndim == 2 and len(proba) != len(series):
            raise ModelOutputError(f"{self.name} returned {len(proba)} rows for {len(series)} series.")
        return proba


def _arrange(x: Any, layout: Layout) -> Any:
    """Return series (batch, time, features) in the layout of the model; for arrays and tensors."""
    if layout == "bft":
        return x.swapaxes(1, 2)
    return x.reshape(len(x), -1) if layout == "flat" else x
