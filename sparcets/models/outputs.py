"""The argument ``output`` of ``sp.wrap``: what a model returns, and in which part of a tuple or dict."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np
from torch import Tensor

from sparcets.core.errors import ConfigError, ModelOutputError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.models.inputs import further_arguments
from sparcets.models.interface import Kind, Layout, Part

KINDS: tuple[Kind, ...] = get_args(Kind)
EXAMPLE = 'output=("logits", 0) or output=("logits", "name")'


def parse_output(output: Any) -> tuple[Kind | None, Part | None]:
    """Return the kind of the output and the part of it that is meant; None where the user left it open.

    >>> parse_output("logits"), parse_output(1), parse_output(("sigmoid", "anomaly"))
    (('logits', None), (None, 1), ('sigmoid', 'anomaly'))
    """
    if output is None or (isinstance(output, str) and output in KINDS):
        return output, None
    if isinstance(output, (tuple, list)):
        if len(output) == 2 and isinstance(output[0], str) and output[0] in KINDS and _is_part(output[1]):
            return output[0], output[1]
        raise ConfigError(f"output must be a kind ({', '.join(KINDS)}) and a part, {EXAMPLE}, got {quoted(output)}.")
    meant = did_you_mean(output, KINDS) if isinstance(output, str) else ""
    if meant or not _is_part(output):
        key = f" If {quoted(output)} is a key of what the model returns, write output=('logits', {quoted(output)})."
        raise ConfigError(f"no output {quoted(output)}.{meant} Known: {', '.join(KINDS)}.{key if meant else ''}")
    return None, output


def _is_part(value: Any) -> bool:
    return (isinstance(value, (str, int)) and not isinstance(value, bool)) or callable(value)


def pick(returned: Any, kind: Kind, part: Part | None, name: str) -> Any:
    """Return the part of what a model returned that is its output.

    Without a part, it is the only element of a tuple, or the entry of a dict that is named like the kind.

    Parameters
    ----------
    returned
        What the model returned: an array, a tensor, a tuple, a dict, or an object with attributes.
    kind, part
        What the user said of it.
    name
        Name of the model, for messages.
    """
    if callable(part):
        return part(returned)
    whole = isinstance(returned, (Tensor, np.ndarray, np.generic, int, float)) or returned is None
    if whole and part is None:
        return returned
    if whole:
        raise ModelOutputError(
            f"output={quoted(part)} names a part of what {name} returns, but it returned one "
            f"{type(returned).__name__}. "
            "Leave it out."
        )
    if part is None:
        if isinstance(returned, Mapping) and kind in returned:
            return returned[kind]
        if isinstance(returned, (tuple, list)) and len(returned) == 1:
            return returned[0]
        if isinstance(returned, (tuple, Mapping)) or _holds_tables(returned):
            raise ModelOutputError(f"{name} returned {_parts(returned)}. Say which part is its output: {EXAMPLE}.")
        return returned
    if isinstance(returned, Mapping) and isinstance(part, int) and part not in returned:
        returned = list(returned.values())
    if isinstance(part, str) and hasattr(returned, part):
        return getattr(returned, part)  # a named tuple, or an object
    try:
        return returned[part]
    except (LookupError, TypeError) as error:
        raise ModelOutputError(f"{name} returned {_parts(returned)}, which has no part {quoted(part)}.") from error


def _holds_tables(returned: Any) -> bool:
    """Whether it is a list of outputs, rather than rows of numbers."""
    return isinstance(returned, list) and any(getattr(one, "ndim", 0) > 1 for one in returned)


def _parts(returned: Any) -> str:
    if isinstance(returned, Mapping):
        return f"a {type(returned).__name__} of {', '.join(map(str, returned))}"
    if isinstance(returned, (tuple, list)):
        return f"a {type(returned).__name__} of {len(returned)} (indices 0 to {len(returned) - 1})"
    return f"a {type(returned).__name__}"


LAYOUTS = "'btf' (batch, time, features), 'bft' (batch, features, time), or 'flat' for models of tables"
# Words of the messages of torch, NumPy, scikit-learn, Keras, onnxruntime and the boosters about wrong shapes.
_SHAPE = re.compile(
    r"shape|\bdim|\bsize|channel|\bfeatures\b|\baxis\b|\baxes\b|broadcast|\brank\b|out of (bounds|range)", re.IGNORECASE
)
_COLOUR = re.compile(r"\x1b\[\d*m")  # of terminals, in messages of Keras


def model_failed(
    name: str, shape: tuple[int, ...], layout: Layout, error: BaseException, call: Callable[..., Any]
) -> ModelOutputError:
    """Return the error for a model that raised one, with what to do where it is about shapes or a missing argument.

    Parameters
    ----------
    name, call
        Name of the model in messages, and what was called.
    shape, layout
        Of the series that it was given.
    error
        What it raised.
    """
    about_shape = _SHAPE.search(str(error)) is not None and type(error).__name__ != "NotFittedError"
    hint = (
        f" It may want another layout: layout={LAYOUTS}; or other batches: batch=(2, 64). Or the array itself is "
        "transposed: sparcets takes (batch, time, features); make one of (batch, features, time) so by "
        "X.swapaxes(1, 2), and leave layout as it is."
        if about_shape and "required positional argument" not in str(error)
        else ""
    )
    text = " ".join(_COLOUR.sub("", str(error)).split()).rstrip(".")
    missing = [one for one in further_arguments(call) if re.search(rf"missing .* required .*'{one}'", text)]
    if missing:
        hint = (
            f" What it takes besides the series is passed by name, a row per series: side={{{missing[0]!r}: …}}; on "
            f"the command line, columns of a file: --option side={','.join(missing)}."
        )
    return ModelOutputError(
        f"your model {name} failed on an input of shape {shape} (layout {layout!r}): {type(error).__name__}: {text}."
        f"{hint}"
    )


def no_distribution(proba: Any, *, may_be_logits: bool = True) -> str:
    """Return what to do about rows that are no probabilities: they are several labels, or logits.

    Parameters
    ----------
    proba
        What the model returned (batch, classes).
    may_be_logits
        Whether ``output="logits"`` is possible.
    """
    rows = np.asarray(proba, dtype=np.float64)
    if rows.min() >= 0 and rows.max() <= 1:
        return (
            "Each number is between 0 and 1, but the rows do not sum to 1: one probability for each of several labels? "
            "Explain one label at a time: output=('sigmoid', lambda p: p[:, 0])."
        )
    return (
        "If they are logits, wrap with output='logits' (--output logits)."
        if may_be_logits
        else "They must be at least 0 and sum to 1."
    )
