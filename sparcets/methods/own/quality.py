"""How good answers are: on held-out training series at fit, and how belief falls as less may change, for each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.core.evidence import other_kinds
from sparcets.core.seeding import generator
from sparcets.core.series import FloatArray, IntArray, Series, differs
from sparcets.core.target import is_within
from sparcets.data.splits import held_out_split, warn_of_shared_subjects
from sparcets.methods.own.model import CPU_BATCH, FittedModel, NumberModel
from sparcets.methods.own.search import answer
from sparcets.methods.request import FitJob, Request
from sparcets.models.base import Classifier, Regressor
from sparcets.models.views import WITHIN, Goal, Within
from sparcets.training.device import threads_for

FEW_SERIES = 100  # with fewer, none are held out
HELD_OUT = 0.15  # share of the training series that is held out
MAX_SEARCHED = 8  # held-out queries that are answered
PREFIX = "held_out_"  # of what was measured, in history_
SEED = "watched"  # name in the seeds; an older word, kept so that the same seed gives the same result
ADVICE = (
    "To do better: use more training series, or look at the classifier and the data: if other classifiers disagree "
    "with yours, it may rely on features that they do not use."
)


def split_held_out(y: IntArray, seed: int, subjects: Any = None) -> tuple[IntArray, IntArray]:
    """Return rows to train on, and rows to measure answers on; the same for both if there are too few.

    Where ``subjects`` (batch,) are known, nobody is in both.
    """
    if len(y) < FEW_SERIES or np.bincount(y).min() < 4:
        rows = np.arange(len(y), dtype=np.int64)
        return rows, rows
    learn, held_out = held_out_split(y, subjects, test_size=HELD_OUT, seed=seed)
    warn_of_shared_subjects(subjects, learn, held_out, "the series that answers are measured on")
    return learn, held_out


def class_request(
    job: FitJob, rows: IntArray, classifier: Classifier, seed: int, *, most: int = MAX_SEARCHED
) -> Request:
    """Return the request of some training series to be of every other class in turn, or of the target of the fit."""
    rows = generator(seed, SEED).permutation(rows)
    K = job.info.n_classes
    if job.target is None:
        target = (job.y[rows] + 1 + np.arange(len(rows)) % (K - 1)) % K
    else:
        rows = rows[job.y[rows] != job.target]
        target = np.full(len(rows), job.target)
    # Queries that are predicted as their target already would count as answers that change nothing.
    there = classifier.outputs_unchecked(job.series[rows]).argmax(1) == target
    return _request(job, rows[~there][:most], target[~there][:most], classifier)


def _request(job: FitJob, rows: IntArray, target: IntArray, classifier: Classifier) -> Request:
    """Return the request of some training series, under the standing constraints."""
    series = job.series[rows]
    return Request(series=series, target=target, classifier=classifier, info=job.info, constraints=job.constraints)


def measure_search(model: FittedModel, request: Request) -> dict[str, list[float]]:
    """Answer held-out series, the queries of a request, and return what was measured, as columns for ``history_``.

    ``valid`` and ``believed`` are shares of the answers, the latter by all families with a lead; ``changed`` is a share
    of the entries that may change.
    """
    if not len(request):
        return {f"{PREFIX}{name}": [0.0] for name in ("valid", "believed", "changed")}
    valid, believed, n_changed = [], [], 0
    for _, part in request.by_length():
        own = model.at_length(part.series.n_steps)
        made = answer(part, own).counterfactual
        valid += part.is_reached(part.classifier.outputs_unchecked(Series(made))).tolist()
        believed += own.believe(Series(made), part.target).convincing.tolist()
        n_changed += int(differs(made, part.X).sum())
    changed = n_changed / max(1, int(request.n_free().sum()))
    measured = {"valid": np.mean(valid), "believed": np.mean(believed), "changed": changed}
    return {f"{PREFIX}{name}": [float(value)] for name, value in measured.items()}


def summarise(history: Mapping[str, list[float]]) -> str:
    """Return a sentence on how good the answers to held-out series are."""
    valid, believed, changed = (history[f"{PREFIX}{name}"][0] for name in ("valid", "believed", "changed"))
    if not changed:
        return "No answer could be measured on training series."
    return (
        f"On a few training series, the answer of the search is valid for {valid:.2f} of the queries, believed by "
        f"models of every other kind for {believed:.2f}, and changes {changed:.2f} of the entries."
    )


def measure_numbers(
    model: NumberModel, job: FitJob, held_out: IntArray, regressor: Regressor
) -> dict[str, list[float]]:
    """Measure the search on held-out series of a regressor, from low first numbers to high ones."""
    asked, request = number_request(model, job, held_out, regressor)
    with threads_for(job.X[:CPU_BATCH].size):
        return measure_search(asked, request)


def number_request(
    model: NumberModel, job: FitJob, rows: IntArray, regressor: Regressor, *, most: int = MAX_SEARCHED, sign: int = 1
) -> tuple[FittedModel, Request]:
    """Return the request to make low first numbers high (``sign`` 1), or high ones low (-1), and the model for it.

    At most ``most`` of the training series ``rows`` are queries.
    """
    numbers, outcome = job.numbers, model.outcome
    bounds = np.broadcast_to([-np.inf, np.inf], (numbers.shape[1], 2)).copy()
    bounds[0, 0 if sign > 0 else 1] = np.quantile(numbers[:, 0], 0.5 + 0.25 * sign)
    goal = Goal(bounds, (f"a {'high' if sign > 0 else 'low'} number", "another number"))
    far = sign * numbers[rows, 0] <= np.median(sign * numbers[:, 0])
    far &= ~is_within(regressor.outputs_unchecked(job.series[rows]), bounds)
    chosen = rows[far][:most]
    target = np.full(len(chosen), WITHIN, dtype=np.int64)
    classifier = Within(regressor, goal, outcome.scale)
    request = _request(replace(job, info=replace(job.info, class_names=goal.names)), chosen, target, classifier)
    return model.within(goal), request


SHARES = tuple(2.0 ** (-i / 2) for i in range(13))  # parts of an answer's changes that are tried alone, 1 to 1/64


def measure_curve(request: Request, made: FloatArray, model: FittedModel) -> Mapping[str, FloatArray]:
    """Return changed share, smallest support and validity of sparser changes (answers, points).

    The points are the largest changes of each answer alone, down to 1/64 of them: how few changes are believed, and how
    few already flip the explained classifier. ``made`` answers the queries row by row.
    """
    columns: dict[str, list[FloatArray]] = {"share": [], "support": [], "valid": []}
    # Parts of an answer end abruptly, which the discriminators see: they are not asked.
    others = other_kinds(model.family_names)
    entries, scale = np.maximum(request.n_free(), 1), request.info.scaler.scale
    changed = differs(made, request.X)
    delta = torch.as_tensor(np.where(changed, (made.astype(np.float64) - request.X) / scale, 0.0))
    rank, n_changes = rank_changes(delta).numpy(), changed.sum((1, 2))
    for share in SHARES:
        most = np.ceil(share * n_changes)
        part = request.apply_limits(np.where(rank < most[:, None, None], made, request.X))
        series, n = request.series.with_values(part), differs(part, request.X).sum((1, 2))
        support = model.believe(series, request.target).support[:, torch.as_tensor(others)]
        least = support.amin(1) if support.shape[1] else support.new_full((len(part),), torch.nan)
        proba = request.classifier.outputs_unchecked(series)
        point = {"share": n / entries, "support": least.cpu().double().numpy(), "valid": request.is_reached(proba)}
        for name, column in point.items():
            columns[name].append(np.where(n > 0, column, np.nan))
    return {name: np.stack(column, axis=1) for name, column in columns.items()}


def rank_changes(delta: Tensor) -> Tensor:
    """Return the rank of every entry of residuals (batch, time, features); 0 is the most important.

    Entries are ranked by the mean change of the window around them, so that whole windows are kept or dropped rather
    than single points.
    """
    B, T, n_features = delta.shape
    size = delta.abs()
    score = torch.where(size > 0, _window_mean(size), -1.0).reshape(B, T * n_features)
    order = score.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order)
    positions = torch.arange(T * n_features, device=delta.device).expand_as(order)
    return rank.scatter_(1, order, positions).reshape(B, T, n_features)


def _window_mean(values: Tensor) -> Tensor:
    """Return values (batch, time, features) averaged over a window around each step, of a fifth of the series."""
    width = max(3, values.shape[1] // 5) | 1  # odd
    pad = (width // 2, 0)
    return F.avg_pool2d(values[:, None], (width, 1), stride=1, padding=pad, count_include_pad=False)[:, 0]
