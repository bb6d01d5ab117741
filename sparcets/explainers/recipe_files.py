"""A fitted recipe as arrays, and back; what is no array goes along as JSON in bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.config.explainers import SparceConfig
from sparcets.errors import CapabilityError
from sparcets.explainers.recipe import Recipe, build_generator
from sparcets.series_info import SeriesInfo
from sparcets.trade_off import Place
from sparcets.training.device import resolve_device

ABOUT = "about"


def recipe_to_arrays(
    recipe: Recipe, classifier: Classifier, places: Sequence[Place], silent: Sequence[str]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return all that makes a recipe but the user's own classifier."""
    own = [*(voice for voice in recipe.voices if voice is not classifier), recipe.referee]  # the referee comes last
    assert all(isinstance(voice, TorchClassifier) for voice in own)
    about = {
        "hidden": recipe.generator.hidden,
        "layers": recipe.generator.layers,
        "guided": recipe.generator.guided,
        "strengths": recipe.strengths,
        "louder": recipe.louder,
        "level": recipe.level,
        "double": recipe.double,
        "voices": [voice.header() for voice in own if isinstance(voice, TorchClassifier)],
        "places": [[p.strength, p.loudness, p.valid, p.transfer, p.changed] for p in places],
        "silent": list(silent),
    }
    arrays = {ABOUT: np.frombuffer(json.dumps(about).encode(), dtype=np.uint8).copy()}
    arrays |= {"guides": recipe.guides, "guide_class": recipe.guide_class}
    arrays |= _named("generator", recipe.generator.state_dict())
    for i, voice in enumerate(own):
        assert isinstance(voice, TorchClassifier)
        arrays |= _named(f"voice {i}", voice._fitted().state_dict())
    return arrays


def recipe_from_arrays(
    arrays: Mapping[str, np.ndarray[Any, Any]], classifier: Classifier, info: SeriesInfo, config: SparceConfig
) -> tuple[Recipe, tuple[Place, ...], tuple[str, ...]]:
    """Return recipe, trade-off and silent features of :func:`recipe_to_arrays`' output."""
    about = json.loads(arrays[ABOUT].tobytes().decode())
    weights = _part(arrays, "generator")
    generator = build_generator(
        config,
        info,
        weights["mutable"].nonzero()[:, 0].tolist(),
        hidden=int(about["hidden"]),
        layers=int(about["layers"]),
        guided=bool(about["guided"]),
    )
    generator.load_state_dict(weights)
    own: list[DifferentiableClassifier] = [
        TorchClassifier.rebuild(header, _part(arrays, f"voice {i}"), device=config.device)
        for i, header in enumerate(about["voices"])
    ]
    *voices, referee = own
    if isinstance(classifier, DifferentiableClassifier):
        voices.insert(0, classifier)
    if not voices:
        raise CapabilityError(
            f"this Sparce was fitted without witnesses, with the gradients of its classifier; {classifier.name} is a "
            "black box. Load it with the nn.Module it was fitted with: sp.load(folder, sp.wrap(module))."
        )
    recipe = Recipe(
        generator=generator.to(resolve_device(config.device)).eval().requires_grad_(False),
        voices=voices,
        referee=referee,
        guides=np.array(arrays["guides"]),
        guide_class=np.array(arrays["guide_class"]),
        strengths=tuple(about["strengths"]),
        louder=tuple(about["louder"]),
        level=float(about["level"]),
        scaler=info.scaler,
        double=bool(about["double"]),
    )
    return recipe, tuple(Place(*values) for values in about["places"]), tuple(about["silent"])


def _named(prefix: str, state: Mapping[str, Tensor]) -> dict[str, np.ndarray[Any, Any]]:
    return {f"{prefix}/{name}": t.detach().cpu().contiguous().numpy() for name, t in state.items()}


def _part(arrays: Mapping[str, np.ndarray[Any, Any]], prefix: str) -> dict[str, Tensor]:
    start = f"{prefix}/"
    return {name.removeprefix(start): torch.tensor(a) for name, a in arrays.items() if name.startswith(start)}
