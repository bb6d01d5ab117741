"""Side inputs of a user's model: taken off the series, and passed to it by name."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray
from sparcets.classifiers.wrapped.lengths import further_arguments, parameters_of
from sparcets.errors import CapabilityError
from sparcets.registry import did_you_mean
from sparcets.side_inputs import Side, SideInputs


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
