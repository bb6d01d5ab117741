"""Operating points: positions on the trade-off between changed entries and transfer, and the choice between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.core.arrays import BoolArray, FloatArray, IntArray
from sparcets.core.seeding import generator
from sparcets.core.series import Series
from sparcets.data.splits import held_out_split, warn_of_shared_subjects
from sparcets.methods.own.candidates import drop_negligible
from sparcets.methods.own.model import FittedModel
from sparcets.methods.request import FitJob, Request
from sparcets.models.base import Classifier
from sparcets.models.views import at_length

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
    there = classifier.predict_unchecked(job.X[rows], job.steps(rows)) == target
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
