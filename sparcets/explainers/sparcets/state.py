"""A fitted model as arrays, and back; what is not an array is stored as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.explainers import ExplainerConfig
from sparcets.errors import CapabilityError
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.model import FittedModel, build_generator
from sparcets.explainers.sparcets.operating_point import OperatingPoint
from sparcets.explainers.sparcets.prototypes import Prototypes
from sparcets.explanation.series_info import SeriesInfo
from sparcets.training.device import resolve_device

HEADER = "header"


def model_to_arrays(
    model: FittedModel, classifier: Classifier, points: Sequence[OperatingPoint], silent: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return all that makes a fitted model except the user's own classifier."""
    ensemble = model.ensemble
    own = [m for m in (*ensemble.members, ensemble.selector) if m is not classifier and isinstance(m, TorchClassifier)]
    header = {
        "hidden": model.generator.hidden,
        "layers": model.generator.layers,
        "uses_prototype": model.generator.uses_prototype,
        "log_sparsity_weights": model.log_sparsity_weights,
        "residual_scales": model.residual_scales,
        "min_agreement": model.min_agreement,
        "double": ensemble.double,
        "ensemble": [_header(member) for member in own],  # the selector comes last
        "points": [[p.log_sparsity_weight, p.residual_scale, p.valid, p.transfer, p.changed] for p in points],
        "silent": list(silent),
    }
    arrays = {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8).copy()}
    arrays |= {"prototypes": model.prototypes.series, "prototype_classes": model.prototypes.classes}
    arrays |= _to_arrays("generator", model.generator.state_dict())
    for i, member in enumerate(own):
        arrays |= _to_arrays(f"ensemble {i}", member.weights())
    return arrays


def model_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], classifier: Classifier, info: SeriesInfo, config: ExplainerConfig
) -> tuple[FittedModel, tuple[OperatingPoint, ...], tuple[str, ...]]:
    """Return model, trade-off and silent features from the output of :func:`model_to_arrays`."""
    header = json.loads(arrays[HEADER].tobytes().decode())
    weights = _from_arrays(arrays, "generator")
    generator = build_generator(
        config,
        info,
        weights["mutable"].nonzero()[:, 0].tolist(),
        hidden=int(header["hidden"]),
        layers=int(header["layers"]),
        uses_prototype=bool(header["uses_prototype"]),
    )
    generator.load_state_dict(weights)
    own: list[DifferentiableClassifier] = [
        TorchClassifier.rebuild(part, _from_arrays(arrays, f"ensemble {i}"), device=config.device)
        for i, part in enumerate(header["ensemble"])
    ]
    *members, selector = own
    if isinstance(classifier, DifferentiableClassifier):
        members.insert(0, classifier)
    if not members:
        raise CapabilityError(
            "this Explainer was fitted without auxiliary classifiers, with the gradients of its classifier; "
            f"{classifier.name} is a black box. Load it with the nn.Module it was fitted with: "
            "sp.load(folder, sp.wrap(module))."
        )
    device = resolve_device(config.device)
    model = FittedModel(
        generator=generator.to(device).eval().requires_grad_(False),
        ensemble=Ensemble(
            members=tuple(members),
            selector=selector,
            scaler=info.scaler,
            device=device,
            double=bool(header["double"]),
        ),
        prototypes=Prototypes(np.array(arrays["prototypes"]), np.array(arrays["prototype_classes"])),
        log_sparsity_weights=tuple(header["log_sparsity_weights"]),
        residual_scales=tuple(header["residual_scales"]),
        min_agreement=float(header["min_agreement"]),
    )
    return model, tuple(OperatingPoint(*values) for values in header["points"]), tuple(header["silent"])


def _header(member: TorchClassifier) -> dict[str, Any]:
    """Return the header of a classifier without its device, which is chosen anew when a model is loaded."""
    header = member.header()
    return {**header, "config": {**header["config"], "device": "auto"}}


def _to_arrays(prefix: str, state: Mapping[str, Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    return {f"{prefix}/{name}": t.detach().cpu().contiguous().numpy() for name, t in state.items()}


def _from_arrays(arrays: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> dict[str, Tensor]:
    start = f"{prefix}/"
    return {name.removeprefix(start): torch.tensor(a) for name, a in arrays.items() if name.startswith(start)}
