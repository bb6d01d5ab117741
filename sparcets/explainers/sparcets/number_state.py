"""A model that was fitted to numbers as arrays, and back; what is not an array is stored as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparcets.classifiers.regressor import DifferentiableRegressor, Regressor
from sparcets.classifiers.torch_regressor import TorchRegressor
from sparcets.config.explainers import ExplainerConfig
from sparcets.errors import CapabilityError
from sparcets.explainers.sparcets.families.regressor import FamilyRegressor
from sparcets.explainers.sparcets.grid import LongSeries
from sparcets.explainers.sparcets.number_model import NumberModel
from sparcets.explainers.sparcets.operating_point import OperatingPoint
from sparcets.explainers.sparcets.state import HEADER, part_of, tensors_of, to_arrays
from sparcets.explanation.plausibility import PlausibilityReference
from sparcets.explanation.series_info import SeriesInfo
from sparcets.training.device import resolve_device, with_double_precision

ARRAYS = ("spread", "examples", "example_labels", "prototypes", "prototype_numbers", "reference_numbers")
OPTIONAL = ("prototype_lengths", "long_numbers")  # of padded series, and of long ones


def number_model_to_arrays(
    model: NumberModel, regressor: Regressor, points: Sequence[OperatingPoint]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return all that makes a fitted model except the user's own regressor."""
    surrogate = [m for m in (model.explained,) if m is not regressor and isinstance(m, TorchRegressor)]
    networks = [*surrogate, *model.networks, *model.judge_networks]
    families = [*model.families, *model.judges]
    header = {
        "double": model.double,
        "networks": [net.header() for net in networks],
        "families": [family.family for family in families],
        # How many of each are the surrogate's, members, and the selector's.
        "counts": [len(surrogate), len(model.networks), len(model.families)],
        "points": [[p.log_sparsity_weight, p.residual_scale, p.valid, p.transfer, p.changed] for p in points],
    }
    arrays = {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8).copy()}
    arrays |= {name: getattr(model, name) for name in ARRAYS}
    arrays |= {name: array for name in OPTIONAL if (array := getattr(model, name)) is not None}
    if model.long is not None:
        arrays |= {f"long/{name}": array for name, array in model.long.to_arrays().items()}
    arrays |= {f"reference/{name}": array for name, array in model.reference.to_arrays().items()}
    for i, net in enumerate(networks):
        arrays |= to_arrays(f"network {i}", net.weights())
    for i, family in enumerate(families):
        arrays |= {f"family {i}/{name}": array for name, array in family.to_arrays().items()}
    return arrays


def number_model_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], regressor: Regressor, info: SeriesInfo, config: ExplainerConfig
) -> tuple[NumberModel, tuple[OperatingPoint, ...]]:
    """Return model and trade-off from the output of :func:`number_model_to_arrays`."""
    header = json.loads(arrays[HEADER].tobytes().decode())
    config = replace(config, device=with_double_precision(config.device, "sp.Explainer"))
    device = resolve_device(config.device)
    networks = [
        TorchRegressor.rebuild(part, tensors_of(arrays, f"network {i}"), device=config.device)
        for i, part in enumerate(header["networks"])
    ]
    families = [
        FamilyRegressor.from_arrays(name, part_of(arrays, f"family {i}")).to(device)
        for i, name in enumerate(header["families"])
    ]
    n_surrogates, n_networks, n_families = header["counts"]
    surrogate, networks = networks[:n_surrogates], networks[n_surrogates:]
    long = LongSeries.from_arrays(part_of(arrays, "long"))
    explained = (
        regressor if isinstance(regressor, DifferentiableRegressor) and long is None else next(iter(surrogate), None)
    )
    if explained is None:
        raise CapabilityError(
            f"this Explainer was fitted with the gradients of its model; {regressor.name} is a black box. Load it with "
            "the nn.Module it was fitted with: sp.load(folder, sp.wrap(module, task='regression'))."
        )
    model = NumberModel(
        **{name: np.array(arrays[name]) for name in (*ARRAYS, *OPTIONAL) if name in arrays},
        explained=explained,
        networks=networks[:n_networks],
        families=families[:n_families],
        judge_networks=networks[n_networks:],
        judges=families[n_families:],
        reference=PlausibilityReference.from_arrays(part_of(arrays, "reference"), info),
        info=info if long is None else long.info(info),
        device=device,
        double=bool(header["double"]),
        gaps=regressor.takes_gaps,
        long=long,
    )
    return model, tuple(OperatingPoint(*values) for values in header["points"])
