"""Models of Keras, with any backend. On PyTorch's they are modules, with gradients; on the others, black boxes."""

from __future__ import annotations

from typing import Any

from torch import nn

from sparcets.models.estimator import package
from sparcets.models.inputs import ByName, name_of_series
from sparcets.models.interface import Adapted


def adapt(model: Any) -> Adapted | None:
    """Return a model of Keras; a softmax over classes is assumed or, with one output, a sigmoid."""
    if package(model) not in ("keras", "tf_keras", "tensorflow") or not hasattr(model, "predict_on_batch"):
        return None
    # A list of shapes for several outputs; none before the model is built.
    shape = getattr(model, "output_shape", None)
    columns = shape[-1] if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[-1], int) else None

    name = getattr(model, "name", None) or type(model).__name__
    inputs = [one.name for one in getattr(model, "inputs", None) or []]  # none before the model is built

    def call(series: Any, **side: Any) -> Any:
        if len(inputs) > 1:  # taken in one dict
            series, side = {name_of_series(inputs, side, name): series, **side}, {}
        # Not predict(), which is compiled anew for each size of a batch.
        return model(series, training=False, **side)

    as_module = isinstance(model, nn.Module)
    return Adapted(
        call=(ByName(model, inputs) if len(inputs) > 1 else model) if as_module else call,
        name=name,
        kind="sigmoid" if columns == 1 else "probabilities",
        n_classes=columns if columns != 1 else None,
    )
