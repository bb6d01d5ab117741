"""Long series, from coarse to fine: the method works on averages, and its answers are finished on the whole series.

The networks, the families and the search see averages of neighbouring steps, at most a few hundred of them; a change
of the averages is carried back to every step by interpolation. The explained classifier always predicts whole series.
Its gradients would take as long as all the rest, so that a surrogate supplies them, as for a black box. What is valid,
and which pieces of an answer are needed, is decided on whole series; and there the constraints hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import BoolArray, FloatArray, IntArray
from sparcets.core.seeding import spawn
from sparcets.core.series import Series
from sparcets.methods.evidence import PlausibilityReference
from sparcets.methods.own.candidates import VALID, FoundAnswers
from sparcets.methods.own.curve import measure_curve
from sparcets.methods.own.ensemble import standardised
from sparcets.methods.own.grid import Grid, LongSeries
from sparcets.methods.own.model import FittedModel, real_series
from sparcets.methods.own.operating_point import OperatingPoint
from sparcets.methods.own.prototypes import NEAREST, Prototypes
from sparcets.methods.own.search import answer
from sparcets.methods.own.surrogate import SURROGATE_CONFIG as SURROGATE_OF_BLACK_BOX
from sparcets.methods.own.surrogate import distill
from sparcets.methods.request import Answers, FitJob, Request
from sparcets.models.base import Classifier, Model, Regressor
from sparcets.models.views import at_length

if TYPE_CHECKING:
    from sparcets.methods.own.explainer import Explainer


MAX_ENTRIES = 2**22  # of whole series that are made at a time, which bounds the memory
WINDOWS = 8  # parts of a real series that are tried without
MAX_PIECES = 16  # pieces of an answer that are tried without

Piece = tuple[slice, slice]  # steps and features


class Lifting:
    """From averages to whole series that have them; the details are those of the series whose averages are nearest.

    Parameters
    ----------
    grid
        Where the averages are taken.
    whole
        Series to take details from.
    request
        The request of these series, if they are queries: whatever is made of them keeps its limits.
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
            said.append(model.outputs_unchecked(made, self.whole[part].lengths))
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

    Parameters
    ----------
    model
        Predicts whole series.
    lifting
        From averages to whole series.
    surrogate
        A network of averages, whose gradients the view has; None for a view without any.
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


def answer_long(request: Request, model: FittedModel, classifier: Classifier, point: OperatingPoint) -> Answers:
    """Answer a batch of long queries of one length; see :func:`~sparcets.methods.own.search.answer`."""
    long = _long(model)
    found = FoundAnswers(request, classifier, long.judging(model.ensemble))
    for row in range(len(request)):
        one = request.select(np.array([row]))
        lifting = Lifting(long.grid, one.series, request=one)
        answers = answer(long.request(one), model, GridView(classifier, lifting), point)
        for status in np.unique(answers.status):
            made = lifting.lift(answers.counterfactual[answers.status == status])
            found.offer(np.full(len(made), row), made, "refined" if status == "not_found" else str(status))
    _copy_neighbours(found, long)
    _drop_pieces(found)
    return found.answers()


def measure_long_curve(
    request: Request, made: FloatArray, model: FittedModel, classifier: Classifier, point: OperatingPoint
) -> Mapping[str, FloatArray]:
    """Return the curves of long answers, measured on their averages; see :func:`measure_curve`."""
    curves, n_steps = [], request.series.n_steps
    for row, n in enumerate(request.series.steps.tolist()):
        one, own = request.cut(np.array([row]), n), model.at_length(n)
        long = _long(own)
        view = GridView(at_length(classifier, n, n_steps), Lifting(long.grid, one.series, request=one))
        averages = long.grid.average(Series(made[row : row + 1, :n])).values
        curves.append(measure_curve(long.request(one), averages, own, view, point))
    return {name: np.concatenate([curve[name] for curve in curves]) for name in curves[0]}


def _long(model: FittedModel) -> LongSeries:
    if model.long is None:
        raise ValueError("this model was fitted to series that are not long")
    return model.long


def _copy_neighbours(found: FoundAnswers, long: LongSeries) -> None:
    """Offer whole real series, with all details, to the queries that still lack a valid answer."""
    request, ensemble = found.request, found.ensemble
    if not len(found.missing()):
        return
    measured = standardised(request.series, request.info.scaler, gaps=True).values
    x = torch.as_tensor(measured, device=ensemble.device)
    prototypes = long.prototypes.at_length(request.X.shape[1])
    nearest = prototypes.nearest(x, request.target, NEAREST)
    for rank in range(NEAREST):
        rows = found.missing()
        rows = rows[nearest[rows, rank] >= 0]
        if not len(rows):
            return
        change = (prototypes.select(nearest[rows, rank], x[rows]) - x[rows]).cpu().numpy()
        found.offer(rows, request.info.scaler.add_delta(request.X[rows], change), "neighbour")


def _drop_pieces(found: FoundAnswers) -> None:
    """Offer the best answers without each of their pieces: the classifier may not need all of them."""
    request = found.request
    rows = np.flatnonzero(found.rank[:, 0] >= VALID)
    cut: Mapping[str, Callable[[BoolArray], list[Piece]]] = {"neighbour": _windows}
    pieces = {
        row: cut.get(str(found.status[row, 0]), _stretches)(found.series[row, 0] != request.X[row]) for row in rows
    }
    for k in range(max((len(of_row) for of_row in pieces.values()), default=0)):
        for status in np.unique(found.status[rows, 0]):
            now = np.array([r for r in rows if len(pieces[r]) > k and found.status[r, 0] == status], dtype=np.int64)
            made = found.series[now, 0].copy()
            for series, row in zip(made, now, strict=True):
                series[pieces[row][k]] = request.X[row][pieces[row][k]]
            found.offer(now, made, str(status))


def _stretches(changed: BoolArray) -> list[Piece]:
    """Return the stretches of changed entries (time, features) of each feature, the longest first.

    >>> changed = np.array([[True, False], [False, True], [False, True]])
    >>> _stretches(changed)
    [(slice(1, 3, None), slice(1, 2, None)), (slice(0, 1, None), slice(0, 1, None))]
    """
    framed = np.pad(changed, ((1, 1), (0, 0))).astype(np.int8)
    feature, start = np.nonzero(np.diff(framed, axis=0).T == 1)
    _, stop = np.nonzero(np.diff(framed, axis=0).T == -1)
    longest = np.argsort(start - stop, kind="stable")[:MAX_PIECES]
    return [(slice(int(start[i]), int(stop[i])), slice(int(feature[i]), int(feature[i]) + 1)) for i in longest]


def _windows(changed: BoolArray) -> list[Piece]:
    """Return parts of the time, with all features, then of the features, at all steps."""
    n_steps, n_features = changed.shape
    times = [part for part in np.array_split(np.arange(n_steps), WINDOWS) if len(part)]
    features = [part for part in np.array_split(np.arange(n_features), MAX_PIECES) if len(part)]
    every = slice(None)
    return [(slice(t[0], t[-1] + 1), every) for t in times] + [(every, slice(f[0], f[-1] + 1)) for f in features]


SURROGATE_CONFIG = replace(SURROGATE_OF_BLACK_BOX, hidden=16)
SURROGATE_STEPS = 500
SEED = "whole series"  # name in the seeds


def fit_long(explainer: Explainer, job: FitJob) -> None:
    """Fit an explainer to long series, by their averages.

    Parameters
    ----------
    explainer
        Not fitted yet.
    job
        The fit.
    """
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
    inner = type(explainer)(view(user, lifting, surrogate), config, domain_losses=explainer.domain_losses)
    inner._fit(averages)
    explainer.history_, explainer.trade_off_ = inner.history_, inner.trade_off_
    explainer.silent_features_ = inner.silent_features_
    if inner._number_model is not None:
        whole = real_series(job, user, seed)
        explainer._number_model = replace(
            inner._number_model,
            members=replace(inner._number_model.members, explained=surrogate),
            reference=whole["reference"],
            reference_numbers=whole["reference_numbers"],
            long=LongSeries(grid, averages.info.scaler, whole["prototypes"]),
            long_numbers=whole["prototype_numbers"],
        )
    else:
        model = inner._fitted_model()
        explainer._model = replace(
            model,
            ensemble=replace(model.ensemble, explained=cast("Classifier", surrogate)),
            reference=PlausibilityReference.fit(job.X, job.y, job.info, lengths=job.lengths),
            long=LongSeries(grid, averages.info.scaler, Prototypes.choose(job, user, seed)),
        )
