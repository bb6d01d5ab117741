"""wrap: the interface of a user's model, by the arguments and by its type; the model is left unchanged.

Each kind of model, from Keras to ONNX, has a module beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args, overload

import numpy as np
from torch import nn

from sparcets.core.errors import CapabilityError, ConfigError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.series import is_integer
from sparcets.core.validation import check_names
from sparcets.models import estimator, module, onnx
from sparcets.models.base import Classifier, Missing, Regressor
from sparcets.models.interface import (
    EXAMPLE,
    KINDS,
    NUMBERS,
    Batch,
    Interface,
    Kind,
    Layout,
    Lengths,
    Part,
    WrappedClassifier,
    WrappedRegressor,
    parameters_of,
)

Task = Literal["classification", "regression"]
RULES = ("refuse", "keep", "forward", "mean")  # for missing values
LENGTHS_NAMES = ("lengths", "length", "lens", "seq_lengths", "seq_lens", "x_lengths", "input_lengths")
MOST_CLASSES = 1_000_000


@overload
def wrap(
    model: Any,
    *,
    task: Literal["regression"],
    output: Part | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
    lengths: Lengths | None = None,
    missing: Missing | None = None,
) -> Regressor: ...


@overload
def wrap(
    model: Any,
    *,
    task: Literal["classification"] = "classification",
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    output: Kind | Part | tuple[Kind, Part] | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
    lengths: Lengths | None = None,
    missing: Missing | None = None,
) -> Classifier: ...


def wrap(
    model: Any,
    *,
    task: Task = "classification",
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    output: Kind | Part | tuple[Kind, Part] | None = None,
    layout: Layout | None = None,
    batch: tuple[int, int] | None = None,
    lengths: Lengths | None = None,
    missing: Missing | None = None,
) -> Classifier | Regressor:
    """Make a model usable by explainers. The ``repr`` of the result shows the assumptions about it.

    Parameters
    ----------
    model
        An ``nn.Module`` or a program of ``torch.export``; a model of Keras; the path of an ``.onnx`` file or a session
        of onnxruntime; an estimator with ``predict_proba`` or ``decision_function``; a ``Booster`` of xgboost or
        lightgbm; or a function that returns probabilities. A module is used as it is at each call, in evaluation mode,
        and restored; a model without gradients is a black box.
    task
        ``"regression"`` for a model that predicts one number per series or several: by its ``predict``, its output, or
        the result of a function. ``n_classes``, ``class_names`` and kinds of ``output`` are for classes only.
    n_classes, class_names
        Number of classes and their names; detected if the model has them.
    output
        What the model returns: ``"logits"`` (one column means the logit of class 1; the default for modules),
        ``"probabilities"`` (the default for others), or ``"sigmoid"`` (one probability, of class 1). If it returns a
        tuple or a dict, the part to use, by key, index or function: ``output=1``, or with its kind,
        ``output=("logits", "scores")``, ``output=("sigmoid", lambda p: p[:, 0])``.
    layout
        Layout of the model's input: ``"btf"`` (batch, time, features; default), ``"bft"`` (batch, features, time;
        the default for aeon and sktime), or ``"flat"`` (batch, time * features; the default for boosters).
    batch
        Smallest and largest number of series that the model accepts in a call, such as ``(2, 64)``; None for any. A
        smaller call is padded by repeating its last series, a larger one is split.
    lengths
        Input of the model for series of unequal length: ``"argument"``, series padded with zeros and a second argument
        with their lengths; ``"packed"``, a ``PackedSequence`` of torch; ``"list"``, a list of the series without
        padding; ``"padding"``, series padded with zeros and no lengths. By default, an argument if the model has one
        called ``lengths`` or alike, a list for estimators of aeon that take one, and padding otherwise.
    missing
        Input of the model for missing values (NaN): ``"refuse"`` (default; they are an error), ``"keep"`` (NaN),
        ``"forward"`` (the previous value, or the next one at the start), ``"mean"`` (of the same feature of the same
        series), or a function from series with NaN (batch, time, features), a NumPy array, to filled ones.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sparcets.testing.data import make_series
    >>> X, y = make_series(60)
    >>> model = LogisticRegression(max_iter=500).fit(X.reshape(60, -1), y)
    >>> wrap(model, layout="flat")
    BlackBox(LogisticRegression (classification, output 'probabilities', layout 'flat'): 0, 1, 2)
    """
    if isinstance(model, (Classifier, Regressor)):
        what = "classifier" if isinstance(model, Classifier) else "regressor"
        other = task == "regression" and what == "classifier"
        if other or any(v is not None for v in (n_classes, class_names, output, layout, batch, lengths, missing)):
            raise ConfigError(
                f"{model.name} is a {what} of sparcets already; use it as it is, or wrap the model inside anew."
            )
        return model
    if isinstance(model, type):
        made = "(...)" if issubclass(model, nn.Module) else "(...).fit(X, y)"
        raise CapabilityError(
            f"{model.__name__} is a class. Wrap a trained model of it: sp.wrap({model.__name__}{made})."
        )
    check_word("task", str(task), get_args(Task))
    check_word("layout", layout, get_args(Layout))
    check_word("lengths", lengths, get_args(Lengths))
    kind, part = parse_output(output)
    numbers = task == "regression"
    if numbers and any(v is not None for v in (n_classes, class_names, kind)):
        raise ConfigError("n_classes, class_names and kinds of output are for classes; a regressor has none.")
    adapted = _adapt(model, numbers=numbers)
    if adapted.kind_is_certain and kind not in (None, adapted.kind):
        raise ConfigError(
            f"{adapted.name} returns {adapted.kind}, so it cannot have output={quoted(kind)}. Leave it out."
        )
    said = {"output": kind or adapted.kind_is_certain, "layout": layout, "lengths": lengths}
    found = replace(
        adapted,
        kind=NUMBERS if numbers else kind or adapted.kind,
        part=part,
        layout=layout or adapted.layout,
        batch=check_batch(batch) or adapted.batch,
        missing=check_missing("refuse" if missing is None else missing),
    )
    found = find_lengths_form(model, found, lengths)
    if numbers:
        return WrappedRegressor(model, found)
    declared = adapted.n_classes if part is None else None
    names = find_class_names(model, n_classes=n_classes, class_names=class_names, kind=found.kind, declared=declared)
    own = own_names(model)
    named = class_names is not None or (own is not None and own != tuple(str(k) for k in range(len(own))))
    assumed = tuple(name for name, given in said.items() if not given)
    return WrappedClassifier(model, replace(found, class_names=names, named=named, assumed=assumed))


def _adapt(model: Any, *, numbers: bool) -> Interface:
    if isinstance(model, (str, os.PathLike)):
        return onnx.adapt_file(model)
    return (
        module.adapt(model) or onnx.adapt(model) or (estimator.adapt_regressor if numbers else estimator.adapt)(model)
    )


def check_word(what: str, value: Any, known: Sequence[str]) -> None:
    """Raise unless an option is one of the known words, or None."""
    if value is not None and not (isinstance(value, str) and value in known):
        hint = did_you_mean(value, known) if isinstance(value, str) else ""
        raise ConfigError(f"no {what} {quoted(value)}.{hint} Known: {', '.join(known)}.")


def check_batch(batch: Any) -> Batch | None:
    """Return the smallest and the largest batch that a model accepts, or None for any.

    >>> check_batch([2, 64])
    (2, 64)
    """
    if batch is None:
        return None
    sizes = tuple(batch) if isinstance(batch, (tuple, list)) else ()
    if len(sizes) != 2 or not all(is_integer(n) for n in sizes) or not 1 <= sizes[0] <= sizes[1]:
        raise ConfigError(
            f"batch must be the smallest and the largest number of series that the model accepts, such as (2, 64), "
            f"got {quoted(batch)}."
        )
    return int(sizes[0]), int(sizes[1])


def find_lengths_form(model: Any, form: Interface, given: Any) -> Interface:
    """Add to an interface how the model takes lengths: as the user specified, else by the name of an argument."""
    if given == "packed" and not (isinstance(model, nn.Module) and form.layout == "btf"):
        raise ConfigError("lengths='packed' is for an nn.Module of (batch, time, features), layout='btf'.")
    if given in ("argument", "list") and form.layout == "flat":
        raise ConfigError(
            f"lengths={quoted(given)} needs the axis of time: layout='btf' or 'bft'. Flat series are padded."
        )
    parameters = parameters_of(form.call) if form.layout != "flat" else {}
    name = next((name for name in LENGTHS_NAMES if name in parameters), None)
    # An estimator of aeon says whether it takes lists of series of unequal length.
    by_tag = type(model).__module__.startswith("aeon.") and hasattr(model, "get_tag")
    lists = by_tag and model.get_tag("capability:unequal_length", raise_error=False, tag_value_default=False)
    kind: Lengths = given or ("argument" if name else "list" if lists else "padding")
    return replace(form, lengths=kind, lengths_name=name if kind == "argument" else None)


def check_missing(missing: Any) -> Missing:
    """Check the input of a model for missing values: one of ``RULES``, or a function.

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


def parse_output(output: Any) -> tuple[Kind | None, Part | None]:
    """Return the kind and the part of the output; None if not specified.

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


def find_class_names(
    model: Any,
    *,
    n_classes: int | None,
    class_names: Sequence[str] | None,
    kind: Kind,
    declared: int | None = None,
) -> tuple[str, ...] | None:
    """Return the class names, or None if unknown; raise unless all sources of them agree.

    The sources are the user's arguments, ``classes_`` of the model, a kind ``"sigmoid"``, which means two classes, and
    the number that the model declares in another way.
    """
    if n_classes is not None and not is_integer(n_classes):
        raise ConfigError(f"n_classes must be a whole number, got {quoted(n_classes)}.")
    if n_classes is not None and n_classes > MOST_CLASSES:
        raise ConfigError(f"n_classes must be at most {MOST_CLASSES:,}, got {quoted(n_classes)}.")
    own = check_names(own_names(model), what=f"{type(model).__name__}.classes_")
    given = check_names(class_names, what="class_names")
    sources = {
        "n_classes": None if n_classes is None else int(n_classes),
        "class_names": None if given is None else len(given),
        f"{type(model).__name__}.classes_": None if own is None else len(own),
        "the model itself": declared,
        "output='sigmoid'": 2 if kind == "sigmoid" else None,
    }
    counts = {what: n for what, n in sources.items() if n is not None}
    if not counts:
        return None
    if len(set(counts.values())) > 1:
        raise ConfigError(
            f"the number of classes is not clear: {', '.join(f'{what} says {n}' for what, n in counts.items())}."
        )
    n = next(iter(counts.values()))
    if n < 2:
        raise ConfigError(f"a classifier tells at least 2 classes apart, but {next(iter(counts))} says {n}.")
    if given is not None and own is not None and given != own and sorted(given) == sorted(own):
        raise ConfigError(
            f"class_names ({', '.join(given)}) are in another order than the model's classes ({', '.join(own)}). "
            "Leave class_names out: the model knows its own."
        )
    return given or own or tuple(str(k) for k in range(n))


def own_names(model: Any) -> tuple[str, ...] | None:
    """Return an estimator's names of its classes; whole numbers are written without a decimal point."""
    classes = getattr(model, "classes_", None)
    if classes is None or any(np.ndim(c) for c in classes):  # the classes of several outputs
        return None
    whole = [isinstance(c, (float, np.floating)) and float(c).is_integer() for c in classes]
    return tuple(str(int(c)) if is_whole else str(c) for c, is_whole in zip(classes, whole, strict=True))
