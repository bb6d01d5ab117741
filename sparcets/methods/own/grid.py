"""A grid of fewer steps for long series: averages of neighbouring steps, and changes of them carried back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparcets.core.arrays import FloatArray, IntArray, length_mask
from sparcets.core.enforcement import BoundConstraints
from sparcets.core.info import Scaler, SeriesInfo
from sparcets.core.series import Series, fill_gaps, rows_by_length
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
    >>> grid.average(np.array([[[1.0], [3.0], [2.0], [2.0], [7.0]]])).ravel().tolist()
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

    def points(self, lengths: IntArray | None) -> IntArray | None:
        """Return the numbers of points of series with these numbers of steps (batch,), or None.

        >>> Grid(n_steps=9, size=4).points(np.array([1, 4, 9])).tolist()
        [1, 1, 3]
        """
        return None if lengths is None else -(-lengths // self.size)

    @property
    def starts(self) -> IntArray:
        """First step of each point (points,)."""
        return np.arange(0, self.n_steps, self.size)

    @property
    def n_points(self) -> int:
        """Number of points."""
        return len(self.starts)

    def average(self, X: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Return the averages (batch, points, features) of series (batch, time, features), of the same dtype.

        Gaps count as the last value before; only a feature that a series has no value of is missing in its averages.
        Those of padded series are padded with zeros, as the series are; see :meth:`points`.
        """
        filled = fill_gaps(X[:, : self.n_steps], lengths=lengths)
        totals = np.add.reduceat(filled, self.starts, axis=1, dtype=np.float64)
        ends = np.array([[self.n_steps]]) if lengths is None else lengths[:, None]
        counts = (ends - self.starts).clip(1, self.size)  # (batch, points)
        return np.asarray((totals / counts[..., None]).astype(X.dtype))

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

    def lift(self, X: FloatArray, before: FloatArray, after: FloatArray, lengths: IntArray | None = None) -> FloatArray:
        """Return series whose averages become others; steps that no change reaches, and padding, keep their bits.

        Parameters
        ----------
        X, before
            Series (batch, time, features), and their averages (batch, points, features).
        after
            The averages wanted, met up to the interpolation.
        lengths
            True lengths of padded series, or None.
        """
        if lengths is not None:
            made: FloatArray = X.copy()
            for n, rows in rows_by_length(lengths):
                own = self.at_length(n)
                averages = before[rows, : own.n_points], after[rows, : own.n_points]
                made[rows, :n] = own.lift(X[rows, :n], *averages)
            return made
        change = self.interpolate(after.astype(np.float64) - before)
        return np.asarray(np.where(change == 0, X, (X + change).astype(X.dtype)))

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
        X, points = self.average(job.X, job.lengths), self.points(job.lengths)
        steps = X[length_mask(points, *X.shape[:2])]
        info = replace(
            job.info,
            n_steps=self.n_points,
            scaler=Scaler.fit(X, points),
            span=np.nanmax(steps, 0).astype(np.float64) - np.nanmin(steps, 0),
            binary=np.zeros_like(job.info.binary),
        )
        return replace(job, series=Series(X, points), info=info, constraints=self.limits(job.constraints))


@dataclass(frozen=True, eq=False)
class AveragingScaler(Scaler):
    """Standardises the averages of whole series."""

    grid: Grid

    def transform(self, X: FloatArray) -> FloatArray:
        """Return standardised averages (batch, points, features) of series (batch, time, features)."""
        return super().transform(self.grid.average(X))


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
        averages = self.grid.average(request.X)
        return replace(
            request,
            series=Series(averages, request.lengths),
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

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return everything as plain arrays by name, for a file."""
        header = {"n_steps": self.grid.n_steps, "size": self.grid.size, "scaler": self.scaler.to_dict()}
        return {
            "header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8).copy(),
            "series": self.prototypes.series,
            "classes": self.prototypes.classes,
            **({} if self.prototypes.lengths is None else {"lengths": self.prototypes.lengths}),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray[Any, Any]]) -> LongSeries | None:
        """Build from :meth:`to_arrays`'s output; None from nothing: the series are not long."""
        if not arrays:
            return None
        header = json.loads(arrays["header"].tobytes().decode())
        return cls(
            Grid(int(header["n_steps"]), int(header["size"])),
            Scaler.from_dict(header["scaler"]),
            Prototypes(arrays["series"], arrays["classes"], arrays.get("lengths")),
        )
