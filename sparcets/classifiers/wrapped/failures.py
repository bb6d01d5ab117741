"""What to say when a user's model fails, or returns what is no distribution over classes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from sparcets.classifiers.wrapped.interface import Layout
from sparcets.classifiers.wrapped.lengths import further_arguments
from sparcets.errors import ModelOutputError

LAYOUTS = "'btf' (batch, time, features), 'bft' (batch, features, time), or 'flat' for models of tables"
# Words of the messages of torch, NumPy, scikit-learn, Keras, onnxruntime and the boosters about wrong shapes.
_SHAPE = re.compile(
    r"shape|\bdim|\bsize|channel|\bfeatures\b|\baxis\b|\baxes\b|broadcast|\brank\b|out of (bounds|range)", re.IGNORECASE
)
_COLOUR = re.compile(r"\x1b\[\d*m")  # of terminals, in messages of Keras


def model_failed(
    name: str, shape: tuple[int, ...], layout: Layout, error: Exception, call: Callable[..., Any]
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
        f" It may want another layout: layout={LAYOUTS}; or other batches: batch=(2, 64)."
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
