"""What models return: in which part of a tuple or dict, of what kind, and how it becomes probabilities."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import ConfigError, ModelOutputError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.models.base import with_prediction
from sparcets.models.inputs import parameters_of
from sparcets.models.interface import NUMBERS, Kind, Layout, Part

KINDS: tuple[Kind, ...] = get_args(Kind)
# So many different outputs that sum to 1 are no accident.
_DIFFERENT_ROWS = 5
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


def as_rows(raw: Any, n: int, kind: Kind, name: str) -> Any:
    """Return the output for ``n`` series as (batch, columns); raise if it cannot be the output of that kind.

    Parameters
    ----------
    raw
        What the model returned, a tensor or an array.
    n
        Number of series that it was given.
    kind
        What it was said to return.
    name
        Name of the model, for messages.
    """
    shape, numbers = tuple(raw.shape), kind == NUMBERS
    if n == 1 and raw.ndim < 2:
        raw = raw.reshape(1, -1)  # a model that ends in squeeze() drops the batch of one
    elif raw.ndim == 1:
        raw = raw[:, None]
    if raw.ndim != 2 or len(raw) != n:
        wanted = "numbers (batch,) or (batch, outputs)" if numbers else "(batch, classes)"
        hint = " For a model of classes, leave task='regression' out." if numbers else ""
        raise ModelOutputError(f"{name} must return {wanted}, got {shape} for {n} series.{hint}")
    if not (raw.is_floating_point() if isinstance(raw, Tensor) else raw.dtype.kind in "fiub"):
        wanted = "a tensor of numbers" if numbers else "logits or probabilities, not labels"
        raise ModelOutputError(f"{name} returned {raw.dtype}; wrap a model that returns {wanted}.")
    if kind == "sigmoid" and raw.shape[1] != 1:
        raise ModelOutputError(
            f"output='sigmoid' means one probability per series, but {name} returned {raw.shape[1]} columns."
        )
    if kind == "probabilities" and raw.shape[1] == 1:
        raise ModelOutputError(
            f"{name} returned one {'column' if len(shape) == 2 else 'number per series'}; wrap what returns "
            "probabilities (batch, classes), or with output='sigmoid' where it is the probability of class 1."
        )
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
    missing = [one for one in list(parameters_of(call))[1:] if re.search(rf"missing .* required .*'{one}'", text)]
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
