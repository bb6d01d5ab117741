"""A fitted model as arrays, and back; what is not an array is stored as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import numpy as np
import safetensors
import safetensors.numpy
import torch
from torch import Tensor

from sparcets.core.arrays import FloatArray
from sparcets.core.errors import CapabilityError, FileFormatError
from sparcets.core.info import SeriesInfo
from sparcets.core.settings import ExplainerConfig
from sparcets.io.files import MALFORMED
from sparcets.io.folders import SavedModel
from sparcets.methods.adversarial import REFERENCE
from sparcets.methods.base import BaseExplainer
from sparcets.methods.evidence import PlausibilityReference
from sparcets.methods.own.ensemble import Ensemble
from sparcets.methods.own.family import FamilyClassifier, FamilyRegressor
from sparcets.methods.own.generator import GatedGenerator
from sparcets.methods.own.grid import LongSeries
from sparcets.methods.own.model import FittedModel, build_generator
from sparcets.methods.own.operating_point import OperatingPoint
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.own.regression import NumberModel
from sparcets.methods.own.selector import Selector
from sparcets.methods.request import FitJob
from sparcets.models.base import Classifier, Model, Regressor
from sparcets.models.network import TorchClassifier, TorchRegressor
from sparcets.training.checkpoint import agree
from sparcets.training.device import resolve_device, with_double_precision
from sparcets.training.loop import history_from_plain, history_to_plain
from sparcets.training.networks import check_sizes

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
    gradients = classifier.differentiable and long is None
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
    gradients = regressor.differentiable and long is None
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


FILES = SavedModel(header="finished.json", arrays="finished.safetensors", what="finished fit")
PROBA = "reference_proba"
DAMAGE: tuple[type[Exception], ...] = (*MALFORMED, safetensors.SafetensorError)


def fit_unless_finished(explainer: BaseExplainer[Any], job: FitJob, identity: str, fit: Callable[[], None]) -> None:
    """Fit an explainer, or read what the same fit left in the folder of its checkpoint when it was finished.

    Parameters
    ----------
    explainer
        Not fitted yet.
    job
        What to fit it to, with a folder for checkpoints.
    identity
        Digest of the training (settings, data).
    fit
        Fits it.
    """
    assert job.checkpoint is not None
    proba = explainer.classifier.outputs_unchecked(*job.first(REFERENCE))
    finished = _read(job.checkpoint, identity, proba)
    if finished is None:
        fit()
        arrays = {name: np.asarray(array, order="C") for name, array in explainer._state().items()}
        header = {"identity": identity, "history": history_to_plain(explainer.history_)}
        FILES.save(job.checkpoint, header, safetensors.numpy.save({**arrays, PROBA: proba}), private=True)
    else:
        state, explainer.history_ = finished
        explainer._restore(state, job.info)


def _read(folder: Path, identity: str, proba: FloatArray) -> tuple[dict[str, Any], dict[str, list[float]]] | None:
    """Return state and history of the finished fit of this identity and classifier, or None."""
    if not (folder / FILES.header).exists():
        return None
    try:
        header, content = FILES.load(folder, lambda header: None)
        state = safetensors.numpy.load(content)
        stored, history = state.pop(PROBA), history_from_plain(header["history"])
        fits = header["identity"] == identity and agree(torch.as_tensor(stored), torch.as_tensor(proba))
    except FileFormatError:
        raise
    except DAMAGE as error:
        raise FileFormatError(f"{folder / FILES.header} is damaged: {error!r}. Remove it.") from error
    return (state, history) if fits else None
