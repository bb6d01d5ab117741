"""How a user's model is told the lengths of padded series: as an argument, packed, as a list, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from sparcets.core.arrays import FloatArray, IntArray, missing_entries
from sparcets.core.errors import CapabilityError, ConfigError, ModelOutputError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import fill_gaps
from sparcets.core.side_inputs import Side, SideInputs
from sparcets.training.networks import fill_gaps as fill_tensor

Lengths = Literal["argument", "packed", "list", "padding"]
NAMES = ("lengths", "length", "lens", "seq_lengths", "seq_lens", "x_lengths", "input_lengths")  # of the argument


RULES = ("refuse", "keep", "forward", "mean")


# A rule, or a function from series with NaN (batch, time, features) to series of the same shape.
Missing: TypeAlias = str | Callable[[Any], Any]


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


def rule_name(missing: Missing) -> str:
    """Return a rule, or the name of a function.

    >>> rule_name("mean"), rule_name(np.nan_to_num)
    ('mean', 'nan_to_num')
    """
    return missing if isinstance(missing, str) else getattr(missing, "__name__", type(missing).__name__)


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
    if given is not None and not (isinstance(given, str) and given in known):
        hint = did_you_mean(given, known) if isinstance(given, str) else ""
        raise ConfigError(f"no lengths {quoted(given)}.{hint} Known: {', '.join(known)}.")
    if given == "packed" and not (isinstance(model, nn.Module) and layout == "btf"):
        raise ConfigError("lengths='packed' is for an nn.Module of (batch, time, features), layout='btf'.")
    if given in ("argument", "list") and layout == "flat":
        raise ConfigError(
            f"lengths={quoted(given)} needs the axis of time: layout='btf' or 'bft'. Flat series are padded."
        )
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


def split_arrays(X: FloatArray, known: SideInputs) -> tuple[FloatArray, Side]:
    """Return series (batch, time, features) alone, and their side inputs in the types that they were given in."""
    series, side = known.split(X)
    return series, known.typed(side)


def split_tensors(x: Tensor, known: SideInputs, dtype: torch.dtype | None) -> tuple[Tensor, dict[str, Tensor]]:
    """Return series alone, and their side inputs: whole numbers as int64, flags as bool, others in the model's type.

    No gradients flow to side inputs, which never change.
    """
    series, parts = known.split(x)
    kinds = {"b": torch.bool, "i": torch.int64, "u": torch.int64}
    side = {}
    for name, stored in zip(known.names, known.dtypes, strict=True):
        kind = kinds.get(np.dtype(stored).kind)
        part = parts[name].detach()
        side[name] = part.to(dtype or x.dtype) if kind is None else part.round().to(kind)
    return series, side


def check_side_arguments(call: Callable[..., Any], known: SideInputs, name: str, *, lengths: str | None = None) -> None:
    """Raise unless a model has an argument for each of its side inputs, as far as its signature is known.

    Parameters
    ----------
    call, name
        The model, and its name in messages.
    known
        The side inputs.
    lengths
        Name of the argument for the lengths of series, or None.
    """
    parameters = parameters_of(call)
    kinds = {parameter.kind for parameter in parameters.values()}
    if not parameters or Parameter.VAR_KEYWORD in kinds:
        return
    further = [one for one in further_arguments(call) if one != lengths]
    for one in known.names:
        if one not in further:
            takes = f"beside the series it takes {', '.join(further)}" if further else "it takes the series alone"
            raise CapabilityError(
                f"{name} has no argument {one!r} for a side input.{did_you_mean(one, further)} Side inputs are passed "
                f"by name, and {takes}. Rename it in side=, or wrap a function of the series and {one}."
            )


class ByName(nn.Module):
    """A module that takes all its inputs in one dict by name, called with the series and the others as arguments.

    Parameters
    ----------
    module
        Takes a dict.
    names
        Of all its inputs; the one that is no side input are the series.
    """

    def __init__(self, module: nn.Module, names: list[str]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, series: Tensor, **side: Tensor) -> Any:
        """Return what the module returns."""
        return self.module({name_of_series(self.names, side, "the model"): series, **side})


def name_of_series(names: list[str], side: dict[str, Any], model: str) -> str:
    """Return which of a model's inputs the series are: the one that is no side input."""
    unknown, left = [one for one in side if one not in names], [one for one in names if one not in side]
    if unknown:
        raise CapabilityError(
            f"{model} has no input {unknown[0]!r}.{did_you_mean(unknown[0], names)} It takes {', '.join(names)}: name "
            "all but the series in side=."
        )
    if len(left) != 1:
        raise CapabilityError(
            f"{model} takes {', '.join(names)}. Name all but the series in side=, "
            f"such as side={{{names[-1]!r}: …}}, got {', '.join(side) or 'none'}."
        )
    return left[0]


def filled_series(X: FloatArray, missing: Missing, lengths: IntArray | None = None) -> FloatArray:
    """Return series (batch, time, features) as the model gets them.

    Parameters
    ----------
    X, lengths
        Series with NaN, and true lengths or None.
    missing
        The rule, or the user's function; only what it returns for missing values is used.
    """
    if missing == "keep":
        return X
    if isinstance(missing, str):
        return fill_gaps(X, missing, lengths)
    gaps = missing_entries(X)
    if gaps is None:
        return X
    try:
        filled = np.asarray(missing(X.copy()), dtype=X.dtype)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ModelOutputError(
            f"the function given as missing= failed on series of shape {X.shape}: {type(error).__name__}: {error}."
        ) from error
    if filled.shape != X.shape:
        raise ModelOutputError(f"the function given as missing= must return shape {X.shape}, got {filled.shape}.")
    return np.where(gaps, filled, X)


def filled_tensor(x: Tensor, missing: Missing, lengths: Tensor | None = None) -> Tensor:
    """Return a tensor of series as the model gets it, with gradients; see :func:`filled_series`.

    What a function fills in is a constant: gradients flow to what was measured.
    """
    if missing == "keep":
        return x
    if isinstance(missing, str):
        return fill_tensor(x, missing, lengths)
    filled = filled_series(x.detach().cpu().numpy(), missing)
    return torch.where(x.isnan(), torch.as_tensor(filled, dtype=x.dtype, device=x.device), x)
