"""A black box: anything that is called with an array of series, and gives no gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.errors import CapabilityError, ModelOutputError, SparcetsError
from sparcets.core.series import blank
from sparcets.core.side_inputs import Side, SideInputs
from sparcets.io.files import digest_of_json
from sparcets.models.base import PREDICT_BATCH, Classifier
from sparcets.models.inputs import check_side_arguments, filled_series, split_arrays
from sparcets.models.interface import Adapted, Interface, own_names
from sparcets.models.module import arrange, as_rows, call_model, call_parts, log_probabilities
from sparcets.models.outputs import model_failed, no_distribution, pick


def adapt(model: Any) -> Adapted:
    """Return a callable as it is; its output are probabilities unless the user says otherwise."""
    name = getattr(model, "__name__", type(model).__name__)
    if callable(model):
        return Adapted(call=model, name=name, kind="probabilities")
    hint = " It predicts without them, by predict()." if hasattr(model, "predict") else ""
    raise CapabilityError(
        f"{name} has neither predict_proba nor decision_function and is not callable, so it gives no probabilities."
        f"{hint} Wrap a function that returns them, (batch, classes)."
    )


class BlackBox(Classifier):
    """A model without gradients: an estimator, a file, a booster, or a function.

    Parameters
    ----------
    model
        The user's model itself.
    adapted
        How it is called.
    interface
        What it takes and returns.
    """

    takes_side = True

    def __init__(self, model: Any, adapted: Adapted, interface: Interface) -> None:
        self.model, self.interface, self._adapted = model, interface, adapted
        self._class_names, self.named = interface.class_names, interface.named
        self.output, self.layout, self.batch = interface.kind, interface.layout, interface.batch
        self.missing, self.takes_longer = interface.missing, interface.lengths.kind != "padding"

    @property
    def name(self) -> str:
        """The model's class or file, or the function's name."""
        return self._adapted.name

    @property
    def description(self) -> str:
        """The model's name, and what it was said or assumed to take and to return."""
        return f"{self.name} ({self.interface.describe(self.side)})"

    def digest(self) -> str | None:
        """Return a digest of the model's file and of how it is used, or None where there is no file."""
        part = self.interface.part
        if self._adapted.digest is None or callable(part) or callable(self.missing):
            return None
        rule = [self.missing] if self.takes_gaps else []
        return digest_of_json([self._adapted.digest, self.output, part, self.layout, *rule])

    def own_predictions(self, X: FloatArray, lengths: IntArray | None = None) -> IntArray | None:
        """Return what the estimator's ``predict`` says, (batch,); None if it has none beside ``predict_proba``."""
        predict, names = getattr(self.model, "predict", None), own_names(self.model)
        if not callable(predict) or names is None or not callable(getattr(self.model, "predict_proba", None)):
            return None

        def call(given: FloatArray, lengths: IntArray | None, side: Side) -> Any:
            return np.asarray(call_model(predict, np.array(given, order="C"), lengths, side, self.interface))

        index = {label: k for k, label in enumerate(np.asarray(self.model.classes_).tolist())}
        found: list[Any] = []
        try:
            for start in range(0, len(X), PREDICT_BATCH):
                rows = slice(start, start + PREDICT_BATCH)
                found += self._ask(X[rows], None if lengths is None else lengths[rows], call).tolist()
            said = np.array([index[label] for label in found], dtype=np.int64)
        except (Exception, SystemExit):  # the probabilities count: a predict that fails is none
            return None
        return said if len(said) == len(X) else None

    def _predict_proba(self, X: FloatArray, lengths: IntArray | None) -> Any:
        return self._ask(X, lengths, self._call)

    def _ask(self, X: FloatArray, lengths: IntArray | None, call: Callable[[Any, Any, Any], Any]) -> Any:
        """Call a function with checked series as the model wants them, their lengths and side inputs."""
        X, side = (X, {}) if self.side is None else split_arrays(X, self.side)
        X = filled_series(X, self.missing, lengths) if self.takes_gaps else X
        X = X if lengths is None else blank(X, lengths)
        return call_parts(call, arrange(X, self.layout), lengths, side, self.batch)

    def _check_side(self, side: SideInputs) -> None:
        check_side_arguments(self._adapted.call, side, self.name, lengths=self.interface.lengths.keyword)

    def _call(self, given: FloatArray, lengths: IntArray | None, side: Side) -> FloatArray:
        series = np.array(given, order="C")  # a copy: the model may write into it
        try:
            said = call_model(self._adapted.call, series, lengths, side, self.interface)
            values = _array(pick(said, self.output, self.interface.part, self.name))
        except SparcetsError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise model_failed(self.name, series.shape, self.layout, error, self._adapted.call) from error
        if self.output == "probabilities":
            return self._checked(values, len(series))
        if values.dtype.kind not in "fiu":
            raise ModelOutputError(f"{self.name} returned {values.dtype} where output={self.output!r} needs numbers.")
        with torch.no_grad():
            raw = as_rows(torch.from_numpy(values.astype(np.float64)), len(series), self.output, self.name)
            proba: FloatArray = log_probabilities(raw, self.output, self.name).exp().numpy()
        return proba

    def _checked(self, proba: FloatArray, n: int) -> FloatArray:
        """Return probabilities as the model gave them, bit for bit, if their shape can be right."""
        if proba.shape in ((n,), (n, 1)) and n > 1:
            number = "column" if proba.ndim == 2 else "number per series"
            raise ModelOutputError(
                f"{self.name} returned one {number}; wrap what returns probabilities (batch, classes), or with "
                "output='sigmoid' where it is the probability of class 1."
            )
        if proba.ndim == 2 and len(proba) != n:
            raise ModelOutputError(f"{self.name} returned {len(proba)} rows for {n} series.")
        return proba

    def _hint(self, proba: Any) -> str:
        return no_distribution(proba, may_be_logits=not self._adapted.kind_is_certain)


def _array(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.detach().cpu().numpy()
    return np.asarray(values)
