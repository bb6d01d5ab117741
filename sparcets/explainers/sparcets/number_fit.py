"""The fit of our own method to a regressor: regressors of all families, and real series with their numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import torch

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.regressor import DifferentiableRegressor, Regressor
from sparcets.classifiers.torch_regressor import TorchRegressor
from sparcets.config.explainers import ExplainerConfig
from sparcets.explainers.request import FitJob
from sparcets.explainers.sparcets.ensemble import JUDGE, LEVEL_SERIES, MEMBER, NETWORK_CONFIG, NETWORK_STEPS
from sparcets.explainers.sparcets.families.classifier import BATCH as FAMILY_BATCH
from sparcets.explainers.sparcets.families.classifier import choose_series
from sparcets.explainers.sparcets.families.regressor import FamilyRegressor
from sparcets.explainers.sparcets.number_model import MIN_SPREAD, NumberModel
from sparcets.explainers.sparcets.prototypes import MAX_ENTRIES, PER_CLASS
from sparcets.explainers.sparcets.selector import NEURAL
from sparcets.explainers.sparcets.surrogate import distill_numbers
from sparcets.explanation.plausibility import PlausibilityReference
from sparcets.gaps import fill_gaps
from sparcets.padding import rows_by_length
from sparcets.progress import progress_bar
from sparcets.seeding import generator, spawn
from sparcets.training.device import resolve_device, with_double_precision
from sparcets.training.threads import threads_for

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
        net.fit_unchecked(X[some], y[some], None if lengths is None else lengths[some], progress=False)
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
        if not isinstance(explained, DifferentiableRegressor):
            bar.advance(0, "surrogate")
            explained = distill_numbers(
                regressor,
                X,
                lengths=lengths,
                seed=spawn(seed, "student"),
                device=config.device,
                progress=job.progress,
            )
        bar.advance()
    both = np.stack([numbers, regressor.predict_unchecked(job.X, job.lengths)])
    known = np.linspace(0, len(rows) - 1, min(len(rows), LEVEL_SERIES)).astype(np.int64)
    steps = None if lengths is None else lengths[known]
    by_network = [net.predict_unchecked(X[known], steps) for net in (explained, *networks)]
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
