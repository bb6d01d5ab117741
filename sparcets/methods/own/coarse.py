"""Long series, from coarse to fine: the method works on averages, and its answers are finished on the whole series.

The networks, the families and the search see averages of neighbouring steps, at most a few hundred of them; a change
of the averages is carried back to every step by interpolation. The explained classifier always predicts whole series.
Its gradients would take as long as all the rest, so that a surrogate supplies them, as for a black box. What is valid,
and which pieces of an answer are needed, is decided on whole series; and there the constraints hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import BoolArray, FloatArray, IntArray
from sparcets.core.seeding import spawn
from sparcets.core.series import fill_gaps
from sparcets.methods.evidence import PlausibilityReference
from sparcets.methods.goal import regressor_of
from sparcets.methods.own.candidates import VALID, FoundAnswers
from sparcets.methods.own.curve import measure_curve
from sparcets.methods.own.grid import Grid, LongSeries
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.operating_point import OperatingPoint
from sparcets.methods.own.prototypes import NEAREST, Prototypes
from sparcets.methods.own.regression import NumberModel, choose_prototypes, choose_references
from sparcets.methods.own.search import answer
from sparcets.methods.own.surrogate import SURROGATE_CONFIG as SURROGATE_OF_BLACK_BOX
from sparcets.methods.own.surrogate import distill, distill_numbers
from sparcets.methods.request import Answers, FitJob, Request
from sparcets.models.base import Classifier, Model, Regressor
from sparcets.models.network import TorchClassifier, TorchRegressor
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
    whole, lengths
        Series (batch, time, features) to take details from, and their true lengths, or None.
    request
        The request of these series, if they are queries: whatever is made of them keeps its limits.
    """

    def __init__(
        self, grid: Grid, whole: FloatArray, lengths: IntArray | None = None, *, request: Request | None = None
    ) -> None:
        self.grid, self.whole, self.lengths, self._request = grid, whole, lengths, request
        self.averages = grid.average(whole, lengths)

    def lift(self, averages: FloatArray) -> FloatArray:
        """Return whole series (batch, time, features) with these averages (batch, points, features)."""
        return self._lift(averages, self._nearest(averages, None))

    def ask(self, model: Model, averages: FloatArray, points: IntArray | None) -> FloatArray:
        """Return what a model predicts for whole series with these averages, of as many points (batch,), or of all."""
        size = max(1, MAX_ENTRIES // self.whole[0].size)
        rows, said = self._nearest(averages, points), []
        for start in range(0, len(averages), size):
            part = rows[start : start + size]
            steps = None if self.lengths is None else self.lengths[part]
            said.append(model.outputs_unchecked(self._lift(averages[start : start + size], part), steps))
        return np.concatenate(said)

    def _lift(self, averages: FloatArray, rows: IntArray) -> FloatArray:
        """Return the series of some rows with other averages."""
        lengths = None if self.lengths is None else self.lengths[rows]
        made = self.grid.lift(self.whole[rows], self.averages[rows], averages, lengths)
        return made if self._request is None else self._request.apply_limits(made, rows)

    def _nearest(self, averages: FloatArray, points: IntArray | None) -> IntArray:
        """Return the row of the series with the nearest averages, in standard deviations of each feature (batch,).

        Of padded ones, it is a series with as many points (batch,); None: with all points of the grid.
        """
        if len(self.whole) == 1:
            return np.zeros(len(averages), dtype=np.int64)
        scale = np.nanstd(self.averages, (0, 1), dtype=np.float64)
        wanted, known = (
            np.nan_to_num(X / np.where(scale > 0, scale, 1.0)).reshape(len(X), -1).astype(np.float64)
            for X in (averages - self.averages[0], self.averages - self.averages[0])
        )
        distance = (known**2).sum(1) - 2 * wanted @ known.T  # without what is the same for all
        own = self.grid.points(self.lengths)
        if own is not None:
            as_many = own == (self.grid.n_points if points is None else points[:, None])
            distance = np.where(as_many, distance, np.inf)
        return np.asarray(distance.argmin(1), dtype=np.int64)


class GridView(Classifier):
    """The user's classifier as one of averages: it predicts whole series that have them.

    Parameters
    ----------
    classifier
        Predicts whole series.
    lifting
        From averages to whole series.
    """

    def __init__(self, classifier: Classifier, lifting: Lifting) -> None:
        self.classifier, self.lifting = classifier, lifting
        self.n_features, self.n_steps = classifier.n_features, lifting.grid.n_points
        self.named, self._class_names = classifier.named, classifier.class_names
        self.missing, self.side = classifier.missing, classifier.side

    @property
    def name(self) -> str:
        """Name of the model in messages."""
        return self.classifier.name

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        return self.lifting.ask(self.classifier, X, lengths)


class DistilledView(GridView):
    """A view with gradients, those of a surrogate; its predictions remain those of the user's classifier.

    Parameters
    ----------
    view
        Predicts.
    surrogate
        A network of averages.
    """

    differentiable = True

    def __init__(self, view: GridView, surrogate: TorchClassifier) -> None:
        super().__init__(view.classifier, view.lifting)
        self.surrogate = surrogate

    @property
    def device(self) -> torch.device:
        """Device of the surrogate."""
        return self.surrogate.device

    def log_proba(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (batch, classes) of averages by the surrogate."""
        return self.surrogate.log_proba(x, lengths)


def answer_long(request: Request, model: FittedModel, classifier: Classifier, point: OperatingPoint) -> Answers:
    """Answer a batch of long queries of one length; see :func:`~sparcets.methods.own.search.answer`."""
    long = _long(model)
    found = FoundAnswers(request, classifier, long.judging(model.ensemble))
    for row in range(len(request)):
        one = request.select(np.array([row]))
        lifting = Lifting(long.grid, one.X, request=one)
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
    curves, n_steps = [], request.X.shape[1]
    for row in range(len(request)):
        n = n_steps if request.lengths is None else int(request.lengths[row])
        one, own = request.cut(np.array([row]), n), model.at_length(n)
        long = _long(own)
        view = GridView(at_length(classifier, n, n_steps), Lifting(long.grid, one.X, request=one))
        averages = long.grid.average(made[row : row + 1, :n])
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
    measured = fill_gaps(request.info.scaler.transform(request.X), otherwise=0.0)
    x = torch.as_tensor(measured.astype(np.float32), device=ensemble.device)
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

    def _outputs(self, X: FloatArray, lengths: IntArray | None) -> FloatArray:
        return self.lifting.ask(self.regressor, X, lengths)


class DistilledRegressor(GridRegressor):
    """A view with gradients, those of a surrogate; its predictions remain those of the user's regressor.

    Parameters
    ----------
    view
        Predicts.
    surrogate
        A network of averages.
    """

    differentiable = True

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
        subjects=job.subjects,
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
        subjects=job.subjects,
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
    both = np.stack([job.numbers, regressor.outputs_unchecked(job.X, job.lengths)])
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
