"""Model, and its subclasses Classifier and Regressor: the interface between explainers and models."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError, FeatureMismatchError, LabelError, ModelOutputError, NonFiniteError
from sparcets.core.info import SeriesInfo
from sparcets.core.series import BoolArray, FloatArray, IntArray, Series, check_padded
from sparcets.core.side_inputs import SideInputs, check_no_side
from sparcets.training.device import number_of_threads

if TYPE_CHECKING:
    from typing_extensions import Self


PREDICT_BATCH = 512  # series per call of the model, bounding memory
NOISE = 1e-5  # smaller differences of probabilities are ignored: batches of another size have other last bits
# Input of a model for missing values: a rule, or a function from series with NaN to series of the same shape.
Missing: TypeAlias = str | Callable[[Any], Any]


class Model(ABC):
    """A model of series (batch, time, features) in the data's own units, of classes or of numbers.

    A subclass implements ``_outputs`` or, where gradients flow from the outputs to the series, sets ``differentiable``
    and implements ``device`` and ``log_proba`` or ``numbers``.
    """

    n_features: int | None = None  # number of features of its training series; None accepts any
    n_steps: int | None = None  # number of steps of its training series; None accepts any
    unequal: bool = False  # whether it was fitted on padded series of unequal lengths, and needs lengths
    takes_longer: bool = False  # whether it then also accepts longer series
    missing: Missing = "refuse"  # its input for NaN: "refuse", "keep", "forward", "mean", or a function
    side: SideInputs | None = None  # side inputs that are attached to its series as their last features
    differentiable: bool = False  # whether gradients flow to the series, through operations of torch
    takes_side = False  # whether it may have side inputs
    may_contradict = True  # whether it is foreign code, which may be random or keep a state
    _knows_means = False  # whether it can fill a feature without any value in a series

    @property
    def name(self) -> str:
        """Name of the model in messages."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """Name of the model, and assumptions about it."""
        return self.name

    @property
    def device(self) -> torch.device:
        """Device of a differentiable model; other models take arrays."""
        return torch.device("cpu")

    def digest(self) -> str | None:
        """Return a digest of everything that determines the predictions, or None if unknown."""
        return None

    @property
    def takes_gaps(self) -> bool:
        """Whether series may have missing values (NaN)."""
        return self.missing != "refuse"

    @final
    def with_side(self, side: SideInputs | None) -> Self:
        """Return the model for series with these side inputs attached; None for series alone."""
        if side == self.side:
            return self
        if side is not None:
            self._check_side(side)
        view = copy(self)
        view.side = side
        return view

    def _check_side(self, side: SideInputs) -> None:
        """Raise unless the model takes such side inputs."""
        names = ", ".join(side.names)
        raise CapabilityError(f"{self.name} takes series alone, and no {names} beside them: wrap a model of your own.")

    @final
    def check_input(
        self, X: Any, lengths: Any, side: Any = None, *, owner: str, like: Model | SeriesInfo, longer: bool = True
    ) -> Series:
        """Return checked series with side inputs attached, from the user's input.

        ``owner`` is the name of the fitted object that they are for, ``like`` an object with its numbers of features
        and steps. ``longer`` allows series that are longer than those of the fit, if the model accepts them.
        """
        allowed = {"gaps": self.takes_gaps, "longer": longer and self.takes_longer}
        series = Series(*check_padded(X, lengths, owner=owner, like=like, **allowed))
        self.check_gaps(series)
        if self.side is not None:
            table = self.side.table(side, len(series), owner=owner)
            return series.with_values(self.side.attach(series.values, table, series.lengths))
        if side is not None:
            check_no_side(side, owner)
        return series

    @final
    def check_gaps(self, series: Series, *, first: int = 0) -> None:
        """Raise if the model cannot fill the gaps of checked series; the first series has the index ``first``."""
        if not self.takes_gaps:
            return
        empty = series.unmeasured
        rows = np.flatnonzero(empty.all(1))
        if len(rows):
            raise NonFiniteError(f"X holds nothing but NaN before the end of series {first + int(rows[0])}. Drop it.")
        if self.missing in ("forward", "mean") and not self._knows_means and empty.any():
            row, feature = (int(i) for i in np.argwhere(empty)[0])
            raise NonFiniteError(
                f"series {first + row} has no value of feature {feature} at all, so that missing={self.missing!r} has "
                "nothing to fill it with. Pass a function that fills series as your model expects it: "
                "sp.wrap(model, missing=function)."
            )

    @final
    def outputs(self, X: Any, lengths: Any = None, *, side: Any = None) -> FloatArray:
        """Return probabilities (batch, classes) or numbers (batch, outputs) for series that a user passes."""
        model = self if side is None or self.side is not None else self.with_side(SideInputs.of(side))
        outputs = model.outputs_unchecked(model.check_input(X, lengths, side, owner=self.name, like=self))
        self._learn(outputs)
        return outputs

    @final
    def outputs_unchecked(self, series: Series) -> FloatArray:
        """Return probabilities (batch, classes) or numbers (batch, outputs) for checked series; for internal calls.

        Only the check of the input is skipped; the output of the model is checked.
        """
        parts = []
        for part in series.batches(PREDICT_BATCH):
            parts.append(self._check_output(self._outputs(part.values, part.lengths), len(part.values)))
            self._learn(parts[-1])
        return np.concatenate(parts)

    @abstractmethod
    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        """Return the outputs for at most ``PREDICT_BATCH`` checked series."""

    @abstractmethod
    def _check_output(self, output: Any, n: int) -> FloatArray:
        """Return the model's output for ``n`` series as (batch, outputs); raise if it is not valid."""

    @abstractmethod
    def _learn(self, outputs: FloatArray) -> None:
        """Store the number of columns if it was not known before."""

    @final
    def _as_tensors(self, X: FloatArray, lengths: IntArray | None) -> tuple[Tensor, Tensor | None]:
        """Return series and lengths as tensors on the device."""
        if threading.current_thread() is not threading.main_thread():
            number_of_threads()  # a new thread may have inherited the number of threads of another one
        # A copy: the model may write into it, and the array may be read-only or have negative strides.
        x = torch.from_numpy(np.array(X, order="C"))
        x = x.float() if self.device.type == "mps" else x  # which has no double precision
        return x.to(self.device), None if lengths is None else torch.tensor(lengths, device=self.device)

    def _no_gradients(self) -> CapabilityError:
        return CapabilityError(
            f"{self.name} is a black box, which has no gradients. Wrap an nn.Module, or use a method that needs none."
        )

    def validation_rows(self, series: Series) -> IntArray | None:
        """Return the rows of a fit's training series that the model was not trained on; None if unknown."""
        return None

    @final
    def check_compatible(self, info: SeriesInfo, owner: str) -> None:
        """Raise unless an explainer, the ``owner`` in messages, could have been fitted for this model.

        ``info`` describes the series and the classes, or numbers, of the fit.
        """
        again = "Pass the model it was fitted with, or fit it again."
        for what, known, fitted in (
            ("features", self.n_features, info.n_features),
            ("steps", self.n_steps, info.n_steps),
        ):
            if known not in (None, fitted):
                raise FeatureMismatchError(
                    f"{owner} was fitted on series of {fitted} {what}, {self.name} takes {known}. {again}"
                )
        wrong = self._contradiction(info)
        if wrong:
            raise LabelError(f"{owner} was fitted for {wrong}. {again}")

    @abstractmethod
    def _contradiction(self, info: SeriesInfo) -> str:
        """Describe a contradiction between a fit and the model's outputs; empty if there is none."""


class Classifier(Model):
    """A model that gives probabilities of classes to series (batch, time, features) in the data's own units."""

    named: bool = False  # whether ``class_names`` were given rather than made up from numbers
    may_be_logits = False  # whether sp.wrap accepts output="logits" for it
    _class_names: tuple[str, ...] | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes by index."""
        if self._class_names is None:
            raise ModelOutputError(
                "the number of classes is not known before the first prediction. Pass n_classes= to sp.wrap."
            )
        return self._class_names

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    def __repr__(self) -> str:
        classes = ", ".join(self._class_names) if self._class_names is not None else "classes not known yet"
        return f"{type(self).__name__}({self.description}: {classes})"

    @final
    def predict_proba(self, X: Any, lengths: Any = None, *, side: Any = None) -> FloatArray:
        """Return probabilities (batch, classes).

        Parameters
        ----------
        X
            Series (batch, time, features), or a list of series (time, features) of unequal length.
        lengths
            True lengths of padded series; padding has no influence.
        side
            Side inputs by name, with a row per series, for a wrapped model that takes more than the series.
        """
        return self.outputs(X, lengths, side=side)

    @final
    def predict(self, X: Any, lengths: Any = None, *, side: Any = None) -> IntArray:
        """Return the index of the class that the model predicts for each series, the first of equally probable ones.

        For a network it is the index of its largest output, even if rounding makes probabilities equal. The arguments
        are those of :meth:`predict_proba`.
        """
        return np.asarray(self.predict_proba(X, lengths, side=side).argmax(1), dtype=np.int64)

    def own_predictions(self, series: Series) -> IntArray | None:
        """Return the predictions (batch,) of the ``predict`` of a user's estimator; None if there is none."""
        return None

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of series in the data's own units, with gradients to ``x``.

        The model is in evaluation mode during the call and its parameters take no gradients; afterwards both are
        restored. Without gradients, the class that the model itself predicts has the largest one; see
        :func:`with_prediction`.
        """
        raise self._no_gradients()

    @torch.no_grad()
    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        log_proba = self.log_proba(*self._as_tensors(X, lengths))
        return (log_proba.cpu() if self.device.type == "mps" else log_proba).double().exp().cpu().numpy()

    def _contradiction(self, info: SeriesInfo) -> str:
        names = self._class_names or info.class_names
        if info.outcome:
            return f"a model that predicts numbers, {self.name} predicts classes"
        if len(names) != info.n_classes or (self.named and names != info.class_names):
            return f"the classes {', '.join(info.class_names)}, {self.name} knows {', '.join(names)}"
        return ""

    def _check_output(self, output: Any, n: int) -> FloatArray:
        proba = np.asarray(output)
        if proba.ndim != 2 or proba.dtype.kind not in "fiub":
            raise ModelOutputError(
                f"{self.name} must return probabilities (batch, classes), got shape {proba.shape}, dtype {proba.dtype}."
            )
        if proba.shape[1] < 2:
            raise ModelOutputError(
                f"{self.name} returned one column; return one probability per class, for two classes 1 - p and p."
            )
        if self._class_names is not None and proba.shape[1] != len(self._class_names):
            raise ModelOutputError(
                f"{self.name} returned {proba.shape[1]} columns for {len(self._class_names)} classes "
                f"({', '.join(self._class_names[:8])}). Check n_classes and class_names."
            )
        if not np.isfinite(proba).all():
            raise ModelOutputError(
                f"{self.name} returned NaN or infinity as a probability. Check the model and its input."
            )
        if (proba < -1e-4).any() or np.abs(proba.sum(1, dtype=np.float64) - 1).max() > 1e-3:
            raise ModelOutputError(
                f"{self.name} returned rows that are no probabilities (the first is {np.round(proba[0], 3).tolist()}). "
                f"{self._remedy(proba)}"
            )
        return proba if proba.dtype.kind == "f" else proba.astype(np.float64)

    def _learn(self, outputs: FloatArray) -> None:
        if self._class_names is None:
            self._class_names = tuple(str(k) for k in range(outputs.shape[1]))

    def _remedy(self, proba: FloatArray) -> str:
        """Return the advice for rows that are not probabilities, but several labels, or logits."""
        if proba.min() >= 0 and proba.max() <= 1:
            return (
                "Each number is between 0 and 1, but the rows do not sum to 1: one probability for each of several "
                "labels? Explain one label at a time: output=('sigmoid', lambda p: p[:, 0])."
            )
        if self.may_be_logits:
            return "If they are logits, wrap with output='logits' (--output logits)."
        return "They must be at least 0 and sum to 1."


def contradicts(first: FloatArray, again: FloatArray) -> BoolArray:
    """Return where two predictions (batch, classes) of the same series differ in the class, beyond rounding.

    >>> contradicts(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([[0.5 - 1e-7, 0.5 + 1e-7], [0.2, 0.8]])).tolist()
    [False, True]
    """
    other = first.argmax(1) != again.argmax(1)
    return np.asarray(other & (np.abs(first - again).max(1) > NOISE))


def with_prediction(log_proba: Tensor, predicted: Tensor) -> Tensor:
    """Return log-probabilities (batch, classes) whose largest is that of the class the model predicts (batch,).

    Logits that differ by very little have equal log-probabilities after rounding; then that of the predicted class is
    raised by a few of its last bits. With gradients, they are returned unchanged.

    >>> logits = torch.tensor([[1e-9, 2e-9]])
    >>> with torch.no_grad():
    ...     rounded = logits.log_softmax(1)
    ...     int(rounded.argmax(1)), int(with_prediction(rounded, logits.argmax(1)).argmax(1))
    (0, 1)
    """
    if torch.is_grad_enabled():
        return log_proba
    # Equal ones are at most log(1/2), so that a relative step changes the probability too, even in double precision.
    raised = log_proba.amax(1, keepdim=True) * (1 - 4 * torch.finfo(log_proba.dtype).eps)
    agrees = log_proba.argmax(1) == predicted
    return torch.where(agrees[:, None], log_proba, log_proba.scatter(1, predicted[:, None], raised))


@dataclass(eq=False)
class _FrozenPart:
    """A submodule or parameter that is frozen: its previous values, and the number of calls that need it frozen."""

    part: Any
    before: dict[str, Any]
    calls: set[object] = field(default_factory=set)


_frozen_parts: dict[int, _FrozenPart] = {}  # by the id of the part, which this dict keeps alive
_freezing = threading.RLock()  # held while parts are frozen or restored, never while a model computes


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Put a module into evaluation mode and freeze its parameters; restore both afterwards.

    Threads may freeze the same module, or modules that share parts, at the same time: the first one saves and freezes
    a part, the last one restores it.

    Recurrent layers on CUDA are the exception: cuDNN does not support their backward pass in evaluation mode. They stay
    in training mode with dropout 0, which computes the same, and no global switch is changed.
    """
    call, mine = object(), list[_FrozenPart]()

    def freeze(part: Any, **before: Any) -> bool:  # whether it is the first call to do so
        one = _frozen_parts.get(id(part)) or _FrozenPart(part, before)
        mine.append(one)
        one.calls.add(call)
        _frozen_parts[id(part)] = one
        return len(one.calls) == 1

    try:
        with _freezing:
            for m in module.modules():
                dropout = {"dropout": m.dropout} if isinstance(m, nn.RNNBase) else {}
                if freeze(m, training=m.training, **dropout):
                    m.training = False  # not m.eval(): a user's class may have overridden it
                if isinstance(m, nn.RNNBase) and torch.is_grad_enabled() and any(p.is_cuda for p in m.parameters()):
                    m.dropout, m.training = 0.0, True  # also for concurrent calls without gradients
            for p in module.parameters():
                # Weights created in inference mode can never have gradients, and their flag cannot be restored.
                if (p.requires_grad or id(p) in _frozen_parts) and not p.is_inference():
                    freeze(p, requires_grad=True)
                    p.requires_grad_(False)
        yield
    finally:
        with _freezing:
            for one in mine:
                one.calls.discard(call)
                if not one.calls:
                    for name, value in one.before.items():
                        setattr(one.part, name, value)
                    _frozen_parts.pop(id(one.part), None)


class Regressor(Model):
    """A model that predicts one or several numbers of series (batch, time, features) in the data's own units.

    Examples
    --------
    >>> import sparcets as sp
    >>> from sparcets.testing.data import make_series
    >>> sp.wrap(lambda X: X[:, :, 0].mean(1), task="regression").predict(make_series(30)[0]).shape
    (30, 1)
    """

    _n_outputs: int | None = None

    @property
    def n_outputs(self) -> int:
        """Number of values that it predicts for a series."""
        if self._n_outputs is None:
            raise ModelOutputError("the number of outputs is not known before the first prediction.")
        return self._n_outputs

    def __repr__(self) -> str:
        outputs = "outputs not known yet" if self._n_outputs is None else f"{self._n_outputs} outputs"
        return f"{type(self).__name__}({self.description}: {outputs})"

    @final
    def predict(self, X: Any, lengths: Any = None, *, side: Any = None) -> FloatArray:
        """Return the numbers (batch, outputs); the arguments are those of :meth:`Classifier.predict_proba`."""
        return self.outputs(X, lengths, side=side)

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``.

        The model is in evaluation mode during the call and its parameters take no gradients; afterwards both are
        restored.
        """
        raise self._no_gradients()

    @torch.no_grad()
    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> Any:
        return self.numbers(*self._as_tensors(X, lengths)).cpu().double().numpy()

    def _contradiction(self, info: SeriesInfo) -> str:
        if not info.outcome:
            return f"the classes {', '.join(info.class_names)}, {self.name} predicts numbers"
        if self._n_outputs not in (None, info.outcome.n_outputs):
            return f"{info.outcome.n_outputs} numbers per series, {self.name} predicts {self._n_outputs}"
        return ""

    def _check_output(self, output: Any, n: int) -> FloatArray:
        numbers = np.asarray(output)
        if numbers.ndim != 2 or len(numbers) != n or numbers.shape[1] < 1 or numbers.dtype.kind not in "fiub":
            raise ModelOutputError(
                f"{self.name} must return numbers (batch, outputs), got shape {numbers.shape}, dtype {numbers.dtype}, "
                f"for {n} series."
            )
        if self._n_outputs not in (None, numbers.shape[1]):
            raise ModelOutputError(
                f"{self.name} returned {numbers.shape[1]} numbers per series, {self._n_outputs} before."
            )
        if not np.isfinite(numbers).all():
            raise ModelOutputError(f"{self.name} returned NaN or infinity. Check the model and its input.")
        return numbers.astype(np.float64)

    def _learn(self, outputs: FloatArray) -> None:
        self._n_outputs = outputs.shape[1]
