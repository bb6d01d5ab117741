"""FittedModel: what a fit of our own method leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.info import SeriesInfo
from sparcets.core.series import rows_by_length
from sparcets.core.settings import ExplainerConfig
from sparcets.methods.evidence import PlausibilityReference
from sparcets.methods.own.ensemble import Ensemble
from sparcets.methods.own.generator import GatedGenerator
from sparcets.methods.own.grid import LongSeries
from sparcets.methods.own.prototypes import STARTS, Prototypes
from sparcets.methods.own.selector import Belief
from sparcets.training.device import single_precision

CPU_BATCH = 32  # series per pass on a CPU: the states of more do not fit into its caches


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Ensemble, prototypes and, for much data, a generator; all series here are standardised unless stated otherwise.

    Attributes
    ----------
    ensemble
        The classifiers that answers must convince.
    prototypes
        Real series of each class.
    reference
        Real series that answers are compared with.
    generator
        The averaged generator, or None where the search alone answers.
    searches
        Whether queries that the generator does not answer are searched.
    starts
        Real series that a search starts from.
    log_sparsity_weights
        Logarithms of the sparsity weights that are tried, from the smallest to the largest.
    residual_scales
        Factors of the residuals that are tried: residuals stop near the decision boundary, larger ones transfer better.
    long
        How answers are carried to whole series, where all of the above belongs to averages of neighbouring steps.
    """

    ensemble: Ensemble
    prototypes: Prototypes
    reference: PlausibilityReference
    generator: GatedGenerator | None
    searches: bool
    log_sparsity_weights: tuple[float, ...]
    residual_scales: tuple[float, ...]
    starts: int = STARTS
    long: LongSeries | None = None

    @property
    def device(self) -> torch.device:
        """Device of ensemble and generator."""
        return self.ensemble.device

    @property
    def family_names(self) -> tuple[str, ...]:
        """Names of the families that answers are chosen by."""
        return self.ensemble.selector.families

    @property
    def n_steps(self) -> int:
        """Number of steps, of long series that of averages, that the training series are padded to."""
        return self.reference.info.n_steps if self.long is None else self.long.grid.n_points

    def at_length(self, n_steps: int) -> FittedModel:
        """Return the same model for queries of ``n_steps`` steps without padding."""
        long = None if self.long is None else self.long.at_length(n_steps)
        seen = n_steps if long is None else long.grid.n_points
        ensemble = self.ensemble.at_length(seen, of=self.n_steps)
        prototypes = self.prototypes.at_length(seen)
        is_same = ensemble is self.ensemble and prototypes is self.prototypes and long is self.long
        return self if is_same else replace(self, ensemble=ensemble, prototypes=prototypes, long=long)

    def believe(self, X: FloatArray, target: IntArray, lengths: IntArray | None) -> Belief:
        """Return what the selector says of series in the data's own units, with their true lengths or None."""
        wanted = torch.as_tensor(target, device=self.device)
        if lengths is None:
            return self.ensemble.believe(self.ensemble.standardise(X), wanted)
        parts, order = [], []
        for n, rows in rows_by_length(lengths):
            ensemble = self.ensemble.at_length(n, of=self.n_steps)
            own = torch.as_tensor(rows, device=self.device)
            parts.append(ensemble.believe(ensemble.standardise(X[rows, :n]), wanted[own]))
            order.append(own)
        return Belief.join(parts).select(torch.cat(order).argsort())

    @torch.no_grad()
    def propose(self, x: Tensor, target: Tensor, log_weight: float) -> Tensor:
        """Return the generator's residuals (batch, time, features)."""
        if self.generator is None:
            raise ValueError("this model has no generator: its answers are searched")
        if len(x) == 1 and x.is_cuda:  # a single series differs in the last bits; two are computed like many
            return self.propose(x.expand(2, -1, -1), target.expand(2), log_weight)[:1]
        if x.device.type == "cpu" and len(x) > CPU_BATCH:
            parts = [slice(start, start + CPU_BATCH) for start in range(0, len(x), CPU_BATCH)]
            return torch.cat([self.propose(x[p], target[p], log_weight) for p in parts])
        weights = x.new_full((len(x),), log_weight)
        residual: Tensor = self.generator(x, target, weights)
        return residual

    def propose_each(self, x: Tensor, target: Tensor, log_weight: float) -> Tensor:
        """Return what :meth:`propose` returns, on a CPU from one pass for each query.

        In a pass over several series, the last bits depend on how many they are and on their order, and whether a gate
        is exactly shut, or a change negligible, depends on the last bits. So no query depends on the others.
        """
        if x.device.type != "cpu":
            return self.propose(x, target, log_weight)
        parts = [self.propose(x[i : i + 1], target[i : i + 1], log_weight) for i in range(len(x))]
        return torch.cat(parts) if parts else torch.zeros_like(x)


@single_precision()
def build_generator(
    config: ExplainerConfig, info: SeriesInfo, mutable: list[int], *, hidden: int, layers: int
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
    )
