"""Long series, from coarse to fine: the method works on averages, and its answers are finished on the whole series.

The networks, the families and the search see averages of neighbouring steps, at most a few hundred of them; a change
of the averages is carried back to every step by interpolation. The explained classifier always predicts whole series.
Its gradients would take as long as all the rest, so that a surrogate supplies them, as for a black box. What is valid,
and which pieces of an answer are needed, is decided on whole series; and there the constraints hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from sparcets.core.enforcement import BoundConstraints
from sparcets.core.evidence import PlausibilityReference
from sparcets.core.info import SeriesInfo
from sparcets.core.seeding import spawn
from sparcets.core.series import FloatArray, IntArray, Scaler, Series
from sparcets.methods.own.ensemble import Ensemble
from sparcets.methods.own.model import real_series
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.own.space import EditSpace
from sparcets.methods.own.surrogate import SURROGATE_CONFIG as SURROGATE_OF_BLACK_BOX
from sparcets.methods.own.surrogate import distill
from sparcets.methods.request import FitJob, Request
from sparcets.models.base import Classifier, Model, Regressor

if TYPE_CHECKING:
    from sparcets.methods.own.explainer import Explainer

LONGEST = 500  # steps of the longest series that are worked on step by step
MAX_POINTS = 200  # of a grid: a piece of a change is a fourteenth of a series, which are as many points as that


@dataclass(frozen=True)
class Grid:
    """Points that stand for ``size`` neighbouring steps each; the last one may stand for fewer.

    Attributes
    ----------
    n_steps
        Of the series.
    size
        Steps of a point.

    Examples
    --------
    >>> grid = Grid(n_steps=5, size=2)
    >>> grid.average(Series(np.array([[[1.0], [3.0], [2.0], [2.0], [7.0]]]))).values.ravel().tolist()
    [2.0, 2.0, 7.0]
    >>> grid.interpolate(np.array([[[0.0], [4.0], [0.0]]])).ravel().round(2).tolist()
    [0.0, 1.0, 3.0, 2.67, 0.0]
    """

    n_steps: int
    size: int

    @classmethod
    def of(cls, n_steps: int) -> Grid:
        """Return the finest grid of at most ``MAX_POINTS`` points."""
        return cls(n_steps, -(-n_steps // MAX_POINTS))

    def at_length(self, n_steps: int) -> Grid:
        """Return the grid of series of ``n_steps`` steps, with points of the same size."""
        return Grid(n_steps, self.size)

    @property
    def starts(self) -> IntArray:
        """First step of each point (points,)."""
        return np.arange(0, self.n_steps, self.size)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.starts)

    def average(self, series: Series) -> Series:
        """Return the averages of series, of the same dtype; padded series have padded averages.

        Gaps count as the last value before; only a feature that a series has no value of is missing in its averages.
        """
        filled = series.filled().values[:, : self.n_steps]
        totals = np.add.reduceat(filled, self.starts, axis=1, dtype=np.float64)
        counts = (series.steps[:, None] - self.starts).clip(1, self.size)  # (batch, points)
        averages = np.asarray((totals / counts[..., None]).astype(filled.dtype))
        return Series(averages, None if series.lengths is None else -(-series.lengths // self.size))

    def interpolate(self, change: FloatArray) -> FloatArray:
        """Return changes of points (batch, points, features) as changes of steps (batch, time, features).

        They run linearly from the middle of a point to that of the next, and are exactly 0 between two points that do
        not change: a change begins and ends smoothly, half a point outside.
        """
        if self.n_points == 1:
            return np.asarray(np.repeat(change, self.n_steps, axis=1))
        middles = (self.starts + np.append(self.starts[1:], self.n_steps) - 1) / 2
        position = np.interp(np.arange(self.n_steps), middles, np.arange(self.n_points))
        left = np.minimum(position.astype(np.int64), self.n_points - 2)
        weight = (position - left)[:, None]
        return np.asarray(change[:, left] * (1 - weight) + change[:, left + 1] * weight)

    def lift(self, series: Series, before: FloatArray, after: FloatArray) -> FloatArray:
        """Return series whose averages become others; steps that no change reaches, and padding, keep their bits.

        ``before`` are their averages (batch, points, features), and ``after`` those wanted, met up to the
        interpolation.
        """
        made: FloatArray = series.values.copy()
        for rows, part in series.by_length():
            own, X = self.at_length(min(part.n_steps, self.n_steps)), part.values
            change = own.interpolate(after[rows, : own.n_points].astype(np.float64) - before[rows, : own.n_points])
            made[rows, : part.n_steps] = np.where(change == 0, X, (X + change).astype(X.dtype))
        return made

    def limits(self, bound: BoundConstraints) -> BoundConstraints:
        """Return constraints on the averages; those that averages cannot obey are left to the whole series."""
        return replace(
            bound,
            editable=np.logical_or.reduceat(bound.editable[: self.n_steps], self.starts, axis=0),
            frozen=np.logical_and.reduceat(bound.frozen[: self.n_steps], self.starts, axis=0),
            max_step=bound.max_step * self.size,
            integer=np.zeros_like(bound.integer),
            project=None,
        )

    def job(self, job: FitJob) -> FitJob:
        """Return the fit to the averages."""
        averages = self.average(job.series)
        steps = averages.values[averages.inside]
        info = replace(
            job.info,
            n_steps=self.n_points,
            scaler=Scaler.fit(averages.values, averages.lengths),
            span=np.nanmax(steps, 0).astype(np.float64) - np.nanmin(steps, 0),
            binary=np.zeros_like(job.info.binary),
        )
        return replace(job, series=averages, info=info, constraints=self.limits(job.constraints))


@dataclass(frozen=True, eq=False)
class AveragingScaler(Scaler):
    """Standardises the averages of whole series."""

    grid: Grid

    def transform(self, X: FloatArray) -> FloatArray:
        """Return standardised averages (batch, points, features) of series (batch, time, features)."""
        return super().transform(self.grid.average(Series(X)).values)


@dataclass(frozen=True, eq=False)
class LongSeries:
    """What a model of averages needs to answer whole series.

    Attributes
    ----------
    grid
        Where the averages are taken.
    scaler
        Scale of the averages.
    prototypes
        Whole real series of each class, standardised.
    """

    grid: Grid
    scaler: Scaler
    prototypes: Prototypes

    def at_length(self, n_steps: int) -> LongSeries:
        """Return what is needed to answer series of ``n_steps`` steps without padding."""
        return self if n_steps == self.grid.n_steps else replace(self, grid=self.grid.at_length(n_steps))

    def info(self, info: SeriesInfo) -> SeriesInfo:
        """Return the description of the averages of series that are described by ``info``."""
        return replace(info, n_steps=self.grid.n_points, scaler=self.scaler, binary=np.zeros_like(info.binary))

    def judging(self, ensemble: Ensemble) -> Ensemble:
        """Return the ensemble for whole series: its classifiers see their averages."""
        return replace(ensemble, scaler=AveragingScaler(self.scaler.center, self.scaler.scale, self.grid))

    def describe(self, kind: str) -> str:
        """Say in a sentence what sees averages, and what does not; ``kind`` is the word for the explained model."""
        return (
            f"The series are long: a surrogate of the {kind} and models of other kinds see averages of "
            f"{self.grid.size} steps; the {kind} sees whole series and decides what is valid."
        )


MAX_ENTRIES = 2**22  # of whole series that are made at a time, which bounds the memory


class Lifting:
    """From averages, taken on a grid, to whole series that have them; the details are those of the nearest one's
    averages.

    Where a ``request`` of these series is given, whatever is made of them keeps its limits.
    """

    def __init__(self, grid: Grid, whole: Series, *, request: Request | None = None) -> None:
        self.grid, self.whole, self._request = grid, whole, request
        self.averages = grid.average(whole)

    def lift(self, averages: FloatArray) -> FloatArray:
        """Return whole series (batch, time, features) with these averages (batch, points, features)."""
        return self._lift(averages, self._nearest(Series(averages)))

    def ask(self, model: Model, averages: Series) -> FloatArray:
        """Return what a model predicts for whole series with these averages."""
        size = max(1, MAX_ENTRIES // self.whole.values[0].size)
        rows, said = self._nearest(averages), []
        for start in range(0, len(averages), size):
            part = rows[start : start + size]
            made = self._lift(averages.values[start : start + size], part)
            said.append(model.outputs_unchecked(self.whole[part].with_values(made)))
        return np.concatenate(said)

    def _lift(self, averages: FloatArray, rows: IntArray) -> FloatArray:
        """Return the series of some rows with other averages."""
        made = self.grid.lift(self.whole[rows], self.averages.values[rows], averages)
        return made if self._request is None else self._request.apply_limits(made, rows)

    def _nearest(self, averages: Series) -> IntArray:
        """Return the row of the series with the nearest averages, in standard deviations of each feature (batch,).

        It is a series with as many points.
        """
        if len(self.whole) == 1:
            return np.zeros(len(averages), dtype=np.int64)
        own = self.averages.values
        scale = np.nanstd(own, (0, 1), dtype=np.float64)
        wanted, known = (
            np.nan_to_num(X / np.where(scale > 0, scale, 1.0)).reshape(len(X), -1).astype(np.float64)
            for X in (averages.values - own[0], own - own[0])
        )
        distance = (known**2).sum(1) - 2 * wanted @ known.T  # without what is the same for all
        as_many = self.averages.steps == averages.steps[:, None]
        return np.asarray(np.where(as_many, distance, np.inf).argmin(1), dtype=np.int64)


class _GridView(Model):
    """The user's model as one of averages: it predicts whole series that have them.

    Its gradients are those of a ``surrogate``, a network of averages; without one it has none.
    """

    def __init__(self, model: Any, lifting: Lifting, surrogate: Any = None) -> None:
        self.model, self.lifting, self.surrogate = model, lifting, surrogate
        self.n_features, self.n_steps = model.n_features, lifting.grid.n_points
        self.missing, self.side, self.differentiable = model.missing, model.side, surrogate is not None

    @property
    def name(self) -> str:
        """Name of the model in messages."""
        return str(self.model.name)

    @property
    def device(self) -> torch.device:
        """Device of the surrogate."""
        return torch.device(self.surrogate.device)

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        return self.lifting.ask(self.model, Series(X, lengths))


class GridView(_GridView, Classifier):
    """A view of a classifier."""

    def __init__(self, model: Classifier, lifting: Lifting, surrogate: Any = None) -> None:
        super().__init__(model, lifting, surrogate)
        self.named, self._class_names = model.named, model.class_names

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of averages by the surrogate."""
        log_proba: Tensor = self.surrogate.log_proba(x, lengths)
        return log_proba


class GridRegressor(_GridView, Regressor):
    """A view of a regressor."""

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of averages by the surrogate."""
        numbers: Tensor = self.surrogate.numbers(x, lengths)
        return numbers


SURROGATE_CONFIG = replace(SURROGATE_OF_BLACK_BOX, hidden=16)
SURROGATE_STEPS = 500
SEED = "whole series"  # name in the seeds


def fit_long(explainer: Explainer, job: FitJob) -> None:
    """Fit an explainer, which is not fitted yet, to long series, by their averages."""
    grid, config, seed = Grid.of(int(job.series.steps.max())), explainer.config, spawn(explainer.config.seed, SEED)
    user: Any = explainer.classifier
    averages, lifting = grid.job(job), Lifting(grid, job.series)
    view: Any = GridRegressor if isinstance(user, Regressor) else GridView
    surrogate = distill(
        view(user, lifting),
        averages.series,
        subjects=job.subjects,
        class_names=job.info.class_names,
        seed=seed,
        device=config.device,
        progress=job.progress,
        config=SURROGATE_CONFIG,
        steps=SURROGATE_STEPS,
    )
    inner = type(explainer)(view(user, lifting, surrogate), replace(config, proposals="search"))
    inner._fit(averages)
    explainer.history_ = inner.history_
    if inner._number_model is not None:
        whole = real_series(job, user, seed)
        explainer._number_model = replace(
            inner._number_model,
            members=replace(inner._number_model.members, explained=surrogate),
            reference=whole["reference"],
            reference_numbers=whole["reference_numbers"],
            space=EditSpace.fit(job, config, seed),
            long=LongSeries(grid, averages.info.scaler, whole["prototypes"]),
            long_numbers=whole["prototype_numbers"],
        )
    else:
        model = inner._fitted_model()
        explainer._model = replace(
            model,
            ensemble=replace(model.ensemble, explained=cast("Classifier", surrogate)),
            reference=PlausibilityReference.fit(job.series, job.y, job.info),
            space=EditSpace.fit(job, config, seed),
            long=LongSeries(grid, averages.info.scaler, Prototypes.choose(job, user, seed)),
        )
