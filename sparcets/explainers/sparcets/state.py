"""A fitted model as arrays, and back; what is not an array is stored as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.explainers import ExplainerConfig
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.families.classifier import FamilyClassifier
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explainers.sparcets.grid import LongSeries
from sparcets.explainers.sparcets.members import (
    Members,
    part_of,
    points_from_plain,
    points_to_plain,
    tensors_of,
    to_arrays,
)
from sparcets.explainers.sparcets.model import FittedModel, build_generator
from sparcets.explainers.sparcets.operating_point import OperatingPoint
from sparcets.explainers.sparcets.prototypes import Prototypes
from sparcets.explainers.sparcets.selector import Selector
from sparcets.explanation.plausibility import PlausibilityReference
from sparcets.explanation.series_info import SeriesInfo
from sparcets.networks.sizes import check_sizes
from sparcets.training.device import resolve_device, with_double_precision

HEADER = "header"


def model_to_arrays(
    model: FittedModel, classifier: Classifier, points: Sequence[OperatingPoint], silent: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return all that makes a fitted model except the user's own classifier."""
    ensemble, selector = model.ensemble, model.ensemble.selector
    surrogate = [m for m in (ensemble.explained,) if m is not classifier and isinstance(m, TorchClassifier)]
    members = Members(
        surrogate,
        cast("Sequence[TorchClassifier]", ensemble.networks),  # as they were trained; views are for one target only
        cast("Sequence[FamilyClassifier]", ensemble.families),
        cast("Sequence[TorchClassifier]", selector.networks),
        cast("Sequence[FamilyClassifier]", selector.judges),
    )
    header = {
        "generator": None if model.generator is None else [model.generator.hidden, model.generator.layers],
        "searches": model.searches,
        "log_sparsity_weights": model.log_sparsity_weights,
        "residual_scales": model.residual_scales,
        "double": ensemble.double,
        "explained_accuracy": ensemble.explained_accuracy,
        **members.header(),
        "points": points_to_plain(points),
        "silent": list(silent),
    }
    arrays = {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8).copy()}
    arrays |= {"prototypes": model.prototypes.series, "prototype_classes": model.prototypes.classes}
    if model.prototypes.lengths is not None:
        arrays |= {"prototype_lengths": model.prototypes.lengths}
    arrays |= {"levels": ensemble.levels.cpu().numpy()}
    arrays |= {f"reference/{name}": array for name, array in model.reference.to_arrays().items()}
    if model.long is not None:
        arrays |= {f"long/{name}": array for name, array in model.long.to_arrays().items()}
    if model.generator is not None:
        arrays |= to_arrays("generator", model.generator.state_dict())
    return arrays | members.to_arrays()


def model_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], classifier: Classifier, info: SeriesInfo, config: ExplainerConfig
) -> tuple[FittedModel, tuple[OperatingPoint, ...], tuple[str, ...]]:
    """Return model, trade-off and silent features from the output of :func:`model_to_arrays`."""
    header = json.loads(arrays[HEADER].tobytes().decode())
    config = replace(config, device=with_double_precision(config.device, "sp.Explainer"))
    device = resolve_device(config.device)
    members = Members.from_arrays(arrays, header, TorchClassifier, FamilyClassifier, device=config.device)
    long = LongSeries.from_arrays(part_of(arrays, "long"))
    gradients = isinstance(classifier, DifferentiableClassifier) and long is None
    model = FittedModel(
        ensemble=Ensemble(
            explained=members.explained(classifier, gradients=gradients),
            networks=members.networks,
            families=members.families,
            levels=torch.tensor(arrays["levels"], device=device),
            explained_accuracy=float(header["explained_accuracy"]),
            selector=Selector(networks=members.judge_networks, judges=members.judges, gaps=classifier.takes_gaps),
            scaler=info.scaler if long is None else long.scaler,
            device=device,
            double=bool(header["double"]),
        ),
        prototypes=Prototypes(
            np.array(arrays["prototypes"]),
            np.array(arrays["prototype_classes"]),
            np.array(arrays["prototype_lengths"]) if "prototype_lengths" in arrays else None,
        ),
        reference=PlausibilityReference.from_arrays(part_of(arrays, "reference"), info),
        generator=_generator(arrays, header["generator"], info, config, device),
        searches=bool(header["searches"]),
        log_sparsity_weights=tuple(header["log_sparsity_weights"]),
        residual_scales=tuple(header["residual_scales"]),
        starts=config.starts,
        long=long,
    )
    return model, points_from_plain(header["points"]), tuple(header["silent"])


def _generator(
    arrays: Mapping[str, np.ndarray[Any, Any]],
    sizes: list[int] | None,
    info: SeriesInfo,
    config: ExplainerConfig,
    device: torch.device,
) -> GatedGenerator | None:
    if sizes is None:
        return None
    weights = tensors_of(arrays, "generator")
    mutable = weights["mutable"].nonzero()[:, 0].tolist()
    hidden, layers = int(sizes[0]), int(sizes[1])
    check_sizes(hidden, layers, [weight.shape for weight in weights.values()])
    generator = build_generator(config, info, mutable, hidden=hidden, layers=layers)
    generator.load_state_dict(weights)
    return generator.to(device).eval().requires_grad_(False)
