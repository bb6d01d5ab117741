"""The fit to long series: to their averages, of a classifier or of a regressor; answers are made by ``coarse``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.regressor import DifferentiableRegressor, Regressor
from sparcets.classifiers.torch_regressor import TorchRegressor
from sparcets.explainers.numbers import regressor_of
from sparcets.explainers.request import FitJob
from sparcets.explainers.sparcets.coarse import DistilledView, GridView, Lifting
from sparcets.explainers.sparcets.grid import Grid, LongSeries
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explainers.sparcets.number_fit import choose_prototypes, choose_references
from sparcets.explainers.sparcets.number_model import NumberModel
from sparcets.explainers.sparcets.prototypes import Prototypes
from sparcets.explainers.sparcets.surrogate import SURROGATE_CONFIG as SURROGATE_OF_BLACK_BOX
from sparcets.explainers.sparcets.surrogate import distill, distill_numbers
from sparcets.explanation.plausibility import PlausibilityReference
from sparcets.gaps import fill_gaps
from sparcets.seeding import spawn

if TYPE_CHECKING:
    from sparcets.explainers.sparcets.explainer import Explainer

SURROGATE_CONFIG = replace(SURROGATE_OF_BLACK_BOX, hidden=16)
SURROGATE_STEPS = 500
SEED = "whole series"  # name in the seeds


class GridRegressor(Regressor):
    """The user's regressor as one of averages: it predicts whole series that have them.

    Parameters
    ----------
    regressor
        Predicts whole series.
    lifting
        From averages to whole series.
    """

    def __init__(self, regressor: Regressor, lifting: Lifting) -> None:
        self.regressor, self.lifting = regressor, lifting
        self.n_features, self.n_steps = regressor.n_features, lifting.grid.n_points
        self.missing, self.side = regressor.missing, regressor.side

    @property
    def name(self) -> str:
        """Name of the model in messages."""
        return self.regressor.name

    def _predict(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        return self.lifting.ask(self.regressor, X, lengths)


class DistilledRegressor(GridRegressor, DifferentiableRegressor):
    """A view with gradients, those of a surrogate; its predictions remain those of the user's regressor.

    Parameters
    ----------
    view
        Predicts.
    surrogate
        A network of averages.
    """

    def __init__(self, view: GridRegressor, surrogate: TorchRegressor) -> None:
        super().__init__(view.regressor, view.lifting)
        self.surrogate = surrogate

    @property
    def device(self) -> torch.device:
        """Device of the surrogate."""
        return self.surrogate.device

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of averages by the surrogate."""
        return self.surrogate.numbers(x, lengths)


def fit_long(explainer: Explainer, job: FitJob) -> None:
    """Fit an explainer to long series, by their averages.

    Parameters
    ----------
    explainer
        Not fitted yet.
    job
        The fit.
    """
    if job.numbers is None:
        inner, explainer._model = _fit_averages(explainer, job)
    else:
        inner, explainer._number_model = _fit_number_averages(explainer, job)
    explainer.history_, explainer.trade_off_ = inner.history_, inner.trade_off_
    explainer.silent_features_ = inner.silent_features_


def _fit_averages(explainer: Explainer, job: FitJob) -> tuple[Explainer, FittedModel]:
    """Fit an explainer of averages; return it, and the model for whole series."""
    grid, classifier, config = Grid.of(_longest(job)), explainer.classifier, explainer.config
    coarse, view = grid.job(job), GridView(classifier, Lifting(grid, job.X, job.lengths))
    surrogate = distill(
        view,
        coarse.X,
        lengths=coarse.lengths,
        class_names=job.info.class_names,
        seed=spawn(config.seed, SEED),
        device=config.device,
        progress=job.progress,
        config=SURROGATE_CONFIG,
        steps=SURROGATE_STEPS,
    )
    inner = type(explainer)(DistilledView(view, surrogate), config, domain_losses=explainer.domain_losses)
    inner._fit(coarse)
    model = inner._fitted_model()
    prototypes = Prototypes.choose(job, classifier, spawn(config.seed, SEED))
    whole = replace(
        model,
        ensemble=replace(model.ensemble, explained=surrogate),
        reference=PlausibilityReference.fit(job.X, job.y, job.info, lengths=job.lengths),
        long=LongSeries(grid, coarse.info.scaler, prototypes),
    )
    return inner, whole


def _longest(job: FitJob) -> int:
    """Return the number of steps of the longest training series."""
    return job.info.n_steps if job.lengths is None else int(job.lengths.max())


def _fit_number_averages(explainer: Explainer, job: FitJob) -> tuple[Explainer, NumberModel]:
    """Fit an explainer of averages to a regressor; return it, and the model for whole series."""
    grid, regressor, config = Grid.of(_longest(job)), regressor_of(explainer), explainer.config
    averages, seed = grid.job(job), spawn(config.seed, SEED)
    view = GridRegressor(regressor, Lifting(grid, job.X, job.lengths))
    surrogate = distill_numbers(
        view,
        averages.X,
        lengths=averages.lengths,
        seed=seed,
        device=config.device,
        progress=job.progress,
        config=SURROGATE_CONFIG,
        steps=SURROGATE_STEPS,
    )
    inner = type(explainer)(DistilledRegressor(view, surrogate), config)
    inner._fit(averages)
    model = inner._number_model
    assert model is not None
    assert job.numbers is not None
    both = np.stack([job.numbers, regressor.predict_unchecked(job.X, job.lengths)])
    rows, references = choose_prototypes(job, seed), choose_references(job.numbers)
    series = job.info.scaler.transform(job.X[rows]).astype(np.float32)
    series = fill_gaps(series, lengths=job.steps(rows), otherwise=0.0)
    prototypes = Prototypes(series, np.zeros(len(rows), dtype=np.int64), job.steps(rows))
    whole = replace(
        model,
        explained=surrogate,
        reference=PlausibilityReference.fit(job.X, job.y, job.info, lengths=job.lengths, rows=references),
        reference_numbers=both[:, references],
        long=LongSeries(grid, averages.info.scaler, prototypes),
        long_numbers=both[:, rows],
    )
    return inner, whole
