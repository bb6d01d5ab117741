"""FittedModel: what a fit of our own method leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sparcets.arrays import IntArray
from sparcets.config.explainers import ExplainerConfig
from sparcets.explainers.sparcets.ensemble import Ensemble
from sparcets.explainers.sparcets.generator import GatedGenerator
from sparcets.explainers.sparcets.prototypes import Prototypes
from sparcets.explainers.sparcets.prune import drop_negligible, prune
from sparcets.explanation.series_info import SeriesInfo

CPU_BATCH = 32  # series per pass on a CPU: the states of more do not fit into its caches


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Generator, ensemble and prototypes; all series here are standardised unless stated otherwise.

    Attributes
    ----------
    generator
        The averaged generator.
    ensemble
        The classifiers that answers must convince.
    prototypes
        Real series of each class.
    log_sparsity_weights
        Logarithms of the sparsity weights that are tried, from the smallest to the largest.
    residual_scales
        Factors of the residuals that are tried: residuals stop near the decision boundary, larger ones transfer better.
    min_agreement
        Agreement (least probability of the target over all members) that is kept while an answer is pruned.
    """

    generator: GatedGenerator
    ensemble: Ensemble
    prototypes: Prototypes
    log_sparsity_weights: tuple[float, ...]
    residual_scales: tuple[float, ...]
    min_agreement: float

    @property
    def device(self) -> torch.device:
        """Device of the generator."""
        return self.ensemble.device

    @torch.no_grad()
    def propose(self, x: Tensor, target: Tensor, log_weight: float, prototype: Tensor | None = None) -> Tensor:
        """Return the generator's residuals (batch, time, features)."""
        if len(x) == 1:  # convolutions of a single series differ in the last bits; two are computed like many
            pair = None if prototype is None else prototype.expand(2, -1, -1)
            return self.propose(x.expand(2, -1, -1), target.expand(2), log_weight, pair)[:1]
        if x.device.type == "cpu" and len(x) > CPU_BATCH:
            parts = [slice(start, start + CPU_BATCH) for start in range(0, len(x), CPU_BATCH)]
            own = [None if prototype is None else prototype[part] for part in parts]
            return torch.cat([self.propose(x[p], target[p], log_weight, g) for p, g in zip(parts, own, strict=True)])
        weights = torch.full((len(x),), log_weight, device=x.device)
        residual: Tensor = self.generator(x, target, weights, prototype)
        return residual

    def nearest_prototype(self, x: Tensor, target: IntArray) -> Tensor | None:
        """Return the nearest prototype of each query (batch, time, features); None if the generator uses none."""
        if not self.generator.uses_prototype:
            return None
        return self.prototypes.select(self.prototypes.nearest(x, target, 1)[:, 0], x)

    def prune(self, x: Tensor, delta: Tensor, target: Tensor, at_most: Tensor | None = None) -> Tensor:
        """Return residuals with the fewest changes that keep the agreement, and at most ``at_most`` of them."""

        def agreement(candidates: Tensor, required: Tensor | None) -> Tensor:  # (k * batch, time, features)
            k = len(candidates) // len(x)
            return self.ensemble.agreement(x.repeat(k, 1, 1) + candidates, target.repeat(k), required)

        return prune(drop_negligible(delta), agreement, self.min_agreement, at_most)


def build_generator(
    config: ExplainerConfig, info: SeriesInfo, mutable: list[int], *, hidden: int, layers: int, uses_prototype: bool
) -> GatedGenerator:
    """Return an untrained generator for data like these."""
    return GatedGenerator(
        n_features=info.n_features,
        mutable=mutable,
        n_targets=info.n_classes,
        backbone=config.generator.backbone,
        hidden=hidden,
        layers=layers,
        gate=config.gate,
        uses_prototype=uses_prototype,
    )
