"""FittedModel: what a fit of our own method leaves behind; NumberModel: what one to a regressor does.

The families, the networks and the selector of a regressor are regressors. A target makes two classes of them all,
within it and beyond; the search, the choice between answers and the curve work on these as they do on any classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.evidence import REAL, PlausibilityReference
from sparcets.core.info import Outcome, SeriesInfo
from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.core.settings import ExplainerConfig
from sparcets.core.target import is_within
from sparcets.methods.own.discriminator import Discriminators
from sparcets.methods.own.ensemble import (
    LEVEL_SERIES,
    MAX_LEVEL,
    NEURAL,
    Belief,
    Ensemble,
    Members,
    Selector,
    standardised,
)
from sparcets.methods.own.family import BATCH as FAMILY_BATCH
from sparcets.methods.own.family import FamilyWithin, by_length
from sparcets.methods.own.generator import GatedGenerator
from sparcets.methods.own.prototypes import MAX_ENTRIES, NEAREST, PER_CLASS, Prototypes
from sparcets.methods.own.space import EditSpace
from sparcets.methods.request import FitJob
from sparcets.models.base import Regressor
from sparcets.models.views import WITHIN, Goal, Within
from sparcets.training.device import resolve_device, threads_for, with_double_precision

if TYPE_CHECKING:
    from sparcets.methods.own.grid import LongSeries

CPU_BATCH = 32  # series per pass on a CPU: the states of more do not fit into its caches


@dataclass(frozen=True, eq=False)
class FittedModel:
    """Ensemble and prototypes; all series here are standardised unless stated otherwise.

    Attributes
    ----------
    ensemble
        The classifiers that answers must convince.
    prototypes
        Real series of each class.
    reference
        Real series that answers are compared with.
    space
        What edits act on.
    prices
        Of each edit, and of visible changes of all entries.
    generator
        Proposes starts of the search, or None where real series alone do.
    long
        How answers are carried to whole series, where all of the above belongs to averages of neighbouring steps.
    """

    ensemble: Ensemble
    prototypes: Prototypes
    reference: PlausibilityReference
    space: EditSpace
    prices: tuple[float, float]
    generator: GatedGenerator | None = None
    long: LongSeries | None = None

    @property
    def device(self) -> torch.device:
        """Device of the ensemble."""
        return self.ensemble.device

    @property
    def members(self) -> Members:
        """All that was trained."""
        ensemble, selector = self.ensemble, self.ensemble.selector
        judges: Any = selector.judges  # as they were trained: views of regressors are for one target only
        families: Any = ensemble.families
        known = tuple(one for one in (ensemble.discriminators, selector.discriminators) if one is not None)
        return Members(ensemble.explained, ensemble.networks, families, selector.networks, judges, known)

    def with_discriminators(self, own: Discriminators, judges: Discriminators) -> FittedModel:
        """Return the same model with discriminators of the ensemble and of the selector."""
        selector = replace(self.ensemble.selector, discriminators=judges)
        return replace(self, ensemble=replace(self.ensemble, discriminators=own, selector=selector))

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

    def believe(self, series: Series, target: IntArray) -> Belief:
        """Return what the selector says of series in the data's own units."""
        parts, order = [], []
        if self.long is not None:
            series = self.long.grid.at_length(series.n_steps).average(series)
        for rows, part in series.by_length():
            ensemble = self.ensemble if part is series else self.ensemble.at_length(part.n_steps, of=self.n_steps)
            wanted = torch.as_tensor(target[rows], device=self.device)
            parts.append(ensemble.believe(ensemble.standardise(part.values), wanted))
            order.append(rows)
        return Belief.join(parts).select(torch.as_tensor(np.argsort(np.concatenate(order)), device=self.device))


MIN_SPREAD = 0.1  # smallest spread of the explained model, in standard deviations of the labels


@dataclass(frozen=True, eq=False)
class NumberModel:
    """Regressors of several families, and real series with their numbers.

    Attributes
    ----------
    members, spread
        All that was trained; and by how much the numbers of the explained regressor are off (outputs,).
    examples, example_labels
        Standardised numbers of some real series by every head (heads, series, outputs), and their labels (series,
        outputs).
    prototypes, prototype_numbers
        Real series, all of class 0; their labels and predictions (2, n, outputs).
    reference, reference_numbers
        Real series that answers are compared with; their labels and predictions.
    info
        Names, units and scale of the data.
    device, double, gaps
        As of an :class:`Ensemble`.
    space
        What edits act on.
    prices
        Of each edit, and of visible changes of all entries.
    long, long_numbers
        Where the above belongs to averages of long series: how answers are carried to whole ones, with whole real
        series, and the labels and predictions of these.
    """

    members: Members
    spread: FloatArray
    examples: FloatArray
    example_labels: FloatArray
    prototypes: Prototypes
    prototype_numbers: FloatArray
    reference: PlausibilityReference
    reference_numbers: FloatArray
    info: SeriesInfo
    device: torch.device
    double: bool
    space: EditSpace
    prices: tuple[float, float]
    gaps: bool = False
    long: LongSeries | None = None
    long_numbers: FloatArray | None = None

    @property
    def outcome(self) -> Outcome:
        """What the numbers are."""
        return self.info.numbers

    @property
    def family_names(self) -> tuple[str, ...]:
        """Names of the families that answers are chosen by."""
        judges = (judge.family for judge in self.members.judges)
        return (
            *((NEURAL,) if self.members.judge_networks else ()),
            *judges,
            *[REAL][: len(self.members.discriminators)],
        )

    def within(self, goal: Goal) -> FittedModel:
        """Return what was fitted for the two classes of a goal."""
        scale, members = self.outcome.scale, self.members
        standard = Goal((goal.bounds - self.outcome.center[:, None]) / scale[:, None], goal.names)

        def of_network(net: Any) -> Within:
            spread = np.maximum(net.error_, MIN_SPREAD) * scale
            return Within(net, goal.widened(spread), spread)

        ensemble = Ensemble(
            explained=Within(members.explained, goal, self.spread),
            networks=[of_network(net) for net in members.networks],
            families=[FamilyWithin(family, standard) for family in members.families],
            levels=self._levels(goal, standard),
            explained_accuracy=np.nan,
            # A linear model of numbers is in doubt as often as others: no family needs a larger lead.
            selector=Selector(
                networks=[of_network(net) for net in members.judge_networks],
                judges=[FamilyWithin(judge, standard) for judge in members.judges],
                gaps=self.gaps,
                leads={REAL: 0.0},
            ),
            scaler=self.info.scaler,
            device=self.device,
            double=self.double,
        )
        inside = is_within(self.reference_numbers[0], goal.bounds) & is_within(self.reference_numbers[1], goal.bounds)
        long = self.long
        if long is not None and self.long_numbers is not None:
            long = replace(long, prototypes=self._restricted(long.prototypes, self.long_numbers, goal))
        model = FittedModel(
            ensemble=ensemble,
            prototypes=self._restricted(self.prototypes, self.prototype_numbers, goal),
            reference=self.reference.restricted(np.flatnonzero(inside)),
            space=self.space,
            prices=self.prices,
            long=long,
        )
        return model.with_discriminators(*members.discriminators) if members.discriminators else model

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
        return prototypes.select(rows, np.full(len(rows), WITHIN, dtype=np.int64))

    def _levels(self, goal: Goal, standard: Goal) -> torch.Tensor:
        """Return the median probability that each head gives to real series within a goal (heads, 2), bounded."""
        scale, levels = self.outcome.scale, torch.full((len(self.examples), 2), 0.5)
        inside = is_within(self.example_labels, goal.bounds)
        if inside.any():
            errors = [np.full(len(scale), max(net.error_, MIN_SPREAD)) for net in self.members.networks]
            spreads = [self.spread / scale, *errors]
            for family in self.members.families:
                spreads += [FamilyWithin(family, standard).spread] * family.n_heads
            for k, spread in enumerate(spreads):
                asked = standard if k == 0 else standard.widened(spread)
                depth = asked.depth(torch.as_tensor(self.examples[k][inside]), spread)
                levels[k, WITHIN] = torch.sigmoid(depth).median().float()
        return levels.clamp(0.5, MAX_LEVEL).to(self.device)


REFERENCES = 1500  # real series that answers are compared with


def fit_number_model(
    job: FitJob, rows: IntArray, regressor: Regressor, config: ExplainerConfig, seed: int
) -> NumberModel:
    """Fit the regressors of all families and, for a black box, the surrogate, and choose real series.

    Parameters
    ----------
    job, rows
        The fit, and the rows of its series to train on.
    regressor
        The explained one.
    config
        Families, noise, device.
    seed
        Of all trainings.
    """
    config = with_double_precision(config)
    members = Members.train(job, rows, regressor, config, seed)
    known = rows[np.linspace(0, len(rows) - 1, min(len(rows), LEVEL_SERIES)).astype(np.int64)]
    outcome, labels, series = job.info.numbers, job.numbers, job.series[known]
    device = resolve_device(config.device)
    by_network = [net.outputs_unchecked(series) for net in (members.explained, *members.networks)]
    error = np.sqrt(((by_network[0] - labels[known]) ** 2).mean(0))
    x = standardised(series, job.info.scaler, gaps=regressor.takes_gaps)

    @torch.no_grad()
    def by_heads(family: Any) -> FloatArray:
        """Return the standardised numbers by every head of a family (heads, series, outputs)."""

        def ask(part: Series) -> Tensor:
            own = family.at_length(part.n_steps, job.series.n_steps)
            values = torch.as_tensor(part.values, device=device)
            return torch.cat([own(some).double().cpu() for some in torch.split(values, FAMILY_BATCH)], 1)

        with threads_for(x.values[:FAMILY_BATCH].size):
            return np.asarray(by_length(x, ask, dim=1))

    first = (np.stack(by_network) - outcome.center) / outcome.scale
    return NumberModel(
        members=members,
        spread=np.clip(error, MIN_SPREAD * outcome.scale, outcome.scale),
        examples=np.concatenate([first, *(by_heads(one) for one in members.families)]),
        example_labels=labels[known],
        info=job.info,
        device=device,
        double=job.X.dtype == np.float64,
        gaps=regressor.takes_gaps,
        space=EditSpace.fit(job, config, seed),
        prices=(config.edit_price, config.change_price),
        **real_series(job, regressor, seed),
    )


def real_series(job: FitJob, regressor: Regressor, seed: int) -> dict[str, Any]:
    """Return the prototypes and the reference of a :class:`NumberModel`, with their numbers.

    Prototypes are drawn at random; references come from the whole range of the first number, so that every target has
    some.
    """
    both = np.stack([job.numbers, regressor.outputs_unchecked(job.series)])
    kept = max(PER_CLASS, MAX_ENTRIES // job.X[0].size)
    rows = np.sort(generator(seed, "prototypes of numbers").permutation(len(job))[:kept])
    order = np.argsort(job.numbers[:, 0], kind="stable")
    references = order[np.unique(np.linspace(0, len(order) - 1, REFERENCES).round().astype(np.int64))]
    return {
        "prototypes": Prototypes(job.series[rows], np.zeros(len(rows), dtype=np.int64), rows, job.info.scaler),
        "prototype_numbers": both[:, rows],
        "reference": PlausibilityReference.fit(job.series, job.y, job.info, rows=references),
        "reference_numbers": both[:, references],
    }
