"""NumberModel: what a fit of our own method to a regressor leaves behind, and its view for one target.

The families, the networks and the selector are regressors here. A target makes two classes of them all, within it and
beyond; the search, the choice between answers and the curve work on these as they do on any classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import torch

from sparcets.core.arrays import BoolArray, FloatArray, IntArray
from sparcets.core.info import SeriesInfo
from sparcets.core.outcome import Outcome, is_within
from sparcets.core.progress import progress_bar
from sparcets.core.seeding import generator, spawn
from sparcets.core.series import fill_gaps, rows_by_length
from sparcets.core.settings import ExplainerConfig
from sparcets.methods.evidence import PlausibilityReference
from sparcets.methods.own.ensemble import (
    JUDGE,
    LEVEL_SERIES,
    MAX_LEVEL,
    MEMBER,
    NETWORK_CONFIG,
    NETWORK_STEPS,
    Ensemble,
)
from sparcets.methods.own.family import BATCH as FAMILY_BATCH
from sparcets.methods.own.family import FamilyRegressor, FamilyWithin, choose_series
from sparcets.methods.own.grid import LongSeries
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.prototypes import MAX_ENTRIES, NEAREST, PER_CLASS, STARTS, Prototypes
from sparcets.methods.own.selector import NEURAL, Selector
from sparcets.methods.own.surrogate import distill_numbers
from sparcets.methods.request import FitJob
from sparcets.models.base import Regressor
from sparcets.models.network import TorchRegressor
from sparcets.models.views import WITHIN, Goal, Within
from sparcets.training.device import resolve_device, threads_for, with_double_precision

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

    explained: Regressor
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

        def of_network(net: TorchRegressor) -> Within:
            spread = np.maximum(net.error_, MIN_SPREAD) * scale
            return Within(net, goal.widened(spread), spread)

        ensemble = Ensemble(
            explained=Within(self.explained, goal, self.spread),
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


REFERENCES = 1500  # real series that answers are compared with


def fit_number_model(
    job: FitJob, rows: IntArray, regressor: Regressor, config: ExplainerConfig, seed: int
) -> NumberModel:
    """Fit the regressors of all families and, for a black box, the surrogate, and choose real series.

    A regressor that is no better than always predicting the mean is left out.

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
    info, numbers, outcome = job.info, job.numbers, job.info.outcome
    assert numbers is not None
    assert outcome is not None
    config = replace(config, device=with_double_precision(config.device, "sp.Explainer"))
    device, gaps = resolve_device(config.device), regressor.takes_gaps
    X, y, lengths = job.X[rows], numbers[rows], job.steps(rows)
    x = _standardised(job, rows, gaps=gaps, device=device)
    z = (y - outcome.center) / outcome.scale
    names = () if config.believed_by == "model" else config.families

    def network(role: str, architecture: str, noise: float) -> list[TorchRegressor]:
        if NEURAL not in names:
            return []
        some = choose_series(np.zeros_like(rows), spawn(seed, role), config.max_series)
        settings = NETWORK_CONFIG.sized(len(some), steps=NETWORK_STEPS)
        settings = replace(settings, noise=noise, device=config.device, seed=spawn(seed, role))
        settings = replace(settings, patience=max(1, settings.epochs // 2), missing="forward" if gaps else "refuse")
        net = TorchRegressor(architecture, settings)
        own = None if lengths is None else lengths[some]
        net.fit_unchecked(X[some], y[some], own, progress=False, subjects=job.subjects_of(rows[some]))
        return [net] if net.error_ < 1 else []

    others = [name for name in names if name != NEURAL]
    with progress_bar("fitting models of other kinds", 2 * len(others) + 1, show=job.progress) as bar:

        def fit(role: str, family: str) -> FamilyRegressor:
            some = choose_series(np.zeros_like(rows), spawn(seed, f"{role} {family}"), config.max_series)
            make = FamilyRegressor.fit_member if role == "member" else FamilyRegressor.fit_judge
            series = x[torch.as_tensor(some, device=device)]
            made = make(
                family,
                series,
                z[some],
                spawn(seed, f"{role} {family}"),
                scale=info.scaler.scale,
                lengths=None if lengths is None else lengths[some],
            )
            bar.advance(1, family)
            return made

        def fit_all() -> tuple[list[FamilyRegressor], list[FamilyRegressor]]:
            with threads_for(x[:FAMILY_BATCH].numel()):
                members = [one for one in (fit("member", name) for name in others) if one.accuracy > 0]
                return members, [fit("judge", one.family) for one in members]

        # Families are fitted in closed form on one core, while the networks are trained on another.
        with ThreadPoolExecutor(1) as worker:
            fitted = worker.submit(fit_all)
            networks, judging = network("member", MEMBER, config.noise), network("judge", JUDGE, 0.0)
            members, judges = fitted.result()
        explained = regressor
        if not explained.differentiable:
            bar.advance(0, "surrogate")
            explained = distill_numbers(
                regressor,
                X,
                lengths=lengths,
                subjects=job.subjects_of(rows),
                seed=spawn(seed, "student"),
                device=config.device,
                progress=job.progress,
            )
        bar.advance()
    both = np.stack([numbers, regressor.outputs_unchecked(job.X, job.lengths)])
    known = np.linspace(0, len(rows) - 1, min(len(rows), LEVEL_SERIES)).astype(np.int64)
    steps = None if lengths is None else lengths[known]
    by_network = [net.outputs_unchecked(X[known], steps) for net in (explained, *networks)]
    error = np.sqrt(((by_network[0] - y[known]) ** 2).mean(0))
    prototypes, references = choose_prototypes(job, seed), choose_references(numbers)
    return NumberModel(
        explained=explained,
        spread=np.clip(error, MIN_SPREAD * outcome.scale, outcome.scale),
        networks=networks,
        families=members,
        judge_networks=judging,
        judges=judges,
        examples=np.concatenate(
            [
                (np.stack(by_network) - outcome.center) / outcome.scale,
                *(_by_heads(one, x[known], steps) for one in members),
            ]
        ),
        example_labels=y[known],
        prototypes=_standardised(job, prototypes, gaps=gaps, device=torch.device("cpu")).numpy(),
        prototype_numbers=both[:, prototypes],
        reference=PlausibilityReference.fit(job.X, job.y, info, lengths=job.lengths, rows=references),
        reference_numbers=both[:, references],
        info=info,
        device=device,
        double=job.X.dtype == np.float64,
        gaps=gaps,
        starts=config.starts,
        prototype_lengths=job.steps(prototypes),
    )


def choose_prototypes(job: FitJob, seed: int) -> IntArray:
    """Return the rows of real series that the search may start from, at random."""
    kept = max(PER_CLASS, MAX_ENTRIES // job.X[0].size)
    return np.sort(generator(seed, "prototypes of numbers").permutation(len(job.X))[:kept])


def choose_references(numbers: FloatArray) -> IntArray:
    """Return the rows of real series that answers are compared with, from the whole range of the first number.

    So every target has some.
    """
    order = np.argsort(numbers[:, 0], kind="stable")
    return np.asarray(order[np.unique(np.linspace(0, len(order) - 1, REFERENCES).round().astype(np.int64))])


def _standardised(job: FitJob, rows: IntArray, *, gaps: bool, device: torch.device) -> torch.Tensor:
    """Return series of a fit, standardised and without gaps."""
    x = job.info.scaler.transform(job.X[rows]).astype(np.float32)
    filled = fill_gaps(x, lengths=job.steps(rows), otherwise=0.0) if gaps else x
    return torch.as_tensor(filled, device=device)


@torch.no_grad()
def _by_heads(family: FamilyRegressor, x: torch.Tensor, lengths: IntArray | None) -> FloatArray:
    """Return the standardised numbers of standardised series by every head (heads, series, outputs)."""
    whole = x.shape[1]
    groups = [(whole, np.arange(len(x)))] if lengths is None else rows_by_length(lengths)
    with threads_for(x[:FAMILY_BATCH].numel()):
        parts = []
        for n_steps, rows in groups:
            model = family if n_steps == whole else family.at_length(n_steps, whole)
            series = x[torch.as_tensor(rows, device=x.device), :n_steps]
            parts += [model(part).double().cpu().numpy() for part in torch.split(series, FAMILY_BATCH)]
    order = np.argsort(np.concatenate([rows for _, rows in groups]))
    return np.asarray(np.concatenate(parts, axis=1)[:, order])
