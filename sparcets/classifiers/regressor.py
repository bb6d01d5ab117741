"""Regressor: the interface between explainers and models that predict numbers, and a user's model as one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from itertools import chain
from typing import Any, final

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import PREDICT_BATCH, Model, frozen
from sparcets.classifiers.batching import Batch, call_in_batches
from sparcets.errors import CapabilityError, FeatureMismatchError, LabelError, ModelOutputError
from sparcets.explanation.series_info import SeriesInfo
from sparcets.validation import check_lengths, check_series

Arrange = Callable[[Any], Any]


class Regressor(Model):
    """A model that predicts one or several numbers of series (batch, time, features) in the data's own units."""

    _n_outputs: int | None = None

    @property
    def n_outputs(self) -> int:
        """Number of numbers that it predicts for a series."""
        if self._n_outputs is None:
            raise ModelOutputError("the number of outputs is not known before the first prediction.")
        return self._n_outputs

    def __repr__(self) -> str:
        outputs = "outputs not known yet" if self._n_outputs is None else f"{self._n_outputs} outputs"
        return f"{type(self).__name__}({self.name}: {outputs})"

    @final
    def predict(self, X: Any, lengths: Any = None) -> FloatArray:
        """Return the numbers (batch, outputs); ``lengths`` are the true lengths of padded series.

        Parameters
        ----------
        X
            Series (batch, time, features).
        lengths
            True lengths, for models that look at them.
        """
        X = check_series(X, owner=self.name, n_features=self.n_features, n_steps=self.n_steps)
        return self.predict_unchecked(X, check_lengths(lengths, X))

    @final
    def predict_unchecked(self, X: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Do what :meth:`predict` does with series and lengths that were checked before; for internal calls."""
        parts = []
        for start in range(0, len(X), PREDICT_BATCH):
            rows = slice(start, start + PREDICT_BATCH)
            parts.append(
                self._check_output(self._predict(X[rows], None if lengths is None else lengths[rows]), X[rows])
            )
        return np.concatenate(parts)

    def outputs_unchecked(self, X: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Return the numbers (batch, outputs)."""
        return self.predict_unchecked(X, lengths)

    @final
    def check_compatible(self, info: SeriesInfo, owner: str) -> None:
        """Raise unless the model takes the series and predicts the numbers that an explainer was fitted for."""
        self._check_sizes(info, owner)
        if info.outcome is None:
            raise LabelError(
                f"{owner} was fitted for the classes {', '.join(info.class_names)}, {self.name} predicts numbers. "
                "Pass the classifier it was fitted with, or fit it again."
            )
        if self._n_outputs not in (None, info.outcome.n_outputs):
            raise FeatureMismatchError(
                f"{owner} was fitted for {info.outcome.n_outputs} numbers per series, {self.name} predicts "
                f"{self._n_outputs}. Pass the model it was fitted with, or fit it again."
            )

    @abstractmethod
    def _predict(self, X: FloatArray, lengths: IntArray | None) -> Any:
        """Return the numbers of at most ``PREDICT_BATCH`` checked series: (batch,) or (batch, outputs)."""

    def _check_output(self, output: Any, X: FloatArray) -> FloatArray:
        numbers = np.asarray(output)
        if numbers.ndim == 1 and len(numbers) == len(X):
            numbers = numbers[:, None]
        elif numbers.ndim < 2 and len(X) == 1:
            numbers = numbers.reshape(1, -1)  # a model that squeezes its output drops the batch of one
        if numbers.ndim != 2 or len(numbers) != len(X) or numbers.shape[1] < 1 or numbers.dtype.kind not in "fiub":
            raise ModelOutputError(
                f"{self.name} must return numbers (batch,) or (batch, outputs), got shape {np.shape(output)}, dtype "
                f"{numbers.dtype}, for {len(X)} series. For a model of classes, leave task='regression' out."
            )
        if self._n_outputs not in (None, numbers.shape[1]):
            raise ModelOutputError(
                f"{self.name} returned {numbers.shape[1]} numbers per series, {self._n_outputs} before."
            )
        if not np.isfinite(numbers).all():
            raise ModelOutputError(f"{self.name} returned NaN or infinity. Check the model and its input.")
        self._n_outputs = numbers.shape[1]
        return numbers.astype(np.float64)


class DifferentiableRegressor(Regressor):
    """A regressor made of torch operations, through which gradients flow to the series."""

    @property
    @abstractmethod
    def device(self) -> torch.device:
        """Device of the model."""

    @abstractmethod
    def numbers(self, x: Tensor) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``.

        The model is in evaluation mode during the call and its parameters take no gradients; afterwards both are as
        they were.
        """

    @torch.no_grad()
    def _predict(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        # A copy: the model may write into it, and the array may be read-only or have negative strides.
        x = torch.from_numpy(np.array(X, order="C")).to(self.device)
        found: FloatArray = self.numbers(x).double().cpu().numpy()
        return found


class WrappedRegressionModule(DifferentiableRegressor):
    """A user's ``nn.Module`` that returns numbers (batch,) or (batch, outputs).

    Parameters
    ----------
    module
        The user's.
    arrange
        Brings series (batch, time, features) into the layout of the module.
    batch
        Smallest and largest number of series that it accepts, or None.
    """

    def __init__(self, module: nn.Module, arrange: Arrange, batch: Batch | None = None) -> None:
        self.module, self.arrange, self.batch = module, arrange, batch

    @property
    def name(self) -> str:
        """The module's class."""
        return type(self.module).__name__

    @property
    def device(self) -> torch.device:
        """Where the module's weights are; the CPU if it has none."""
        first = next(chain(self.module.parameters(), self.module.buffers()), None)
        return torch.device("cpu") if first is None else first.device

    def numbers(self, x: Tensor) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``."""
        tensors = chain(self.module.parameters(), self.module.buffers())
        own = next((p.dtype for p in tensors if p.is_floating_point()), x.dtype)
        with frozen(self.module):
            series = self.arrange(x.to(own)).contiguous()
            raw = self._call(series) if self.batch is None else call_in_batches(self._call, series, self.batch)
        return raw.to(torch.promote_types(raw.dtype, torch.float32))

    def _call(self, x: Tensor) -> Tensor:
        try:
            raw = self.module(x)
        except Exception as error:  # the user's code may raise anything
            raise _failed(self.name, tuple(x.shape), error) from error
        if not isinstance(raw, Tensor) or not raw.is_floating_point():
            kind = raw.dtype if isinstance(raw, Tensor) else type(raw).__name__
            raise ModelOutputError(f"{self.name} returned {kind}; wrap a module that returns one tensor of numbers.")
        if raw.ndim < 2:
            raw = raw.reshape(1, -1) if len(x) == 1 else raw[:, None]
        if raw.ndim != 2 or len(raw) != len(x):
            raise ModelOutputError(
                f"{self.name} must return (batch,) or (batch, outputs), got {tuple(raw.shape)} for {len(x)} series."
            )
        return raw


class WrappedRegressionFunction(Regressor):
    """A black box: an estimator's ``predict``, or a callable; see :class:`WrappedRegressionModule`."""

    def __init__(self, model: Any, call: Callable[[Any], Any], arrange: Arrange, batch: Batch | None = None) -> None:
        self.model, self.call, self.arrange, self.batch = model, call, arrange, batch

    @property
    def name(self) -> str:
        """The model's class, or the function's name."""
        return getattr(self.model, "__name__", type(self.model).__name__)

    def _predict(self, X: FloatArray, lengths: IntArray | None) -> Any:
        series = self.arrange(X)
        return self._call(series) if self.batch is None else call_in_batches(self._call, series, self.batch)

    def _call(self, given: FloatArray) -> Any:
        series = np.array(given, order="C")  # a copy: the model may write into it
        try:
            return np.asarray(self.call(series))
        except Exception as error:  # the user's code may raise anything
            raise _failed(self.name, series.shape, error) from error


def wrap_regressor(model: Any, arrange: Arrange, batch: Batch | None) -> Regressor:
    """Make a model that predicts numbers usable by explainers; see :func:`sparcets.wrap`."""
    if isinstance(model, nn.Module):
        return WrappedRegressionModule(model, arrange, batch)
    if hasattr(model, "predict_proba") or hasattr(model, "classes_"):
        raise CapabilityError(
            f"{type(model).__name__} is a classifier; leave task='regression' out, or wrap a function that returns a "
            "number of it, such as lambda X: model.predict_proba(X)[:, 1]."
        )
    call = getattr(model, "predict", model)
    if not callable(call):
        raise CapabilityError(f"{type(model).__name__} has no predict and is not callable, so it gives no numbers.")
    return WrappedRegressionFunction(model, call, arrange, batch)


def _failed(name: str, shape: tuple[int, ...], error: Exception) -> ModelOutputError:
    return ModelOutputError(
        f"your model {name} failed on an input of shape {shape}: {type(error).__name__}: {str(error).rstrip('.')}. It "
        "may want another layout: wrap(model, layout='flat') for models of tables, 'bft' for (batch, features, time)."
    )
