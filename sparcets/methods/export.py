"""Export of a fitted generator as an ONNX file: one forward pass in the data's own units.

The file holds the generator between two scalings. The constraints of a single call and the classifier's check are part
of ``explain``, since they need the user's own model.
"""

from __future__ import annotations

import io
import json
import os
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.errors import CapabilityError, StorageError, filters_kept
from sparcets.core.info import SeriesInfo
from sparcets.core.registry import require_extra
from sparcets.core.series import FloatArray
from sparcets.io.files import atomic_path
from sparcets.methods.adversarial import AdversarialExplainer
from sparcets.methods.base import BaseExplainer

OPSET = 17
BATCHES = (1, 5)  # sizes of the batches that the written file is compared on
CLOSE = 1e-4  # in standardised units: rounding, and nothing else


def export_generator(explainer: BaseExplainer[Any], path: str | os.PathLike[str]) -> float:
    """Write the generator of a fitted explainer as ONNX, having compared the two; return their largest difference.

    The file takes ``series`` (batch, time, features) float32 in the data's own units, and ``target`` (batch,) int64,
    the target classes, unless the generator was fitted for one class alone. It gives ``counterfactual`` (batch, time,
    features). Names of features and classes are in its metadata. It is written whole or not at all; the difference is
    between torch and onnxruntime, on random series, in standardised units.
    """
    require_extra("onnx", "export", "onnx")
    require_extra("onnxruntime", "the comparison with torch", "onnx")
    info = explainer._fitted()
    if info.unequal:
        raise CapabilityError(
            "a generator that was fitted on series of unequal length is not exported: a file would not know where a "
            "series ends. Fit it on series of one length, cut or resampled."
        )
    if info.side is not None:
        raise CapabilityError(
            f"a generator of a model with side inputs ({', '.join(info.side.names)}) is not exported: the file takes "
            "series alone. Use explain(X, target, side=…)."
        )
    module = _module(explainer)
    data = _to_onnx(module, info)
    difference = max(_compare(module, data, info, batch) for batch in BATCHES)
    if not difference <= CLOSE:
        raise StorageError(
            f"the exported generator differs from the fitted one by {difference:.2g} standard deviations, so it "
            "was not written. Try other versions of torch and onnxruntime."
        )
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
    return difference


class _Counterfactual(nn.Module):
    """A generator between two scalings."""

    center: Tensor
    scale: Tensor

    def __init__(self, generator: nn.Module, info: SeriesInfo, *, conditional: bool) -> None:
        super().__init__()
        self.generator, self.conditional = generator, conditional
        self.register_buffer("center", torch.tensor(info.scaler.center, dtype=torch.float32))
        self.register_buffer("scale", torch.tensor(info.scaler.scale, dtype=torch.float32))

    def forward(self, series: Tensor, target: Tensor | None = None) -> Tensor:
        x = (series - self.center) / self.scale
        delta = self.generator(x, target)
        return torch.where(delta == 0, series, series + delta * self.scale)


def _module(explainer: BaseExplainer[Any]) -> _Counterfactual:
    info = explainer._fitted()
    if info.task == "regression":
        raise CapabilityError("the model predicts numbers: there is no generator to export.")
    if isinstance(explainer, AdversarialExplainer):
        conditional = explainer._target is None
        made = _Counterfactual(explainer._fitted_generator(), info, conditional=conditional)
    else:
        raise CapabilityError(
            f"{type(explainer).__name__} has no generator to export. Fit Sparce, Gan or CounterGan for that."
        )
    device = next(made.generator.parameters()).device
    return made.to(device).eval()


def _inputs(module: _Counterfactual, info: SeriesInfo, batch: int) -> dict[str, FloatArray | Any]:
    """Return random series like those of the fit, by name."""
    rng = np.random.default_rng(batch)
    shape = (batch, info.n_steps, info.n_features)
    given: dict[str, Any] = {"series": info.scaler.inverse(rng.standard_normal(shape)).astype(np.float32)}
    if module.conditional:
        given["target"] = rng.integers(0, info.n_classes, batch)
    return given


def _to_onnx(module: _Counterfactual, info: SeriesInfo) -> bytes:
    import onnx

    device = module.center.device
    given = {name: torch.tensor(v, device=device) for name, v in _inputs(module, info, 2).items()}
    made = io.BytesIO()
    # The exporter that keeps an LSTM as one node; before torch 2.5 it was the only one.
    older: dict[str, Any] = {"dynamo": False} if "dynamo" in signature(torch.onnx.export).parameters else {}
    # The warnings recommend another exporter, which takes ten times as long.
    with filters_kept(ignore=Warning), torch.no_grad():
        torch.onnx.export(
            module,
            tuple(given.values()),
            made,  # type: ignore[arg-type]
            input_names=list(given),
            output_names=["counterfactual"],
            dynamic_axes={name: {0: "batch"} for name in (*given, "counterfactual")},
            opset_version=OPSET,
            **older,
        )
    model = onnx.load_model_from_string(made.getvalue())
    model.producer_name = "sparcets"
    about = {"features": info.feature_names, "classes": info.class_names, "units": info.units}
    onnx.helper.set_model_props(model, {name: json.dumps(v, ensure_ascii=False) for name, v in about.items()})
    return bytes(model.SerializeToString())


def _compare(module: _Counterfactual, data: bytes, info: SeriesInfo, batch: int) -> float:
    """Return the largest difference to torch on random series, in standardised units."""
    import onnxruntime

    given = _inputs(module, info, batch)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (got,) = session.run(None, given)
    with torch.no_grad():
        expected = module(*(torch.tensor(v, device=module.center.device) for v in given.values())).cpu().numpy()
    return float(np.abs((got - expected) / info.scaler.scale).max())
