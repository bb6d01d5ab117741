"""wrap: a user's model as a Classifier; the model itself is left unchanged.

What is particular to a kind of model, from Keras to ONNX, is in a module beside this one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal, get_args, overload

from torch import nn

from sparcets.core.errors import CapabilityError, ConfigError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.models import black_box, boosters, estimator, keras, model_file, module, onnx, torch_export
from sparcets.models.base import Classifier, Regressor
from sparcets.models.black_box import BlackBox
from sparcets.models.inputs import Lengths, Missing, check_missing, find_lengths_form
from sparcets.models.interface import Adapted, Interface, Kind, Layout, Part, find_class_names, has_names
from sparcets.models.module import WrappedModule
from sparcets.models.outputs import parse_output
from sparcets.models.regression import wrap_regressor
from sparcets.models.views import check_batch

Task = Literal["classification", "regression"]
# Each returns None for a model that is not of its kind; what is left must be callable. Keras comes before modules:
# with PyTorch as its backend it is one, but with another output.
KINDS: tuple[Callable[[Any], Adapted | None], ...] = (
    keras.adapt,
    torch_export.adapt,
    module.adapt,
    onnx.adapt,
    boosters.adapt,
    estimator.adapt,
    black_box.adapt,
)


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
    """Make a model usable by explainers. What was assumed of it is in the ``repr`` of the result.

    Parameters
    ----------
    model
        An ``nn.Module`` or a program of ``torch.export``; a model of Keras; the path of an ``.onnx`` file or a session
        of onnxruntime; an estimator with ``predict_proba`` or ``decision_function``; a ``Booster`` of xgboost or
        lightgbm; or a function that returns probabilities. A module is used as it is at each call, in evaluation mode,
        and left as it was found; what has no gradients is a black box.
    task
        ``"regression"`` for a model that predicts one number per series or several: by its ``predict``, its output, or
        what a function returns. ``n_classes``, ``class_names`` and kinds of ``output`` are for classes only.
    n_classes, class_names
        Number of classes and their names; found out where the model knows them.
    output
        What the model returns: ``"logits"`` (one column means the logit of class 1; the default for modules),
        ``"probabilities"`` (the default for others), or ``"sigmoid"`` (one probability, of class 1). If it returns a
        tuple or a dict, the part that is meant, by key, index or function: ``output=1``, or with what it is,
        ``output=("logits", "scores")``, ``output=("sigmoid", lambda p: p[:, 0])``.
    layout
        How the model wants its series: ``"btf"`` (batch, time, features; default), ``"bft"`` (batch, features, time;
        the default for aeon and sktime), or ``"flat"`` (batch, time * features; the default for boosters).
    batch
        Smallest and largest number of series that the model accepts in a call, such as ``(2, 64)``; None for any. A
        smaller call is padded by repeating its last series, a larger one is split.
    lengths
        What the model gets for series of unequal length: ``"argument"``, series padded with zeros and a second argument
        with their lengths; ``"packed"``, a ``PackedSequence`` of torch; ``"list"``, a list of the series without
        padding; ``"padding"``, series padded with zeros and no lengths. By itself, it is an argument if the model has
        one called ``lengths`` or alike, a list for estimators of aeon that take one, and padding otherwise.
    missing
        What the model gets for missing values (NaN): ``"refuse"`` (default; they are an error), ``"keep"`` (NaN),
        ``"forward"`` (the last value before; for the first ones, the next), ``"mean"`` (of the same feature of the same
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
    layouts = get_args(Layout)
    for what, value, known in (("layout", layout, (None, *layouts)), ("task", task, get_args(Task))):
        if not (value is None or isinstance(value, str)) or value not in known:
            choices = [name for name in known if name is not None]
            hint = did_you_mean(value, choices) if isinstance(value, str) else ""
            raise ConfigError(f"no {what} {quoted(value)}.{hint} Known: {', '.join(choices)}.")
    kind, part = parse_output(output)
    batch = check_batch(batch)
    if task == "regression":
        if any(v is not None for v in (n_classes, class_names, kind)):
            raise ConfigError("n_classes, class_names and kinds of output are for classes; a regressor has none.")
        rule = check_missing("refuse" if missing is None else missing)
        return wrap_regressor(model, part=part, layout=layout, batch=batch, lengths=lengths, missing=rule)
    adapted = _adapt(model)
    if adapted.kind_is_certain and kind not in (None, adapted.kind):
        raise ConfigError(
            f"{adapted.name} returns {adapted.kind}, so it cannot have output={quoted(kind)}. Leave it out."
        )
    is_known = kind is not None or adapted.kind_is_certain
    names = find_class_names(
        model,
        n_classes=n_classes,
        class_names=class_names,
        kind=kind or adapted.kind,
        declared=adapted.n_classes if part is None else None,
    )
    said = {"output": is_known, "layout": layout is not None, "lengths": lengths is not None}
    interface = Interface(
        kind=kind or adapted.kind,
        layout=layout or adapted.layout,
        lengths=find_lengths_form(model, adapted.call, lengths, layout or adapted.layout),
        part=part,
        batch=batch or adapted.batch,
        missing=check_missing("refuse" if missing is None else missing),
        class_names=names,
        named=class_names is not None or has_names(model),
        assumed=tuple(name for name, is_given in said.items() if not is_given),
        note=adapted.note,
    )
    if isinstance(adapted.call, nn.Module):
        return WrappedModule(adapted.call, interface, adapted.name)
    return BlackBox(model, adapted, interface)


def _adapt(model: Any) -> Adapted:
    if isinstance(model, (str, os.PathLike)):
        return model_file.adapt(model)
    return next(found for adapt in KINDS if (found := adapt(model)) is not None)
