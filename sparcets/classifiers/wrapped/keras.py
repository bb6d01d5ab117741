"""Models of Keras, with any backend. On PyTorch's they are modules, with gradients; on the others, black boxes."""

from __future__ import annotations

from typing import Any

from torch import nn

from sparcets.classifiers.wrapped.estimator import package
from sparcets.classifiers.wrapped.interface import Adapted


def adapt(model: Any) -> Adapted | None:
    """Return a model of Keras; a softmax over classes is assumed or, with one output, a sigmoid."""
    if package(model) not in ("keras", "tf_keras", "tensorflow") or not hasattr(model, "predict_on_batch"):
        return None
    # A list of shapes for several outputs; none before the model is built.
    shape = getattr(model, "output_shape", None)
    columns = shape[-1] if isinstance(shape, tuple) and len(shape) == 2 and isinstance(shape[-1], int) else None

    def call(series: Any) -> Any:
        # Not predict(), which is compiled anew for each size of a batch.
        return model(series, training=False)

    return Adapted(
        call=model if isinstance(model, nn.Module) else call,
        name=getattr(model, "name", None) or type(model).__name__,
        kind="sigmoid" if columns == 1 else "probabilities",
        n_classes=columns if columns != 1 else None,
    )
