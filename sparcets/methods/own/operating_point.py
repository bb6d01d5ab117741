"""Operating points: positions on the trade-off between changed entries and transfer, and the choice between them.

How belief falls as fewer entries change is measured on held-out series at fit, and for each query on request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import BoolArray, FloatArray, IntArray, differs
from sparcets.core.outcome import is_within
from sparcets.core.seeding import generator
from sparcets.core.series import Series
from sparcets.data.splits import held_out_split, warn_of_shared_subjects
from sparcets.methods.compatibility import outputs_of
from sparcets.methods.own.generator import WINDOW_DIVISOR, drop_negligible, window_mean
from sparcets.methods.own.model import CPU_BATCH, FittedModel, NumberModel
from sparcets.methods.own.search import answer
from sparcets.methods.request import FitJob, Request
from sparcets.models.base import Classifier, Regressor
from sparcets.models.views import WITHIN, Goal, Within, at_length
from sparcets.training.device import threads_for

WEIGHTS = 9  # number of sparsity weights tried, from the smallest to the largest
RESIDUAL_SCALES = (1.0, 1.2)  # factors of the residuals; larger ones make fewer changes, but rougher ones
FEW_SERIES = 100  # with fewer, none are held out
HELD_OUT = 0.15  # share of the training series that is held out to choose the operating point
MAX_HELD_OUT = 512  # maximum number of held-out queries
SEED = "watched"  # name in the seeds; an older word, kept so that the same seed gives the same result
NEARLY = 0.9  # share of the best score that the default has at least; the others are searched
ADVICE = (
    "To do better: use more training series, or look at the classifier and the data: if other classifiers disagree "
    "with yours, it may rely on features that they do not use."
)
ADVICE_GENERATOR = (
    "To have more queries answered in one pass, which is faster: train longer (train.epochs), lower weights.sparsity, "
    "or use more training series."
)


@dataclass(frozen=True)
class OperatingPoint:
    """A position on the trade-off, measured on training series that were held out.

    Attributes
    ----------
    log_sparsity_weight
        Logarithm of the weight of the sparsity term.
    residual_scale
        Factor of the residuals.
    valid, transfer, changed
        Shares of answers that the classifier accepts, of those that all families believe, and of entries changed.
    """

    log_sparsity_weight: float
    residual_scale: float
    valid: float
    transfer: float
    changed: float

    @property
    def score(self) -> float:
        """Share of answers that are valid and believed; decides the default together with the changes."""
        return min(self.valid, self.transfer)

    def to_dict(self) -> dict[str, float]:
        """Return plain values."""
        return {
            "sparsity_weight": math.exp(self.log_sparsity_weight),
            "scale": self.residual_scale,
            "valid": self.valid,
            "transfer": self.transfer,
            "changed": self.changed,
        }


NO_POINT = OperatingPoint(0.0, 1.0, 0.0, 0.0, 0.0)  # where the search alone answers, the generator's is not used


def best_point(points: Sequence[OperatingPoint]) -> OperatingPoint:
    """Return the point that changes least of those that are nearly as valid and believed as the best.

    >>> points = [OperatingPoint(w, 1.0, 1.0, b, c) for w, b, c in ((0.0, 1.0, 0.4), (1.0, 0.95, 0.2), (2.0, 0.3, 0.1))]
    >>> best_point(points).changed
    0.2
    """
    enough = NEARLY * max(point.score for point in points)
    return min((p for p in points if p.score >= enough), key=lambda p: (p.changed, p.residual_scale))


def log_weight_grid(smallest: float, largest: float) -> tuple[float, ...]:
    """Return the logarithms of the sparsity weights that are tried.

    >>> [round(math.exp(w), 2) for w in log_weight_grid(0.25, 4.0)]
    [0.25, 0.35, 0.5, 0.71, 1.0, 1.41, 2.0, 2.83, 4.0]
    """
    return tuple(float(w) for w in np.linspace(math.log(smallest), math.log(largest), WEIGHTS))


def measure_trade_off(
    model: FittedModel, classifier: Classifier, series: Series, target: IntArray, allowed: BoolArray
) -> list[OperatingPoint]:
    """Measure every sparsity weight and scale of the generator on held-out series in the data's own units.

    Residuals outside ``allowed`` entries (time, features) are left out, as in answers.
    """
    parts = []
    for rows, part in series.by_length():
        n = part.n_steps
        own, of_length = model if part is series else model.at_length(n), at_length(classifier, n, series.n_steps)
        x, targets = own.ensemble.standardise(part.values), torch.as_tensor(target[rows], device=model.device)
        points, free = [], torch.as_tensor(allowed[:n], device=model.device)
        n_entries = int((part.measured & allowed[:n]).sum())
        for weight in model.log_sparsity_weights:
            residual = own.propose(own.ensemble.filled(x), targets, weight)
            for scale in model.residual_scales:
                delta = torch.where(free, drop_negligible(scale * residual), 0.0)
                at = {"weight": weight, "scale": scale}
                points.append(measure_point(own, of_length, part.values, x, delta, targets, n_entries, **at))
        parts.append((len(rows), n_entries, points))
    return parts[0][2] if len(parts) == 1 else average_points(parts)


def measure_point(
    model: FittedModel,
    classifier: Classifier,
    X: FloatArray,
    x: Tensor,
    delta: Tensor,
    target: Tensor,
    n_entries: int,
    *,
    weight: float,
    scale: float = 1.0,
) -> OperatingPoint:
    """Measure residuals (batch, time, features): how many are valid and believed, and how much they change.

    Parameters
    ----------
    model, classifier
        The fitted model and the explained classifier.
    X, x
        Queries in the data's own units, and standardised.
    delta, target
        Standardised residuals, and target classes (batch,).
    n_entries
        Number of entries of all queries that may change.
    weight, scale
        Logarithm of the sparsity weight and factor of the residuals that they come from.
    """
    made = model.ensemble.scaler.add_delta(X, delta.cpu().numpy())
    valid = classifier.predict_unchecked(made) == target.cpu().numpy()
    belief = model.ensemble.believe(x + delta, target)
    return OperatingPoint(
        weight,
        scale,
        valid=float(valid.mean()),
        transfer=float(belief.convincing.float().mean()),
        changed=float(((delta != 0) & ~torch.isnan(x)).sum().float() / max(1, n_entries)),
    )


def average_points(parts: Sequence[tuple[int, int, Sequence[OperatingPoint]]]) -> list[OperatingPoint]:
    """Return the points of all series, from those of the series of each length.

    Parameters
    ----------
    parts
        For each length the number of series, the number of their entries that could change, and their points.
    """
    if not parts:
        return [NO_POINT]
    n_series, n_entries, points = zip(*parts, strict=True)
    return [
        replace(
            same[0],
            valid=float(np.average([p.valid for p in same], weights=n_series)),
            transfer=float(np.average([p.transfer for p in same], weights=n_series)),
            changed=float(np.average([p.changed for p in same], weights=np.maximum(n_entries, 1))),
        )
        for same in zip(*points, strict=True)
    ]


def split_held_out(y: IntArray, seed: int, subjects: Any = None) -> tuple[IntArray, IntArray]:
    """Return rows to train on, and rows to choose the operating point by; the same for both if there are too few.

    Where ``subjects`` (batch,) are known, nobody is in both.
    """
    if len(y) < FEW_SERIES or np.bincount(y).min() < 4:
        rows = np.arange(len(y), dtype=np.int64)
        return rows, rows
    learn, held_out = held_out_split(y, subjects, test_size=HELD_OUT, seed=seed)
    warn_of_shared_subjects(subjects, learn, held_out, "the series that the operating point is chosen by")
    return learn, held_out


def held_out_queries(job: FitJob, rows: IntArray, classifier: Classifier, seed: int) -> tuple[IntArray, IntArray]:
    """Return held-out queries and their targets: every other class in turn, or the one target of the fit."""
    rows = generator(seed, SEED).permutation(rows)[:MAX_HELD_OUT]
    K = job.info.n_classes
    if job.target is None:
        target = (job.y[rows] + 1 + np.arange(len(rows)) % (K - 1)) % K
    else:
        rows = rows[job.y[rows] != job.target]
        target = np.full(len(rows), job.target)
    # Queries that are predicted as their target already would count as answers that change nothing.
    there = outputs_of(classifier, job.series[rows]).argmax(1) == target
    return (rows, target) if there.all() else (rows[~there], target[~there])


def held_out_request(job: FitJob, rows: IntArray, target: IntArray, classifier: Classifier) -> Request:
    """Return the request of some training series, under the standing constraints."""
    series = job.series[rows]
    return Request(series=series, target=target, classifier=classifier, info=job.info, constraints=job.constraints)


def default_point(points: Sequence[OperatingPoint], *, uses_generator: bool) -> OperatingPoint:
    """Return the point at which queries are answered by default: the generator's, or the search without a cap."""
    return best_point(points) if uses_generator else points[-1]


def summarise(points: Sequence[OperatingPoint], *, uses_generator: bool) -> str:
    """Return sentences on how good the default is on training series, and what was measured."""
    default = default_point(points, uses_generator=uses_generator)
    if not default.changed:
        return "No answer could be measured on training series."
    span = f"{min(p.changed for p in points):.2f} to {max(p.changed for p in points):.2f}"
    shares = (
        f"valid for {default.valid:.2f} of the queries, believed by models of every other kind for "
        f"{default.transfer:.2f}, and changes {default.changed:.2f} of the entries ({span} over the trade-off)"
    )
    if not uses_generator:
        return f"On a few training series, the answer of the search is {shares}."
    return (
        f"On training series, one pass of the generator alone is {shares}. explain also searches where that is not "
        "believed, so its answers are better than these."
    )


def trade_off_history(points: Sequence[OperatingPoint]) -> Mapping[str, list[float]]:
    """Return the trade-off as columns for ``history_``."""
    return {f"trade_off_{name}": [p.to_dict()[name] for p in points] for name in points[0].to_dict()}


CAPS = (0.2, 1.0)  # largest shares of the entries at which the search is measured
SHARES = tuple(2.0 ** (-i / 2) for i in range(13))  # parts of an answer's changes that are tried alone, 1 to 1/64
MAX_SEARCHED = 8  # held-out queries that are searched, where the search answers alone


def measure_search(model: FittedModel, request: Request) -> list[OperatingPoint]:
    """Measure the search on held-out series, the queries of a request, at several caps."""
    if not len(request):
        return [NO_POINT]
    entries = request.n_free()
    if request.lengths is not None:
        return average_points(
            [
                (len(rows), int(entries[rows].sum()), measure_search(model.at_length(part.series.n_steps), part))
                for rows, part in request.by_length()
            ]
        )
    points = []
    for cap in CAPS:
        at_most = None if cap == 1.0 else np.floor(cap * entries + 1e-9).astype(np.int64)
        made = answer(replace(request, at_most=at_most), model).counterfactual
        valid = request.is_reached(request.classifier.outputs_unchecked(made, None))
        belief = model.believe(Series(made), request.target)
        points.append(
            OperatingPoint(
                -math.log(cap),
                1.0,
                valid=float(valid.mean()),
                transfer=float(belief.convincing.float().mean()),
                changed=float(differs(made, request.X).sum() / max(1, entries.sum())),
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
    low &= ~is_within(outputs_of(regressor, job.series[held_out]), bounds)
    rows = held_out[low][:MAX_SEARCHED]
    target = np.full(len(rows), WITHIN, dtype=np.int64)
    classifier = Within(regressor, goal, outcome.scale)
    request = held_out_request(replace(job, info=replace(job.info, class_names=goal.names)), rows, target, classifier)
    with threads_for(job.X[:CPU_BATCH].size):
        return measure_search(model.within(goal), request)


def measure_curve(request: Request, made: FloatArray, model: FittedModel) -> Mapping[str, FloatArray]:
    """Return changed share, smallest support and validity of sparser changes (answers, points).

    The points are the largest changes of each answer alone, down to 1/64 of them: how few changes are believed, and how
    few already flip the explained classifier.

    Parameters
    ----------
    request, made
        Queries, and the counterfactuals (answers, time, features) that answer them, row by row.
    model
        The fitted model.
    """
    columns: dict[str, list[FloatArray]] = {"share": [], "support": [], "valid": []}
    entries, scale = np.maximum(request.n_free(), 1), request.info.scaler.scale
    changed = differs(made, request.X)
    delta = torch.as_tensor(np.where(changed, (made.astype(np.float64) - request.X) / scale, 0.0))
    rank, n_changes = rank_changes(delta).numpy(), changed.sum((1, 2))
    for share in SHARES:
        most = np.ceil(share * n_changes)
        part = request.apply_limits(np.where(rank < most[:, None, None], made, request.X))
        series, n = request.series.with_values(part), differs(part, request.X).sum((1, 2))
        support = model.believe(series, request.target).support
        least = support.amin(1) if support.shape[1] else support.new_full((len(part),), torch.nan)
        proba = request.classifier.outputs_unchecked(part, series.lengths)
        point = {"share": n / entries, "support": least.cpu().double().numpy(), "valid": request.is_reached(proba)}
        for name, column in point.items():
            columns[name].append(np.where(n > 0, column, np.nan))
    return {name: np.stack(column, axis=1) for name, column in columns.items()}


def rank_changes(delta: Tensor, divisor: int = WINDOW_DIVISOR) -> Tensor:
    """Return the rank of every entry of residuals (batch, time, features); 0 is the most important.

    Entries are ranked by the mean change of the window around them, so that whole windows are kept or dropped rather
    than single points. The larger ``divisor``, the shorter the windows.
    """
    B, T, n_features = delta.shape
    size = delta.abs()
    score = torch.where(size > 0, window_mean(size, divisor), -1.0).reshape(B, T * n_features)
    order = score.argsort(dim=1, descending=True, stable=True)
    rank = torch.empty_like(order)
    positions = torch.arange(T * n_features, device=delta.device).expand_as(order)
    return rank.scatter_(1, order, positions).reshape(B, T, n_features)
