"""What models are given: series in their layout, lengths as they take them, side inputs by name, and filled gaps.

This is one of the three places where axes are transposed (the others are :mod:`sparcets.data.uea` and
:mod:`sparcets.evaluation.families`): inside sparcets series are always (batch, time, features).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from sparcets.core.arrays import missing_entries
from sparcets.core.errors import CapabilityError, ConfigError, ModelOutputError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import Series
from sparcets.core.side_inputs import SideInputs
from sparcets.training.networks import fill_gaps as fill_tensor

Lengths = Literal["argument", "packed", "list", "padding"]
NAMES = ("lengths", "length", "lens", "seq_lengths", "seq_lens", "x_lengths", "input_lengths")  # of the argument


Batch = tuple[int, int]


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


def call_in_batches(call: Callable[[Any], Any], x: Any, batch: Batch) -> Any:
    """Call a model on series (batch, …) in batches it accepts, and return its outputs, one row per series.

    Parameters
    ----------
    call
        The model: series to outputs, arrays or tensors.
    x
        Series, an array or a tensor. A batch that is too small is padded by repeating its last series, whose further
        outputs are dropped.
    batch
        Smallest and largest number of series.
    """
    parts = (x[start : start + batch[1]] for start in range(0, len(x), batch[1]))
    outputs = [call(padded(part, batch[0]))[: len(part)] for part in parts]
    return torch.cat(outputs) if isinstance(x, Tensor) else np.concatenate(outputs)


def padded(x: Any, smallest: int) -> Any:
    """Return series, or anything else (batch, …), with the last one repeated until there are ``smallest`` of them.

    >>> padded(torch.tensor([1, 2]), 4)
    tensor([1, 2, 2, 2])
    """
    missing = smallest - len(x)
    if missing <= 0:
        return x
    if isinstance(x, Tensor):
        return torch.cat([x, x[-1:].expand(missing, *x.shape[1:])])
    return np.concatenate([x, np.repeat(x[-1:], missing, axis=0)])


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
        """Call a model on series, with their lengths if it takes them, and side inputs by name.

        What the model does to PyTorch's number of threads is taken back: models that use numba, as those of aeon, set
        it when they are first called.

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
        n_threads = torch.get_num_threads()
        try:
            given, named = self._given(x, lengths, time)
            return model(*given, **named, **side)
        finally:
            if torch.get_num_threads() != n_threads:
                torch.set_num_threads(n_threads)

    def _given(self, x: Any, lengths: Any, time: int) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments for series and lengths."""
        if self.kind == "padding":
            return [x], {}
        if lengths is None:
            steps = (len(x),), x.shape[time]
            lengths = torch.full(*steps, device=x.device) if isinstance(x, Tensor) else np.full(*steps)
        if self.kind == "argument":
            return ([x, lengths], {}) if self.keyword is None else ([x], {self.keyword: lengths})
        if self.kind == "list":
            return [[_cut(one, n, time) for one, n in zip(x, lengths.tolist(), strict=True)]], {}
        return [pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)], {}


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
    parameters = parameters_of(call) if layout != "flat" else {}
    keyword = next((name for name in NAMES if name in parameters), None)
    if given == "argument" or (given is None and keyword is not None):
        return LengthsForm("argument", keyword)
    if given is None:
        return LengthsForm("list" if _takes_lists(model) else "padding")
    return LengthsForm(known[given])


def parameters_of(call: Callable[..., Any]) -> Mapping[str, Parameter]:
    """Return the parameters of a model by name, the first of which are the series; none where they are not known."""
    try:
        return signature(call.forward if isinstance(call, nn.Module) else call).parameters
    except (TypeError, ValueError):  # built-in functions have no signature
        return {}


def _takes_lists(model: Any) -> bool:
    """Whether an estimator of aeon says that it takes lists of series of unequal length."""
    if not (type(model).__module__.startswith("aeon.") and hasattr(model, "get_tag")):
        return False
    return bool(model.get_tag("capability:unequal_length", raise_error=False, tag_value_default=False))


def arrange(x: Any, layout: str) -> Any:
    """Return series (batch, time, features) in the layout of the model; for arrays and tensors."""
    x = x.swapaxes(1, 2) if layout == "bft" else x.reshape(len(x), -1) if layout == "flat" else x
    return x.contiguous() if isinstance(x, Tensor) else x


def call_parts(
    call: Callable[[Any, Any, Any], Any], x: Any, lengths: Any, side: Mapping[str, Any], batch: Batch | None
) -> Any:
    """Call a function of series, their lengths and side inputs in batches that the model accepts; arrays or tensors."""
    if batch is None:
        return call(x, lengths, side)
    rows = torch.arange(len(x), device=x.device) if isinstance(x, Tensor) else np.arange(len(x))

    def call_some(some: Any) -> Any:
        beside = {name: values[some] for name, values in side.items()}
        return call(x[some], None if lengths is None else lengths[some], beside)

    return call_in_batches(call_some, rows, batch)


def split_side(x: Any, known: SideInputs, dtype: torch.dtype | None) -> tuple[Any, Any]:
    """Return series (batch, time, features) alone, and their side inputs.

    Arrays have the types that they were given in. Tensors of whole numbers are int64, flags bool, others of the model's
    type; no gradients flow to side inputs, which never change.
    """
    series, parts = known.split(x)
    if not isinstance(x, Tensor):
        return series, known.typed(parts)
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
    further = [one for one in list(parameters)[1:] if one != lengths]
    for one in known.names:
        if one not in further:
            takes = f"beside the series it takes {', '.join(further)}" if further else "it takes the series alone"
            raise CapabilityError(
                f"{name} has no argument {one!r} for a side input.{did_you_mean(one, further)} Side inputs are passed "
                f"by name, and {takes}. Rename it in side=, or wrap a function of the series and {one}."
            )


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


def filled(x: Any, missing: Missing, lengths: Any = None) -> Any:
    """Return series (batch, time, features), an array or a tensor, as the model gets them.

    What a function fills into a tensor is a constant: gradients flow to what was measured.

    Parameters
    ----------
    x, lengths
        Series with NaN, and true lengths or None.
    missing
        The rule, or the user's function; only what it returns for missing values is used.
    """
    if missing == "keep":
        return x
    if isinstance(x, Tensor):
        if isinstance(missing, str):
            return fill_tensor(x, missing, lengths)
        values = filled(x.detach().cpu().numpy(), missing)
        return torch.where(x.isnan(), torch.as_tensor(values, dtype=x.dtype, device=x.device), x)
    if isinstance(missing, str):
        return Series(x, lengths).filled(missing).values
    gaps = missing_entries(x)
    if gaps is None:
        return x
    try:
        values = np.asarray(missing(x.copy()), dtype=x.dtype)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ModelOutputError(
            f"the function given as missing= failed on series of shape {x.shape}: {type(error).__name__}: {error}."
        ) from error
    if values.shape != x.shape:
        raise ModelOutputError(f"the function given as missing= must return shape {x.shape}, got {values.shape}.")
    return np.where(gaps, values, x)
