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

from sparcets.arrays import BoolArray, FloatArray, IntArray
from sparcets.classifiers.regressor import DifferentiableRegressor, Regressor
from sparcets.classifiers.torch_regressor import TorchRegressor
from sparcets.classifiers.within import WITHIN, DifferentiableWithin, Goal
from sparcets.config.explainers import ExplainerConfig
from sparcets.explainers.request import FitJob
from sparcets.explainers.sparcets.ensemble import (
    JUDGE,
    LEVEL_SERIES,
    MAX_LEVEL,
    MEMBER,
    NETWORK_CONFIG,
    NETWORK_STEPS,
    Ensemble,
)
from sparcets.explainers.sparcets.families.classifier import BATCH as FAMILY_BATCH
from sparcets.explainers.sparcets.families.classifier import choose_series
from sparcets.explainers.sparcets.families.regressor import FamilyRegressor, FamilyWithin
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explainers.sparcets.prototypes import MAX_ENTRIES, NEAREST, PER_CLASS, Prototypes
from sparcets.explainers.sparcets.selector import NEURAL, Selector
from sparcets.explainers.sparcets.surrogate import distill_numbers
from sparcets.explanation.numbers import is_within
from sparcets.explanation.outcome import Outcome
from sparcets.explanation.plausibility import PlausibilityReference
from sparcets.explanation.series_info import SeriesInfo
from sparcets.progress import progress_bar
from sparcets.seeding import generator, spawn
from sparcets.training.device import resolve_device
from sparcets.training.threads import threads_for

MIN_SPREAD = 0.1  # smallest spread of the explained model, in standard deviations of the labels
REFERENCES = 1500  # real series that answers are compared with


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
    prototypes, prototype_numbers
        Real series (n, time, features), standardised; their labels and predictions (2, n, outputs).
    reference, reference_numbers
        Real series that answers are compared with; their labels and predictions.
    info
        Names, units and scale of the data.
    device, double
        As of an :class:`Ensemble`.
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
                larger_leads={},
            ),
            scaler=self.info.scaler,
            device=self.device,
            double=self.double,
        )
        inside = np.flatnonzero(_both_within(self.reference_numbers, goal))
        chosen = self._prototypes(goal)
        return FittedModel(
            ensemble=ensemble,
            prototypes=Prototypes(self.prototypes[chosen], np.full(len(chosen), WITHIN, dtype=np.int64)),
            reference=self.reference.restricted(inside),
            generator=None,
            searches=True,
            log_sparsity_weights=(0.0,),
            residual_scales=(1.0,),
        )

    def _prototypes(self, goal: Goal) -> IntArray:
        """Return the rows of series labelled and predicted within a goal; if there are few, also the closest to it."""
        low, high = goal.bounds[:, 0], goal.bounds[:, 1]
        numbers = self.prototype_numbers
        beyond = np.maximum(np.maximum(low - numbers, numbers - high), 0.0) / self.outcome.scale  # (2, n, outputs)
        distance = beyond.max((0, 2))
        few = min(NEAREST, len(distance))
        return np.flatnonzero(distance <= np.partition(distance, few - 1)[few - 1])

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
    device = resolve_device(config.device)
    X, y = job.X[rows], numbers[rows]
    x = torch.as_tensor(info.scaler.transform(X).astype(np.float32), device=device)
    z = (y - outcome.center) / outcome.scale
    names = () if config.believed_by == "model" else config.families

    def network(role: str, architecture: str, noise: float) -> list[TorchRegressor]:
        if NEURAL not in names:
            return []
        some = choose_series(rows, spawn(seed, role))
        settings = NETWORK_CONFIG.sized(len(some), steps=NETWORK_STEPS)
        settings = replace(settings, noise=noise, device=config.device, seed=spawn(seed, role))
        settings = replace(settings, patience=max(1, settings.epochs // 2))
        net = TorchRegressor(architecture, settings).fit_unchecked(X[some], y[some], progress=False)
        return [net] if net.error_ < 1 else []

    others = [name for name in names if name != NEURAL]
    with progress_bar("fitting models of other kinds", 2 * len(others) + 1, show=job.progress) as bar:

        def fit(role: str, family: str) -> FamilyRegressor:
            some = choose_series(rows, spawn(seed, f"{role} {family}"))
            make = FamilyRegressor.fit_member if role == "member" else FamilyRegressor.fit_judge
            series = x[torch.as_tensor(some, device=device)]
            made = make(family, series, z[some], spawn(seed, f"{role} {family}"), scale=info.scaler.scale)
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
        if not isinstance(explained, DifferentiableRegressor):
            bar.advance(0, "surrogate")
            explained = distill_numbers(
                regressor, X, seed=spawn(seed, "student"), device=config.device, progress=job.progress
            )
        bar.advance()
    predicted = regressor.predict_unchecked(job.X)
    both = np.stack([numbers, predicted])
    known = np.linspace(0, len(rows) - 1, min(len(rows), LEVEL_SERIES)).astype(np.int64)
    by_network = [net.predict_unchecked(X[known]) for net in (explained, *networks)]
    error = np.sqrt(((by_network[0] - y[known]) ** 2).mean(0))
    kept = max(PER_CLASS, MAX_ENTRIES // job.X[0].size)
    prototypes = np.sort(generator(seed, "prototypes of numbers").permutation(len(job.X))[:kept])
    # References from the whole range of the first number, so that every target has some.
    order = np.argsort(numbers[:, 0], kind="stable")
    references = order[np.unique(np.linspace(0, len(order) - 1, REFERENCES).round().astype(np.int64))]
    return NumberModel(
        explained=explained,
        spread=np.clip(error, MIN_SPREAD * outcome.scale, outcome.scale),
        networks=networks,
        families=members,
        judge_networks=judging,
        judges=judges,
        examples=np.concatenate(
            [(np.stack(by_network) - outcome.center) / outcome.scale, *(_by_heads(one, x[known]) for one in members)]
        ),
        example_labels=y[known],
        prototypes=info.scaler.transform(job.X[prototypes]).astype(np.float32),
        prototype_numbers=both[:, prototypes],
        reference=PlausibilityReference.fit(job.X, job.y, info, lengths=job.lengths, rows=references),
        reference_numbers=both[:, references],
        info=info,
        device=device,
        double=job.X.dtype == np.float64,
    )


@torch.no_grad()
def _by_heads(family: FamilyRegressor, x: torch.Tensor) -> FloatArray:
    """Return the standardised numbers of standardised series by every head (heads, series, outputs)."""
    with threads_for(x[:FAMILY_BATCH].numel()):
        parts = [family(part).double().cpu().numpy() for part in torch.split(x, FAMILY_BATCH)]
    return np.concatenate(parts, axis=1)


def _both_within(numbers: FloatArray, goal: Goal) -> BoolArray:
    """Return whether labels and predictions (2, n, outputs) are within a goal (n,)."""
    return is_within(numbers[0], goal.bounds) & is_within(numbers[1], goal.bounds)
