"""NumberModel: what a fit of our own method to a regressor leaves behind, and its view for one target.

The families, the networks and the selector are regressors here. A target makes two classes of them all, within it and
beyond; the search, the choice between answers and the curve work on these as they do on any classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.classifiers.regressor import DifferentiableRegressor
from sparcets.classifiers.torch_regressor import TorchRegressor
from sparcets.classifiers.within import WITHIN, DifferentiableWithin, Goal
from sparcets.explainers.sparcets.ensemble import MAX_LEVEL, Ensemble
from sparcets.explainers.sparcets.families.regressor import FamilyRegressor, FamilyWithin
from sparcets.explainers.sparcets.grid import LongSeries
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explainers.sparcets.prototypes import NEAREST, STARTS, Prototypes
from sparcets.explainers.sparcets.selector import NEURAL, Selector
from sparcets.explanation.numbers import is_within
from sparcets.explanation.outcome import Outcome
from sparcets.explanation.plausibility import PlausibilityReference
from sparcets.explanation.series_info import SeriesInfo

MIN_SPREAD = 0.1  # smallest spread of the explained model, in standard deviations of the labels


@dataclass(frozen=True, eq=False)
class NumberModel:
    """Regressors of several families, and real series with their numbers.

    Attributes
    ----------
    explained, spread
        The explained regressor, or the surrogate of a black box; and by how much its numbers are off (outputs,).
    networks, families
        That answers are optimised against.
    judge_networks, judges
        That answers are chosen by.
    examples, example_labels
        Standardised numbers of some real series by every head (heads, series, outputs), and their labels (series,
        outputs).
    prototypes, prototype_numbers, prototype_lengths
        Real series (n, time, features), standardised and without gaps; their labels and predictions (2, n, outputs);
        and their true lengths, or None.
    reference, reference_numbers
        Real series that answers are compared with; their labels and predictions.
    info
        Names, units and scale of the data.
    device, double, gaps
        As of an :class:`Ensemble`.
    starts
        Real series that a search starts from.
    long, long_numbers
        Where the above belongs to averages of long series: how answers are carried to whole ones, with whole real
        series, and the labels and predictions of these.
    """

    explained: DifferentiableRegressor
    spread: FloatArray
    networks: Sequence[TorchRegressor]
    families: Sequence[FamilyRegressor]
    judge_networks: Sequence[TorchRegressor]
    judges: Sequence[FamilyRegressor]
    examples: FloatArray
    example_labels: FloatArray
    prototypes: FloatArray
    prototype_numbers: FloatArray
    reference: PlausibilityReference
    reference_numbers: FloatArray
    info: SeriesInfo
    device: torch.device
    double: bool
    gaps: bool = False
    starts: int = STARTS
    prototype_lengths: IntArray | None = None
    long: LongSeries | None = None
    long_numbers: FloatArray | None = None

    @property
    def outcome(self) -> Outcome:
        """What the numbers are."""
        assert self.info.outcome is not None
        return self.info.outcome

    @property
    def family_names(self) -> tuple[str, ...]:
        """Names of the families that answers are chosen by."""
        return ((NEURAL,) if self.judge_networks else ()) + tuple(judge.family for judge in self.judges)

    def within(self, goal: Goal) -> FittedModel:
        """Return what was fitted for the two classes of a goal."""
        scale = self.outcome.scale
        standard = Goal((goal.bounds - self.outcome.center[:, None]) / scale[:, None], goal.names)

        def of_network(net: TorchRegressor) -> DifferentiableWithin:
            spread = np.maximum(net.error_, MIN_SPREAD) * scale
            return DifferentiableWithin(net, goal.widened(spread), spread)

        ensemble = Ensemble(
            explained=DifferentiableWithin(self.explained, goal, self.spread),
            networks=[of_network(net) for net in self.networks],
            families=[FamilyWithin(family, standard) for family in self.families],
            levels=self._levels(goal, standard),
            explained_accuracy=np.nan,
            # A linear model of numbers is in doubt as often as others: no family needs a larger lead.
            selector=Selector(
                networks=[of_network(net) for net in self.judge_networks],
                judges=[FamilyWithin(judge, standard) for judge in self.judges],
                gaps=self.gaps,
                larger_leads={},
            ),
            scaler=self.info.scaler,
            device=self.device,
            double=self.double,
        )
        inside = np.flatnonzero(_both_within(self.reference_numbers, goal))
        classes = np.zeros(len(self.prototypes), dtype=np.int64)
        every = Prototypes(self.prototypes, classes, self.prototype_lengths)
        return FittedModel(
            ensemble=ensemble,
            prototypes=self._restricted(every, self.prototype_numbers, goal),
            reference=self.reference.restricted(inside),
            generator=None,
            searches=True,
            log_sparsity_weights=(0.0,),
            residual_scales=(1.0,),
            starts=self.starts,
            long=self._long(goal),
        )

    def _long(self, goal: Goal) -> LongSeries | None:
        if self.long is None or self.long_numbers is None:
            return None
        return replace(self.long, prototypes=self._restricted(self.long.prototypes, self.long_numbers, goal))

    def _restricted(self, prototypes: Prototypes, numbers: FloatArray, goal: Goal) -> Prototypes:
        """Return the prototypes labelled and predicted within a goal; if there are few, also the closest to it.

        Parameters
        ----------
        prototypes, numbers
            All of them, and their labels and predictions (2, n, outputs).
        goal
            The numbers that count.
        """
        low, high = goal.bounds[:, 0], goal.bounds[:, 1]
        beyond = np.maximum(np.maximum(low - numbers, numbers - high), 0.0) / self.outcome.scale  # (2, n, outputs)
        distance = beyond.max((0, 2))
        few = min(NEAREST, len(distance))
        rows = np.flatnonzero(distance <= np.partition(distance, few - 1)[few - 1])
        lengths = None if prototypes.lengths is None else prototypes.lengths[rows]
        return Prototypes(prototypes.series[rows], np.full(len(rows), WITHIN, dtype=np.int64), lengths)

    def _levels(self, goal: Goal, standard: Goal) -> torch.Tensor:
        """Return the median probability that each head gives to real series within a goal (heads, 2), bounded."""
        scale, levels = self.outcome.scale, torch.full((len(self.examples), 2), 0.5)
        inside = is_within(self.example_labels, goal.bounds)
        if inside.any():
            spreads = [self.spread / scale] + [np.full(len(scale), max(n.error_, MIN_SPREAD)) for n in self.networks]
            for family in self.families:
                spreads += [family.spread.double().cpu().numpy()] * family.n_heads
            for k, spread in enumerate(spreads):
                asked = standard if k == 0 else standard.widened(spread)
                depth = asked.depth(torch.as_tensor(self.examples[k][inside]), spread)
                levels[k, WITHIN] = torch.sigmoid(depth).median().float()
        return levels.clamp(0.5, MAX_LEVEL).to(self.device)


def _both_within(numbers: FloatArray, goal: Goal) -> BoolArray:
    """Return whether labels and predictions (2, n, outputs) are within a goal (n,)."""
    return is_within(numbers[0], goal.bounds) & is_within(numbers[1], goal.bounds)
