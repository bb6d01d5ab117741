"""A grid of fewer steps for long series: averages of neighbouring steps, and changes of them carried back."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray
from sparcets.core.enforcement import BoundConstraints
from sparcets.core.info import Scaler, SeriesInfo
from sparcets.core.series import Series
from sparcets.methods.own.ensemble import Ensemble
from sparcets.methods.own.prototypes import Prototypes
from sparcets.methods.request import FitJob, Request

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

        Parameters
        ----------
        series, before
            Series, and their averages (batch, points, features).
        after
            The averages wanted, met up to the interpolation.
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
            limit=bound.limit * self.size,
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

    def request(self, request: Request) -> Request:
        """Return the request for the averages of the queries."""
        at_most = None if request.at_most is None else np.maximum(request.at_most // self.grid.size, 1)
        return replace(
            request,
            series=self.grid.average(request.series),
            info=self.info(request.info),
            constraints=self.grid.limits(request.constraints),
            at_most=at_most,
        )

    def judging(self, ensemble: Ensemble) -> Ensemble:
        """Return the ensemble for whole series: its classifiers see their averages."""
        return replace(ensemble, scaler=AveragingScaler(self.scaler.center, self.scaler.scale, self.grid))

    def describe(self, kind: str) -> str:
        """Say in a sentence what sees averages, and what does not; ``kind`` is the word for the explained model."""
        return (
            f"The series are long: a surrogate of the {kind} and models of other kinds see averages of "
            f"{self.grid.size} steps; the {kind} sees whole series and decides what is valid."
        )
