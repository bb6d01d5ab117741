"""The models that a fit trained beside the explained one, of classes or of numbers, as arrays and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from sparcets.classifiers.base import Model
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.classifiers.torch_regressor import TorchRegressor
from sparcets.errors import CapabilityError
from sparcets.explainers.sparcets.families.classifier import FamilyClassifier
from sparcets.explainers.sparcets.families.regressor import FamilyRegressor
from sparcets.explainers.sparcets.operating_point import OperatingPoint
from sparcets.training.device import resolve_device

Arrays = dict[str, np.ndarray[Any, Any]]
Network = TypeVar("Network", TorchClassifier, TorchRegressor)
Family = TypeVar("Family", FamilyClassifier, FamilyRegressor)


@dataclass(frozen=True, eq=False)
class Members(Generic[Network, Family]):
    """What was trained.

    Attributes
    ----------
    surrogate
        That of a black box or of long series, or none.
    networks, families
        Models that answers are optimised against.
    judge_networks, judges
        Models that they are chosen by.
    """

    surrogate: Sequence[Network]
    networks: Sequence[Network]
    families: Sequence[Family]
    judge_networks: Sequence[Network]
    judges: Sequence[Family]

    def header(self) -> dict[str, Any]:
        """Return what is not an array, as plain values."""
        return {
            "networks": [_header(net) for net in (*self.surrogate, *self.networks, *self.judge_networks)],
            "families": [family.family for family in (*self.families, *self.judges)],
            # How many of each are the surrogate's, members, and the selector's.
            "counts": [len(self.surrogate), len(self.networks), len(self.families)],
        }

    def to_arrays(self) -> Arrays:
        """Return the arrays by name."""
        arrays: Arrays = {}
        for i, net in enumerate((*self.surrogate, *self.networks, *self.judge_networks)):
            arrays |= to_arrays(f"network {i}", net.weights())
        for i, family in enumerate((*self.families, *self.judges)):
            arrays |= {f"family {i}/{name}": array for name, array in family.to_arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, np.ndarray[Any, Any]],
        header: Mapping[str, Any],
        network: type[Network],
        family: type[Family],
        *,
        device: str,
    ) -> Members[Network, Family]:
        """Build from :meth:`to_arrays` and :meth:`header`, given the classes of networks and families."""
        networks = [
            network.rebuild(part, tensors_of(arrays, f"network {i}"), device=device)
            for i, part in enumerate(header["networks"])
        ]
        families = [
            family.from_arrays(name, part_of(arrays, f"family {i}")).to(resolve_device(device))
            for i, name in enumerate(header["families"])
        ]
        n_surrogates, n_networks, n_families = header["counts"]
        surrogate, others = networks[:n_surrogates], networks[n_surrogates:]
        return cls(surrogate, others[:n_networks], families[:n_families], others[n_networks:], families[n_families:])

    def explained(self, model: Model, *, gradients: bool) -> Any:
        """Return the explained model if it has the gradients that are needed, otherwise its surrogate."""
        if gradients:
            return model
        if not self.surrogate:
            raise CapabilityError(
                f"this Explainer was fitted with the gradients of its model; {model.name} is a black box. Load it with "
                "the nn.Module it was fitted with: sp.load(folder, sp.wrap(module))."
            )
        return self.surrogate[0]


def _header(member: TorchClassifier | TorchRegressor) -> dict[str, Any]:
    """Return the header of a network without its device, which is chosen anew when a model is loaded."""
    header = member.header()
    return {**header, "config": {**header["config"], "device": "auto"}}


def points_to_plain(points: Sequence[OperatingPoint]) -> list[list[float]]:
    """Return operating points as plain values."""
    return [[p.log_sparsity_weight, p.residual_scale, p.valid, p.transfer, p.changed] for p in points]


def points_from_plain(values: Any) -> tuple[OperatingPoint, ...]:
    """Return the operating points that :func:`points_to_plain` wrote."""
    return tuple(OperatingPoint(*point) for point in values)


def to_arrays(prefix: str, state: Mapping[str, Tensor]) -> Arrays:
    """Return tensors as arrays, by names with a prefix."""
    return {f"{prefix}/{name}": t.detach().cpu().contiguous().numpy() for name, t in state.items()}


def tensors_of(arrays: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> dict[str, Tensor]:
    """Return the arrays of a prefix as tensors, by their names without it."""
    return {name: torch.tensor(array) for name, array in part_of(arrays, prefix).items()}


def part_of(arrays: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> Arrays:
    """Return the arrays of a prefix, by their names without it."""
    start = f"{prefix}/"
    return {name.removeprefix(start): np.array(a) for name, a in arrays.items() if name.startswith(start)}
