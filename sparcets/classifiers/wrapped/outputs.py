"""The argument ``output`` of ``sp.wrap``: what a model returns, and in which part of a tuple or dict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import numpy as np
from torch import Tensor

from sparcets.classifiers.wrapped.interface import Kind, Part
from sparcets.errors import ConfigError, ModelOutputError
from sparcets.registry import did_you_mean

KINDS: tuple[Kind, ...] = get_args(Kind)
EXAMPLE = 'output=("logits", 0) or output=("logits", "name")'


def parse_output(output: Any) -> tuple[Kind | None, Part | None]:
    """Return the kind of the output and the part of it that is meant; None where the user left it open.

    >>> parse_output("logits"), parse_output(1), parse_output(("sigmoid", "anomaly"))
    (('logits', None), (None, 1), ('sigmoid', 'anomaly'))
    """
    if output is None or output in KINDS:
        return output, None
    if isinstance(output, (tuple, list)):
        if len(output) == 2 and output[0] in KINDS and _is_part(output[1]):
            return output[0], output[1]
        raise ConfigError(f"output must be a kind ({', '.join(KINDS)}) and a part, {EXAMPLE}, got {output!r}.")
    meant = did_you_mean(output, KINDS) if isinstance(output, str) else ""
    if meant or not _is_part(output):
        key = f" If {output!r} is a key of what the model returns, write output=('logits', {output!r})."
        raise ConfigError(f"no output {output!r}.{meant} Known: {', '.join(KINDS)}.{key if meant else ''}")
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
            f"output={part!r} names a part of what {name} returns, but it returned one {type(returned).__name__}. "
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
        raise ModelOutputError(f"{name} returned {_parts(returned)}, which has no part {part!r}.") from error


def _holds_tables(returned: Any) -> bool:
    """Whether it is a list of outputs, rather than rows of numbers."""
    return isinstance(returned, list) and any(getattr(one, "ndim", 0) > 1 for one in returned)


def _parts(returned: Any) -> str:
    if isinstance(returned, Mapping):
        return f"a {type(returned).__name__} of {', '.join(map(str, returned))}"
    if isinstance(returned, (tuple, list)):
        return f"a {type(returned).__name__} of {len(returned)} (indices 0 to {len(returned) - 1})"
    return f"a {type(returned).__name__}"
