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
from sparcets.explainers.sparcets.families.regressor import FamilyRegressor
from sparcets.explainers.sparcets.grid import LongSeries
from sparcets.explainers.sparcets.members import Members, part_of, points_from_plain, points_to_plain
from sparcets.explainers.sparcets.number_model import NumberModel
from sparcets.explainers.sparcets.operating_point import OperatingPoint
from sparcets.explainers.sparcets.state import HEADER
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
    members = Members(surrogate, model.networks, model.families, model.judge_networks, model.judges)
    header = {"double": model.double, **members.header(), "points": points_to_plain(points)}
    arrays = {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8).copy()}
    arrays |= {name: getattr(model, name) for name in ARRAYS}
    arrays |= {name: array for name in OPTIONAL if (array := getattr(model, name)) is not None}
    if model.long is not None:
        arrays |= {f"long/{name}": array for name, array in model.long.to_arrays().items()}
    arrays |= {f"reference/{name}": array for name, array in model.reference.to_arrays().items()}
    return arrays | members.to_arrays()


def number_model_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], regressor: Regressor, info: SeriesInfo, config: ExplainerConfig
) -> tuple[NumberModel, tuple[OperatingPoint, ...]]:
    """Return model and trade-off from the output of :func:`number_model_to_arrays`."""
    header = json.loads(arrays[HEADER].tobytes().decode())
    config = replace(config, device=with_double_precision(config.device, "sp.Explainer"))
    members = Members.from_arrays(arrays, header, TorchRegressor, FamilyRegressor, device=config.device)
    long = LongSeries.from_arrays(part_of(arrays, "long"))
    gradients = isinstance(regressor, DifferentiableRegressor) and long is None
    model = NumberModel(
        **{name: np.array(arrays[name]) for name in (*ARRAYS, *OPTIONAL) if name in arrays},
        explained=members.explained(regressor, gradients=gradients),
        networks=members.networks,
        families=members.families,
        judge_networks=members.judge_networks,
        judges=members.judges,
        reference=PlausibilityReference.from_arrays(part_of(arrays, "reference"), info),
        info=info if long is None else long.info(info),
        device=resolve_device(config.device),
        double=bool(header["double"]),
        gaps=regressor.takes_gaps,
        starts=config.starts,
        long=long,
    )
    return model, points_from_plain(header["points"])
