"""Regressor: the interface between explainers and models that predict numbers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import PREDICT_BATCH, Model
from sparcets.errors import FeatureMismatchError, LabelError, ModelOutputError
from sparcets.explanation.series_info import SeriesInfo
from sparcets.side_inputs import SideInputs


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
        """Number of numbers that it predicts for a series."""
        if self._n_outputs is None:
            raise ModelOutputError("the number of outputs is not known before the first prediction.")
        return self._n_outputs

    def __repr__(self) -> str:
        outputs = "outputs not known yet" if self._n_outputs is None else f"{self._n_outputs} outputs"
        return f"{type(self).__name__}({self.description}: {outputs})"

    @final
    def predict(self, X: Any, lengths: Any = None, *, side: Any = None) -> FloatArray:
        """Return the numbers (batch, outputs); ``lengths`` are the true lengths of padded series.

        Parameters
        ----------
        X
            Series (batch, time, features), or a list of series (time, features) of unequal length.
        lengths
            True lengths; what lies beyond has no influence.
        side
            Side inputs by name, with a row per series, for a wrapped model that takes more than the series.
        """
        model = self if side is None or self.side is not None else self.with_side(SideInputs.of(side))
        numbers = model.predict_unchecked(*model.check_input(X, lengths, side, owner=self.name, like=self))
        self._n_outputs = numbers.shape[1]
        return numbers

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
    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``.

        The model is in evaluation mode during the call and its parameters take no gradients; afterwards both are as
        they were.
        """

    @torch.no_grad()
    def _predict(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        # A copy: the model may write into it, and the array may be read-only or have negative strides.
        x = torch.from_numpy(np.array(X, order="C"))
        single = self.device.type == "mps"  # where there is no double precision
        x = (x.float() if single else x).to(self.device)
        steps = None if lengths is None else torch.tensor(lengths, device=self.device)
        found: FloatArray = self.numbers(x, steps).cpu().double().numpy()
        return found
