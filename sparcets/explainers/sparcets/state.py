"""A fitted model as arrays, and back; what is not an array is stored as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.explainers import ExplainerConfig
from sparcets.errors import CapabilityError
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.families.classifier import FamilyClassifier
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explainers.sparcets.grid import LongSeries
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
    own = [m for m in (ensemble.explained,) if m is not classifier]
    surrogate = [m for m in own if isinstance(m, TorchClassifier)]
    networks = [m for m in (*own, *ensemble.networks, *selector.networks) if isinstance(m, TorchClassifier)]
    families = [m for m in (*ensemble.families, *selector.judges) if isinstance(m, FamilyClassifier)]
    header = {
        "generator": None if model.generator is None else [model.generator.hidden, model.generator.layers],
        "searches": model.searches,
        "log_sparsity_weights": model.log_sparsity_weights,
        "residual_scales": model.residual_scales,
        "double": ensemble.double,
        "explained_accuracy": ensemble.explained_accuracy,
        "networks": [_header(net) for net in networks],
        "families": [family.family for family in families],
        # How many of each are the surrogate's, members, and the selector's.
        "counts": [len(surrogate), len(ensemble.networks), len(ensemble.families)],
        "points": [[p.log_sparsity_weight, p.residual_scale, p.valid, p.transfer, p.changed] for p in points],
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
    for i, net in enumerate(networks):
        arrays |= to_arrays(f"network {i}", net.weights())
    for i, family in enumerate(families):
        arrays |= {f"family {i}/{name}": array for name, array in family.to_arrays().items()}
    return arrays


def model_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], classifier: Classifier, info: SeriesInfo, config: ExplainerConfig
) -> tuple[FittedModel, tuple[OperatingPoint, ...], tuple[str, ...]]:
    """Return model, trade-off and silent features from the output of :func:`model_to_arrays`."""
    header = json.loads(arrays[HEADER].tobytes().decode())
    config = replace(config, device=with_double_precision(config.device, "sp.Explainer"))
    device = resolve_device(config.device)
    networks = [
        TorchClassifier.rebuild(part, tensors_of(arrays, f"network {i}"), device=config.device)
        for i, part in enumerate(header["networks"])
    ]
    families = [
        FamilyClassifier.from_arrays(name, part_of(arrays, f"family {i}")).to(device)
        for i, name in enumerate(header["families"])
    ]
    n_surrogates, n_networks, n_families = header["counts"]
    surrogate, networks = networks[:n_surrogates], networks[n_surrogates:]
    long = LongSeries.from_arrays(part_of(arrays, "long"))
    explained = (
        classifier if isinstance(classifier, DifferentiableClassifier) and long is None else next(iter(surrogate), None)
    )
    if explained is None:
        raise CapabilityError(
            f"this Explainer was fitted with the gradients of its classifier; {classifier.name} is a black box. "
            "Load it with the nn.Module it was fitted with: sp.load(folder, sp.wrap(module))."
        )
    model = FittedModel(
        ensemble=Ensemble(
            explained=explained,
            networks=networks[:n_networks],
            families=families[:n_families],
            levels=torch.tensor(arrays["levels"], device=device),
            explained_accuracy=float(header["explained_accuracy"]),
            selector=Selector(networks=networks[n_networks:], judges=families[n_families:], gaps=classifier.takes_gaps),
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
        long=long,
    )
    return model, tuple(OperatingPoint(*values) for values in header["points"]), tuple(header["silent"])


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


def _header(member: TorchClassifier) -> dict[str, Any]:
    """Return the header of a classifier without its device, which is chosen anew when a model is loaded."""
    header = member.header()
    return {**header, "config": {**header["config"], "device": "auto"}}


def to_arrays(prefix: str, state: Mapping[str, Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    """Return tensors as arrays, by names with a prefix."""
    return {f"{prefix}/{name}": t.detach().cpu().contiguous().numpy() for name, t in state.items()}


def tensors_of(arrays: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> dict[str, Tensor]:
    """Return the arrays of a prefix as tensors, by their names without it."""
    return {name: torch.tensor(array) for name, array in part_of(arrays, prefix).items()}


def part_of(arrays: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a prefix, by their names without it."""
    start = f"{prefix}/"
    return {name.removeprefix(start): np.array(a) for name, a in arrays.items() if name.startswith(start)}
