"""A fitted model as arrays, and back; what is not an array is stored as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import numpy as np
import torch

from sparcets.core.errors import CapabilityError, FileFormatError
from sparcets.core.evidence import PlausibilityReference
from sparcets.core.info import SeriesInfo
from sparcets.core.series import FloatArray
from sparcets.core.settings import ExplainerConfig
from sparcets.io.files import to_plain
from sparcets.io.tensors import DAMAGE, Arrays, SavedModel
from sparcets.methods.adversarial import REFERENCE
from sparcets.methods.base import BaseExplainer
from sparcets.methods.own.discriminator import Discriminators
from sparcets.methods.own.ensemble import Ensemble, Members, Selector
from sparcets.methods.own.family import Family
from sparcets.methods.own.generator import GatedGenerator
from sparcets.methods.own.grid import LongSeries
from sparcets.methods.own.model import FittedModel, NumberModel
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.own.space import EditSpace
from sparcets.methods.request import FitJob
from sparcets.models.base import Model, Regressor
from sparcets.models.network import TorchClassifier, TorchRegressor
from sparcets.training.checkpoint import agree
from sparcets.training.device import resolve_device, with_double_precision
from sparcets.training.loop import history_from_plain

T = TypeVar("T")
HEADER = "header"


def with_prefix(prefix: str, arrays: Mapping[str, Any]) -> Arrays:
    """Return arrays or tensors as arrays, by names with a prefix."""
    return {
        f"{prefix}/{name}": a.detach().cpu().contiguous().numpy() if isinstance(a, torch.Tensor) else np.asarray(a)
        for name, a in arrays.items()
    }


def part_of(arrays: Mapping[str, Any], prefix: str) -> Arrays:
    """Return the arrays of a prefix, by their names without it."""
    start = f"{prefix}/"
    return {name.removeprefix(start): np.array(a) for name, a in arrays.items() if name.startswith(start)}


def record_to_arrays(record: Any) -> Arrays:
    """Return the arrays and numbers of a dataclass by name, those of one within it by path; None is left out.

    >>> from sparcets.core.series import Series
    >>> one = Series(np.ones((1, 1, 1)), np.ones(1))
    >>> {name: array.tolist() for name, array in record_to_arrays(one).items()}
    {'values': [[[1.0]]], 'lengths': [1.0]}
    """
    arrays: Arrays = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            arrays |= with_prefix(field.name, record_to_arrays(value))
        elif value is not None:
            arrays[field.name] = np.asarray(value)
    return arrays


def record_from_arrays(kind: type[T], arrays: Mapping[str, Any]) -> T:
    """Build a dataclass from the output of :func:`record_to_arrays`, by the types of its fields."""
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if is_dataclass(hint):
            values[name] = record_from_arrays(hint, part_of(arrays, name))  # type: ignore[arg-type]
        elif hint is int:
            values[name] = int(arrays[name])
        elif name in arrays:
            values[name] = np.array(arrays[name])
    return kind(**values)


def model_to_arrays(model: FittedModel | NumberModel, explained: Model) -> Arrays:
    """Return all that makes a fitted model except the user's own one, ``explained``."""
    members, own = model.members, model.members.explained
    surrogate = [own] if own is not explained and isinstance(own, (TorchClassifier, TorchRegressor)) else []
    networks = [*surrogate, *members.networks, *members.judge_networks]
    families = [*members.families, *members.judges]
    header: dict[str, Any] = {
        # Without its device, which is chosen anew when a model is loaded.
        "networks": [{**h, "config": {**h["config"], "device": "auto"}} for h in (net.header() for net in networks)],
        "families": [family.family for family in families],
        # How many of each are the surrogate's, members, and the selector's.
        "counts": [len(surrogate), len(members.networks), len(members.families)],
        "space": model.space.to_dict(),
    }
    arrays = with_prefix("prototypes", record_to_arrays(model.prototypes))
    arrays |= with_prefix("reference", model.reference.to_arrays())
    if model.long is not None:
        arrays |= with_prefix("long", record_to_arrays(model.long))
    for i, net in enumerate(networks):
        arrays |= with_prefix(f"network {i}", net.weights())
    for i, family in enumerate(families):
        arrays |= with_prefix(f"family {i}", family.to_arrays())
    for role, discriminators in zip(ROLES, members.discriminators, strict=False):
        arrays |= with_prefix(role, discriminators.to_arrays())
    if isinstance(model, FittedModel) and model.generator is not None:
        arrays |= with_prefix("generator", model.generator.state_dict())
    if isinstance(model, NumberModel):
        header["double"] = model.double
        arrays |= {name: value for name in NUMBERS if (value := getattr(model, name)) is not None}
    else:
        header |= {"double": model.ensemble.double, "explained_accuracy": model.ensemble.explained_accuracy}
        arrays["levels"] = model.ensemble.levels.cpu().numpy()
    return {HEADER: np.frombuffer(json.dumps(header).encode(), dtype=np.uint8).copy(), **arrays}


ROLES = ("discriminators of the ensemble", "discriminators of the selector")
NUMBERS = ("spread", "examples", "example_labels", "prototype_numbers", "reference_numbers", "long_numbers")


def model_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], explained: Model, info: SeriesInfo, config: ExplainerConfig
) -> FittedModel | NumberModel:
    """Return a fitted model from the output of :func:`model_to_arrays`."""
    header = json.loads(arrays[HEADER].tobytes().decode())
    config = with_double_precision(config)
    device = resolve_device(config.device)
    long_arrays = part_of(arrays, "long")
    long = record_from_arrays(LongSeries, long_arrays) if long_arrays else None
    members = _members(arrays, header, explained, config.device, is_long=long is not None)
    common: dict[str, Any] = {
        "prototypes": record_from_arrays(Prototypes, part_of(arrays, "prototypes")),
        "reference": PlausibilityReference.from_arrays(part_of(arrays, "reference"), info),
        "space": EditSpace.from_dict(header["space"]),
        "prices": (config.edit_price, config.change_price),
        "long": long,
    }
    double = bool(header["double"])
    common |= {name: np.array(arrays[name]) for name in NUMBERS if name in arrays}
    if info.task == "regression":
        return NumberModel(
            **common,
            members=members,
            info=info if long is None else long.info(info),
            device=device,
            double=double,
            gaps=explained.takes_gaps,
        )
    ensemble = Ensemble(
        explained=members.explained,
        networks=members.networks,
        families=members.families,
        levels=torch.tensor(arrays["levels"], device=device),
        explained_accuracy=float(header["explained_accuracy"]),
        selector=Selector(members.judge_networks, members.judges, gaps=explained.takes_gaps),
        scaler=info.scaler if long is None else long.scaler,
        device=device,
        double=double,
    )
    weights = {name: torch.tensor(array) for name, array in part_of(arrays, "generator").items()}
    proposer = GatedGenerator.from_weights(weights).to(device) if weights else None
    model = FittedModel(**common, ensemble=ensemble, generator=proposer)
    return model.with_discriminators(*members.discriminators) if members.discriminators else model


def _members(
    arrays: Mapping[str, Any], header: Mapping[str, Any], explained: Model, device: str, *, is_long: bool
) -> Members:
    """Return what was trained; the surrogate stands for the explained model where that has not the gradients needed."""
    kind = TorchClassifier if not isinstance(explained, Regressor) else TorchRegressor
    networks = []
    for i, part in enumerate(header["networks"]):
        weights = {name: torch.tensor(array) for name, array in part_of(arrays, f"network {i}").items()}
        networks.append(kind.rebuild(part, weights, device=device))
    families = [
        Family.from_arrays(name, part_of(arrays, f"family {i}")).to(resolve_device(device))
        for i, name in enumerate(header["families"])
    ]
    n_surrogates, n_networks, n_families = header["counts"]
    surrogate, networks = networks[:n_surrogates], networks[n_surrogates:]
    own: Any = explained
    if is_long or not explained.differentiable:
        if not surrogate:
            raise CapabilityError(
                f"this Explainer was fitted with the gradients of its model; {explained.name} is a black box. Load it "
                "with the nn.Module it was fitted with: sp.load(folder, sp.wrap(module))."
            )
        own = surrogate[0]
    discriminators = tuple(
        Discriminators.from_arrays(own_arrays).to(resolve_device(device))
        for role in ROLES
        if (own_arrays := part_of(arrays, role))
    )
    return Members(
        own, networks[:n_networks], families[:n_families], networks[n_networks:], families[n_families:], discriminators
    )


FILES = SavedModel(file="finished.safetensors", what="finished fit", format=1)
PROBA = "reference_proba"


def fit_unless_finished(explainer: BaseExplainer[Any], job: FitJob, identity: str, fit: Callable[[], None]) -> None:
    """Fit an explainer, or read what the same fit left in the folder of its checkpoint when it was finished.

    The same fit is one of the same ``identity``, a digest of settings and data.
    """
    assert job.checkpoint is not None
    proba = explainer.classifier.outputs_unchecked(job.series[:REFERENCE])
    finished = _read(job.checkpoint, identity, proba)
    if finished is None:
        fit()
        header = {"identity": identity, "history": to_plain(explainer.history_)}
        FILES.save(job.checkpoint, header, {**explainer._state(), PROBA: proba}, private=True)
    else:
        state, explainer.history_ = finished
        explainer._restore(state, job.info)


def _read(folder: Path, identity: str, proba: FloatArray) -> tuple[dict[str, Any], dict[str, list[float]]] | None:
    """Return state and history of the finished fit of this identity and classifier, or None."""
    if not (folder / FILES.file).exists():
        return None
    try:
        header, state = FILES.load(folder)
        stored, history = state.pop(PROBA), history_from_plain(header["history"])
        fits = header["identity"] == identity and agree(torch.as_tensor(stored), torch.as_tensor(proba))
    except FileFormatError:
        raise
    except DAMAGE as error:
        raise FileFormatError(f"{folder / FILES.file} is damaged: {error!r}. Remove it.") from error
    return (state, history) if fits else None
