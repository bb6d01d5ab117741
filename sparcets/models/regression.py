"""Models that predict numbers: the output of a network, an estimator's ``predict``, a booster, or a function."""

from __future__ import annotations

import os
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.errors import CapabilityError, ModelOutputError, SparcetsError
from sparcets.core.series import blank
from sparcets.core.side_inputs import SideInputs
from sparcets.io.files import digest_of_json
from sparcets.models import keras, model_file, module, onnx, torch_export
from sparcets.models.base import DifferentiableRegressor, Regressor, frozen
from sparcets.models.estimator import layout_of, package
from sparcets.models.inputs import (
    Lengths,
    Missing,
    check_side_arguments,
    filled_series,
    filled_tensor,
    find_lengths_form,
    split_arrays,
    split_tensors,
)
from sparcets.models.interface import NUMBERS, Adapted, Interface, Layout, Part
from sparcets.models.module import arrange, call_model, call_parts
from sparcets.models.outputs import model_failed, pick
from sparcets.models.views import Batch
from sparcets.training.convolutional import blank_padding


class _Wrapped(Regressor):
    """What wrapped regressors have in common.

    Parameters
    ----------
    adapted
        How the model is called.
    interface
        What it takes and returns.
    """

    takes_side = True

    def __init__(self, adapted: Adapted, interface: Interface) -> None:
        self.adapted, self.interface = adapted, interface
        self.missing, self.takes_longer = interface.missing, interface.lengths.kind != "padding"

    @property
    def name(self) -> str:
        """The model's class or file, or the function's name."""
        return self.adapted.name

    @property
    def description(self) -> str:
        """The model's name, and what it was said or assumed to take and to return."""
        return f"{self.name} ({self.interface.describe(self.side)})"

    def digest(self) -> str | None:
        """Return a digest of the model's file and of how it is used, or None where there is no file."""
        part = self.interface.part
        if self.adapted.digest is None or callable(part) or callable(self.missing):
            return None
        rule = [self.missing] if self.takes_gaps else []
        return digest_of_json([self.adapted.digest, part, self.interface.layout, *rule])

    def _check_side(self, side: SideInputs) -> None:
        check_side_arguments(self.adapted.call, side, self.name, lengths=self.interface.lengths.keyword)

    def _ask(self, series: Any, lengths: Any, side: dict[str, Any]) -> Any:
        """Return what the model returns for series (batch, time, features), in its layout and in batches it accepts."""
        arranged = arrange(series, self.interface.layout)
        return call_parts(self._call, arranged, lengths, side, self.interface.batch)

    def _call(self, series: Any, lengths: Any, side: dict[str, Any]) -> Any:
        try:
            said = call_model(self.adapted.call, series, lengths, side, self.interface)
            return pick(said, NUMBERS, self.interface.part, self.name)
        except SparcetsError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            shape, layout = tuple(series.shape), self.interface.layout
            raise model_failed(self.name, shape, layout, error, self.adapted.call) from error


class RegressionModule(_Wrapped, DifferentiableRegressor):
    """A user's ``nn.Module`` that returns numbers (batch,) or (batch, outputs)."""

    @property
    def module(self) -> nn.Module:
        """The user's module."""
        found: nn.Module = self.adapted.call
        return found

    @property
    def device(self) -> torch.device:
        """Where the module's weights are; the CPU if it has none."""
        first = next(chain(self.module.parameters(), self.module.buffers()), None)
        return torch.device("cpu") if first is None else first.device

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``."""
        tensors = chain(self.module.parameters(), self.module.buffers())
        own = next((p.dtype for p in tensors if p.is_floating_point()), x.dtype)
        x, side = (x, {}) if self.side is None else split_tensors(x, self.side, own)
        x = filled_tensor(x, self.missing, lengths) if self.takes_gaps else x
        x = x.to(own) if lengths is None else blank_padding(x.to(own), lengths)
        with frozen(self.module):
            raw: Tensor = self._ask(x, lengths, side)
        return raw.to(torch.promote_types(raw.dtype, torch.float32))

    def _call(self, series: Any, lengths: Any, side: dict[str, Any]) -> Tensor:
        raw = super()._call(series.contiguous(), lengths, side)
        if not isinstance(raw, Tensor) or not raw.is_floating_point():
            kind = raw.dtype if isinstance(raw, Tensor) else type(raw).__name__
            raise ModelOutputError(f"{self.name} returned {kind}; wrap a module that returns a tensor of numbers.")
        if raw.ndim < 2:
            raw = raw.reshape(1, -1) if len(series) == 1 else raw[:, None]
        if raw.ndim != 2 or len(raw) != len(series):
            raise ModelOutputError(
                f"{self.name} must return (batch,) or (batch, outputs), got {tuple(raw.shape)} for {len(series)} "
                "series."
            )
        return raw


class RegressionBlackBox(_Wrapped):
    """A model of numbers without gradients: an estimator, a file, a booster, or a function."""

    def _predict(self, X: FloatArray, lengths: IntArray | None) -> Any:
        X, side = (X, {}) if self.side is None else split_arrays(X, self.side)
        X = filled_series(X, self.missing, lengths) if self.takes_gaps else X
        return self._ask(X if lengths is None else blank(X, lengths), lengths, side)

    def _call(self, series: Any, lengths: Any, side: dict[str, Any]) -> Any:
        values = super()._call(np.array(series, order="C"), lengths, side)  # a copy: the model may write into it
        return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def wrap_regressor(
    model: Any,
    *,
    part: Part | None,
    layout: Layout | None,
    batch: Batch | None,
    lengths: Lengths | None,
    missing: Missing,
) -> Regressor:
    """Make a model that predicts numbers usable by explainers; see :func:`sparcets.wrap`."""
    adapted = _adapt(model)
    layout = layout or adapted.layout
    interface = Interface(
        kind=NUMBERS,
        layout=layout,
        part=part,
        batch=batch or adapted.batch,
        lengths=find_lengths_form(model, adapted.call, lengths, layout),
        missing=missing,
    )
    kind = RegressionModule if isinstance(adapted.call, nn.Module) else RegressionBlackBox
    return kind(adapted, interface)


def _adapt(model: Any) -> Adapted:
    if isinstance(model, (str, os.PathLike)):
        return model_file.adapt(model)
    for adapt in (keras.adapt, torch_export.adapt, module.adapt, onnx.adapt):
        found = adapt(model)
        if found is not None:
            return found
    name = getattr(model, "__name__", type(model).__name__)
    if hasattr(model, "predict_proba") or hasattr(model, "classes_"):
        raise CapabilityError(
            f"{name} is a classifier; leave task='regression' out, or wrap a function that returns a number of it, "
            "such as lambda X: model.predict_proba(X)[:, 1]."
        )
    if name == "Booster" and package(model) == "xgboost":
        return Adapted(call=model.inplace_predict, name="xgboost.Booster", kind="logits", layout="flat")
    call = getattr(model, "predict", model)
    if not callable(call):
        raise CapabilityError(f"{name} has no predict and is not callable, so it gives no numbers.")
    return Adapted(call=call, name=name, kind="logits", layout=layout_of(model))
