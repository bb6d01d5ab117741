"""How a user's model is told the lengths of padded series: as an argument, packed, as a list, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from sparcets.errors import ConfigError
from sparcets.registry import did_you_mean

Lengths = Literal["argument", "packed", "list", "padding"]
NAMES = ("lengths", "length", "lens", "seq_lengths", "seq_lens", "x_lengths", "input_lengths")  # of the argument


@dataclass(frozen=True)
class LengthsForm:
    """What a model expects.

    Attributes
    ----------
    kind
        ``"argument"``, ``"packed"``, ``"list"`` or ``"padding"``; see :func:`sparcets.wrap`.
    keyword
        Name of the argument, or None for the second one.
    """

    kind: Lengths = "padding"
    keyword: str | None = None

    def call(self, model: Callable[..., Any], x: Any, lengths: Any, side: Mapping[str, Any], *, time: int) -> Any:
        """Call a model that takes lengths.

        Parameters
        ----------
        model
            The model.
        x
            Series in the layout of the model, an array or a tensor, with zeros as padding.
        lengths
            True lengths (batch,), of the same kind as ``x``; None if nothing is padded.
        side
            Side inputs (batch, …) by name.
        time
            The axis of time in ``x``.
        """
        if lengths is None:
            steps = (len(x),), x.shape[time]
            lengths = torch.full(*steps, device=x.device) if isinstance(x, Tensor) else np.full(*steps)
        if self.kind == "argument":
            return model(x, lengths, **side) if self.keyword is None else model(x, **{self.keyword: lengths}, **side)
        if self.kind == "list":
            return model([_cut(one, n, time) for one, n in zip(x, lengths.tolist(), strict=True)], **side)
        return model(pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False), **side)


def _cut(series: Any, n: int, time: int) -> Any:
    """Return a series without its padding; contiguous, since compiled code does not take arrays of mixed layouts."""
    cut = series[:n] if time == 1 else series[:, :n]
    return cut.contiguous() if isinstance(cut, Tensor) else np.ascontiguousarray(cut)


PADDED = LengthsForm()


def find_lengths_form(model: Any, call: Callable[..., Any], given: str | None, layout: str) -> LengthsForm:
    """Return how a model takes lengths: as the user says, else as an argument if it has one of that name.

    Parameters
    ----------
    model, call
        The model, and what is called.
    given
        What the user said, or None.
    layout
        Of the series: ``"btf"``, ``"bft"`` or ``"flat"``.
    """
    known = {str(kind): kind for kind in get_args(Lengths)}
    if given is not None and given not in known:
        raise ConfigError(f"no lengths {given!r}.{did_you_mean(str(given), known)} Known: {', '.join(known)}.")
    if given == "packed" and not (isinstance(model, nn.Module) and layout == "btf"):
        raise ConfigError("lengths='packed' is for an nn.Module of (batch, time, features), layout='btf'.")
    if given in ("argument", "list") and layout == "flat":
        raise ConfigError(f"lengths={given!r} needs the axis of time: layout='btf' or 'bft'. Flat series are padded.")
    keyword = _length_argument(call) if layout != "flat" else None
    if given == "argument" or (given is None and keyword is not None):
        return LengthsForm("argument", keyword)
    if given is None:
        return LengthsForm("list" if _takes_lists(model) else "padding")
    return LengthsForm(known[given])


def _length_argument(call: Callable[..., Any]) -> str | None:
    """Return the name of the argument for the lengths, or None."""
    parameters = parameters_of(call)
    return next((name for name in NAMES if name in parameters), None)


def further_arguments(call: Callable[..., Any]) -> list[str]:
    """Return the names of a model's arguments after the first, the series; none where they are not known."""
    return list(parameters_of(call))[1:]


def parameters_of(call: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a model, by name; none where they are not known."""
    try:
        return signature(call.forward if isinstance(call, nn.Module) else call).parameters
    except (TypeError, ValueError):  # built-in functions have no signature
        return {}


def _takes_lists(model: Any) -> bool:
    """Whether an estimator of aeon says that it takes lists of series of unequal length."""
    if not (type(model).__module__.startswith("aeon.") and hasattr(model, "get_tag")):
        return False
    return bool(model.get_tag("capability:unequal_length", raise_error=False, tag_value_default=False))
