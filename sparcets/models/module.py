"""An ``nn.Module`` of the user, and how outputs of any model become probabilities.

This is one of the three places where axes are transposed (the others are :mod:`sparcets.data.uea` and
:mod:`sparcets.evaluation.families`): inside sparcets series are always (batch, time, features).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import ModelOutputError, SparcetsError
from sparcets.core.side_inputs import SideInputs
from sparcets.models.base import DifferentiableClassifier, frozen, with_prediction
from sparcets.models.inputs import check_side_arguments, filled_tensor, split_tensors
from sparcets.models.interface import Adapted, Interface, Kind, Layout
from sparcets.models.outputs import model_failed, no_distribution, pick
from sparcets.models.views import Batch, call_in_batches
from sparcets.training.convolutional import blank_padding

# So many different outputs that sum to 1 are no accident.
_DIFFERENT_ROWS = 5


def adapt(model: Any) -> Adapted | None:
    """Return a module as it is; its output are logits unless the user says otherwise."""
    if not isinstance(model, nn.Module):
        return None
    return Adapted(call=model, name=type(model).__name__, kind="logits")


class WrappedModule(DifferentiableClassifier):
    """A user's ``nn.Module``.

    Parameters
    ----------
    module
        The module; used as it is at each call, in evaluation mode, and left as it was found.
    interface
        What it takes and returns.
    name
        Name of the model in messages.
    """

    takes_side = True

    def __init__(self, module: nn.Module, interface: Interface, name: str) -> None:
        self.module, self.interface, self._name = module, interface, name
        self._class_names, self.named = interface.class_names, interface.named
        self.output, self.layout, self.batch = interface.kind, interface.layout, interface.batch
        self.missing, self.takes_longer = interface.missing, interface.lengths.kind != "padding"

    @property
    def name(self) -> str:
        """The module's class."""
        return self._name

    @property
    def description(self) -> str:
        """The module's class, and what it was said or assumed to take and to return."""
        return f"{self.name} ({self.interface.describe(self.side)})"

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
        x, side = (x, {}) if self.side is None else split_tensors(x, self.side, self.dtype)
        x = filled_tensor(x, self.missing, lengths) if self.takes_gaps else x
        with frozen(self.module):
            x = x.to(self.dtype or x.dtype)
            x = x if lengths is None else blank_padding(x, lengths)
            raw = call_parts(self._call, arrange(x, self.layout).contiguous(), lengths, side, self.batch)
        return log_probabilities(raw, self.output, self.name)

    def _check_side(self, side: SideInputs) -> None:
        check_side_arguments(self.module, side, self.name, lengths=self.interface.lengths.keyword)

    def _call(self, x: Tensor, lengths: Tensor | None, side: dict[str, Tensor]) -> Tensor:
        try:
            raw = call_model(self.module, x, lengths, side, self.interface)
            if not isinstance(raw, Tensor) or self.interface.part is not None:
                raw = pick(raw, self.output, self.interface.part, self.name)
        except SparcetsError:
            raise
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise model_failed(self.name, tuple(x.shape), self.layout, error, self.module) from error
        if not isinstance(raw, Tensor):
            raise ModelOutputError(
                f"{self.name} returned {type(raw).__name__}; wrap a module that returns a tensor (batch, classes), "
                "or say where it is: output=('logits', function of what it returns)."
            )
        return as_rows(raw, len(x), self.output, self.name)

    def _hint(self, proba: Any) -> str:
        return no_distribution(proba)


def arrange(x: Any, layout: Layout) -> Any:
    """Return series (batch, time, features) in the layout of the model; for arrays and tensors."""
    if layout == "bft":
        return x.swapaxes(1, 2)
    return x.reshape(len(x), -1) if layout == "flat" else x


def call_model(model: Callable[..., Any], x: Any, lengths: Any, side: Mapping[str, Any], interface: Interface) -> Any:
    """Call a model on series in its layout, with their lengths if it takes them, and side inputs by name.

    Arrays and tensors alike. What the model does to PyTorch's number of threads is taken back: models that use numba,
    as those of aeon, set it when they are first called.
    """
    n_threads = torch.get_num_threads()
    try:
        if interface.lengths.kind == "padding":
            return model(x, **side)
        return interface.lengths.call(model, x, lengths, side, time=2 if interface.layout == "bft" else 1)
    finally:
        if torch.get_num_threads() != n_threads:
            torch.set_num_threads(n_threads)


def call_parts(
    call: Callable[[Any, Any, Any], Any], x: Any, lengths: Any, side: Mapping[str, Any], batch: Batch | None
) -> Any:
    """Call a function of series, their lengths and side inputs in batches that the model accepts; arrays or tensors."""
    if batch is None:
        return call(x, lengths, side)
    rows = torch.arange(len(x), device=x.device) if isinstance(x, Tensor) else np.arange(len(x))

    def call_some(some: Any) -> Any:
        steps = None if lengths is None else lengths[some]
        return call(x[some], steps, {name: values[some] for name, values in side.items()})

    return call_in_batches(call_some, rows, batch)


def as_rows(raw: Tensor, n: int, kind: Kind, name: str) -> Tensor:
    """Return the output for ``n`` series as (batch, columns); raise if it cannot be the output of that kind.

    Parameters
    ----------
    raw
        What the model returned.
    n
        Number of series that it was given.
    kind
        What it was said to return.
    name
        Name of the model, for messages.
    """
    shape = tuple(raw.shape)
    if n == 1 and raw.ndim < 2:
        raw = raw.reshape(1, -1)  # a model that ends in squeeze() drops the batch of one
    elif raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or len(raw) != n:
        raise ModelOutputError(f"{name} must return (batch, classes), got {shape} for {n} series.")
    if not raw.is_floating_point():
        raise ModelOutputError(
            f"{name} returned {raw.dtype}; wrap a model that returns logits or probabilities, not labels."
        )
    if kind == "sigmoid" and raw.shape[1] != 1:
        raise ModelOutputError(
            f"output='sigmoid' means one probability per series, but {name} returned {raw.shape[1]} columns."
        )
    if kind == "probabilities" and raw.shape[1] == 1:
        raise ModelOutputError(f"{name} returned one probability per series; wrap it with output='sigmoid'.")
    return raw


def log_probabilities(raw: Tensor, kind: Kind, name: str) -> Tensor:
    """Return log-probabilities (batch, classes) of the output (batch, columns) of a model.

    Parameters
    ----------
    raw
        The output; one column of logits or of probabilities is that of class 1.
    kind
        What it is.
    name
        Name of the model, for messages.
    """
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))  # half precision is too coarse for a softmax
    if kind == "logits" and raw.shape[1] > 1:
        _check_logits(raw, name)
        return with_prediction(raw.log_softmax(1), raw.argmax(1))
    if kind == "logits":
        both = torch.cat([nn.functional.logsigmoid(-raw), nn.functional.logsigmoid(raw)], dim=1)
        return with_prediction(both, (raw[:, 0] > 0).long())
    _check_probabilities(raw, kind, name)
    proba = torch.cat([1 - raw, raw], dim=1) if kind == "sigmoid" else raw
    # A saturated probability of 0 would give infinite losses and gradients.
    return with_prediction(proba.clamp_min(torch.finfo(proba.dtype).tiny).log(), proba.argmax(1))


def _check_logits(raw: Tensor, name: str) -> None:
    """Raise for outputs that can only be probabilities; a second softmax would flatten them silently.

    Logits of a few series can sum to 1 by chance (rounded numbers, votes), so fewer than ``_DIFFERENT_ROWS`` prove
    nothing: fits ask for the predictions of the training series, which are more.
    """
    if torch.is_grad_enabled() or not bool((raw >= 0).all() & ((raw.sum(1) - 1).abs() < 1e-5).all()):
        return
    if len(set(map(tuple, raw.tolist()))) >= _DIFFERENT_ROWS:
        raise ModelOutputError(
            f"{name} returned rows that are probabilities already, where output='logits' promises logits. "
            "Wrap it with output='probabilities'."
        )


def _check_probabilities(raw: Tensor, kind: Kind, name: str) -> None:
    if torch.is_grad_enabled():
        return  # checked at every prediction; here it would synchronise with the GPU
    if bool(((raw < -1e-4) | (raw > 1 + 1e-4)).any()):
        raise ModelOutputError(
            f"{name} returned {float(raw.min()):.3g} to {float(raw.max()):.3g} where output={kind!r} "
            "promises probabilities. If these are logits, wrap with output='logits'."
        )
