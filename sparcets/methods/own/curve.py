"""How belief falls as fewer entries change: measured on held-out series at fit, and for each query on request."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from sparcets.core.arrays import FloatArray, IntArray, differs
from sparcets.core.outcome import is_within
from sparcets.core.series import rows_by_length
from sparcets.methods.own.candidates import keep_first, rank_changes
from sparcets.methods.own.model import CPU_BATCH, FittedModel, NumberModel
from sparcets.methods.own.operating_point import (
    NO_POINT,
    OperatingPoint,
    average_points,
    held_out_request,
    measure_point,
)
from sparcets.methods.own.search import SEARCH_BATCH, Search
from sparcets.methods.request import FitJob, Request
from sparcets.models.base import Classifier, Regressor
from sparcets.models.views import WITHIN, Goal, Within, at_length
from sparcets.training.device import threads_for

CAPS = (0.1, 0.2, 0.4, 1.0)  # largest shares of the entries at which the search is measured
SHARES = tuple(2.0 ** (-i / 2) for i in range(13))  # parts of an answer's changes that are tried alone, 1 to 1/64
MAX_SEARCHED = 8  # held-out queries that are searched, where the search answers alone


def measure_search(model: FittedModel, classifier: Classifier, request: Request) -> list[OperatingPoint]:
    """Measure the search on held-out series, at several caps.

    Parameters
    ----------
    model, classifier
        The fitted model and the explained classifier.
    request
        Held-out queries.
    """
    if not len(request):
        return [NO_POINT]
    entries = request.n_free()
    if request.lengths is not None:
        parts = []
        for rows, part in request.series.by_length():
            n = part.n_steps
            own = model.at_length(n), at_length(classifier, n, request.series.n_steps)
            parts.append((len(rows), int(entries[rows].sum()), measure_search(*own, request.cut(rows, n))))
        return average_points(parts)
    points, rows = [], np.arange(len(request))
    candidates = Search(request, model, classifier, NO_POINT).search_rows(rows)
    for cap in CAPS:
        at_most = np.floor(cap * entries + 1e-9).astype(np.int64)
        search = Search(replace(request, at_most=at_most), model, classifier, NO_POINT)
        search.offer_candidates(rows, candidates)
        delta = search.residual(rows, search.found.series[:, 0])
        points.append(
            measure_point(
                model, classifier, request.X, search.x, delta, search.target, int(entries.sum()), weight=-math.log(cap)
            )
        )
    return points


def measure_numbers(model: NumberModel, job: FitJob, held_out: IntArray, regressor: Regressor) -> list[OperatingPoint]:
    """Measure the search on held-out series of a regressor, from low first numbers to high ones.

    Parameters
    ----------
    model, regressor
        What was fitted, and the explained regressor.
    job, held_out
        The fit, and the rows of held-out series.
    """
    numbers, outcome = job.numbers, model.outcome
    assert numbers is not None
    bounds = np.broadcast_to([-np.inf, np.inf], (numbers.shape[1], 2)).copy()
    bounds[0, 0] = np.quantile(numbers[:, 0], 0.75)
    goal = Goal(bounds, ("a high number", "another number"))
    low = numbers[held_out, 0] <= np.median(numbers[:, 0])
    low &= ~is_within(regressor.outputs_unchecked(job.X[held_out], job.steps(held_out)), bounds)
    rows = held_out[low][:MAX_SEARCHED]
    target = np.full(len(rows), WITHIN, dtype=np.int64)
    classifier = Within(regressor, goal, outcome.scale)
    request = held_out_request(replace(job, info=replace(job.info, class_names=goal.names)), rows, target, classifier)
    with threads_for(job.X[:CPU_BATCH].size):
        return measure_search(model.within(goal), classifier, request)


def measure_curve(
    request: Request, made: FloatArray, model: FittedModel, classifier: Classifier, point: OperatingPoint
) -> Mapping[str, FloatArray]:
    """Return changed share, smallest support and validity of sparser and denser changes (answers, points).

    The points are the candidates of a search, and the largest changes of each answer alone, down to 1/64 of them: the
    first show how few changes are believed, the second how few already flip the explained classifier.

    Parameters
    ----------
    request, made
        Queries, and the counterfactuals (answers, time, features) that answer them, row by row.
    model, classifier, point
        The fitted model, the explained classifier, and the operating point of the generator.
    """
    size = SEARCH_BATCH[model.device.type]
    if request.lengths is not None:
        of_length = rows_by_length(request.lengths)
        n_steps, order = request.X.shape[1], np.argsort(np.concatenate([rows for _, rows in of_length]))
        return _join(
            [
                measure_curve(
                    request.cut(rows, n), made[rows, :n], model.at_length(n), at_length(classifier, n, n_steps), point
                )
                for n, rows in of_length
            ],
            order,
        )
    if len(request) > size:
        every = np.arange(len(request))
        parts = [every[start : start + size] for start in range(0, len(every), size)]
        return _join(
            [measure_curve(request.select(part), made[part], model, classifier, point) for part in parts], every
        )
    search = Search(request, model, classifier, point)
    rows = np.arange(len(request))
    answer = search.residual(rows, made)
    rank, n_changes = rank_changes(answer), (answer != 0).sum((1, 2))
    tried = [keep_first(answer, rank, (share * n_changes.float()).ceil().long()) for share in SHARES]
    tried += list(search.search_rows(rows))
    return _measure(search, tried, classifier)


def _join(curves: list[Mapping[str, FloatArray]], order: IntArray) -> dict[str, FloatArray]:
    """Return the curves of all answers, in the given order of their rows."""
    return {name: np.concatenate([curve[name] for curve in curves])[order] for name in curves[0]}


def _measure(search: Search, tried: list[torch.Tensor], classifier: Classifier) -> dict[str, FloatArray]:
    """Return the columns of a curve for residuals (answers, time, features), one tensor per point."""
    request, ensemble = search.request, search.model.ensemble
    entries = np.maximum(request.n_free(), 1)
    columns: dict[str, list[FloatArray]] = {"share": [], "support": [], "valid": []}
    # Several points at a time: the models take one series and many in nearly the same time.
    at_once = max(1, SEARCH_BATCH[search.x.device.type] // len(request))
    for start in range(0, len(tried), at_once):
        part = [
            request.apply_limits(request.info.scaler.add_delta(request.X, delta.cpu().numpy()))
            for delta in tried[start : start + at_once]
        ]
        made, shape = np.concatenate(part), (len(part), len(request))
        changed = np.stack([differs(series, request.X).sum((1, 2)) for series in part])
        target = search.target.repeat(len(part))
        support = ensemble.believe(ensemble.standardise(made), target).support
        least = support.amin(1) if support.shape[1] else support.new_full((len(made),), torch.nan)
        proba = classifier.outputs_unchecked(made, None).reshape(*shape, -1)
        valid = np.stack([request.is_reached(of_point) for of_point in proba])
        point = {
            "share": changed / entries,
            "support": least.cpu().double().numpy().reshape(shape),
            "valid": valid.astype(np.float64),
        }
        for name, column in point.items():
            columns[name].append(np.where(changed > 0, column, np.nan))
    return {name: np.concatenate(column).T for name, column in columns.items()}
