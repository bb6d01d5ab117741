"""Operating points: positions on the trade-off between changed entries and transfer, and the choice between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier
from sparcets.explainers.sparcets.ensemble import target_log_proba
from sparcets.explainers.sparcets.generator import SHORT_WINDOW_DIVISOR
from sparcets.explainers.sparcets.model import FittedModel
from sparcets.explainers.sparcets.prune import drop_negligible, keep_first, rank_changes

WEIGHTS = 5  # number of sparsity weights tried, from the smallest to the largest
RESIDUAL_SCALES = (1.0, 1.3, 1.6)  # factors of the residuals; larger ones leave the range of the data
CHANGE_PENALTY = 0.2  # penalty of the score for changing every entry
SCALE_PENALTY = 0.1  # penalty of the score for doubling the residuals, which the critic has never seen
REJECTED_PENALTY = 2.0  # larger than any score: answers that the classifier rejects rank below all others
MAX_ENTRIES = 2**22  # of all tried residuals together, to bound the memory


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
        Shares of answers that the classifier and the selector accept, and of mutable entries that changed.
    """

    log_sparsity_weight: float
    residual_scale: float
    valid: float
    transfer: float
    changed: float

    @property
    def score(self) -> float:
        """Share of valid answers that transfer, minus penalties for changes and for scaling; decides the default."""
        return (
            min(self.valid, self.transfer) - CHANGE_PENALTY * self.changed - SCALE_PENALTY * (self.residual_scale - 1)
        )

    def to_dict(self) -> dict[str, float]:
        """Return plain values."""
        return {
            "sparsity_weight": math.exp(self.log_sparsity_weight),
            "scale": self.residual_scale,
            "valid": self.valid,
            "transfer": self.transfer,
            "changed": self.changed,
        }


def best_point(points: Sequence[OperatingPoint]) -> OperatingPoint:
    """Return the point with the highest score; among equals, the one that changes least."""
    return max(points, key=lambda point: (round(point.score, 6), -point.changed))


def log_weight_grid(smallest: float, largest: float) -> tuple[float, ...]:
    """Return the logarithms of the sparsity weights that are tried.

    >>> [round(math.exp(w), 2) for w in log_weight_grid(0.25, 4.0)]
    [0.25, 0.5, 1.0, 2.0, 4.0]
    """
    return tuple(float(w) for w in np.linspace(math.log(smallest), math.log(largest), WEIGHTS))


def measure_trade_off(
    model: FittedModel, classifier: Classifier, X: FloatArray, target: IntArray, n_mutable: int
) -> list[OperatingPoint]:
    """Measure every sparsity weight and scale on held-out series in the data's own units."""
    scaler = model.ensemble.scaler
    x = torch.as_tensor(scaler.transform(X).astype(np.float32), device=model.device)
    targets = torch.as_tensor(target, device=model.device)
    prototype = model.nearest_prototype(x, target)
    points = []
    for weight in model.log_sparsity_weights:
        residual = model.propose(x, targets, weight, prototype)
        for scale in model.residual_scales:
            delta = drop_negligible(scale * residual).cpu().numpy()
            made = scaler.add_delta(X, delta)
            points.append(
                OperatingPoint(
                    weight,
                    scale,
                    valid=float((classifier.predict_unchecked(made) == target).mean()),
                    transfer=float((model.ensemble.selector.predict_unchecked(made) == target).mean()),
                    changed=float((delta != 0).sum() / (len(X) * X.shape[1] * n_mutable)),
                )
            )
    return points


def summarise(points: Sequence[OperatingPoint], chosen: OperatingPoint) -> str:
    """Return a sentence on how good the default is on held-out training series."""
    span = f"{min(p.changed for p in points):.2f} to {max(p.changed for p in points):.2f}"
    return (
        f"On held-out training series, the default answer is valid for {chosen.valid:.2f} of the queries, convinces a "
        f"classifier that had no part in the training in {chosen.transfer:.2f}, and changes {chosen.changed:.2f} of "
        f"the entries (the whole curve: {span})."
    )


def trade_off_history(points: Sequence[OperatingPoint]) -> Mapping[str, list[float]]:
    """Return the trade-off as columns for ``history_``."""
    return {f"trade_off_{name}": [p.to_dict()[name] for p in points] for name in points[0].to_dict()}


@torch.no_grad()
def best_residuals(
    model: FittedModel,
    x: Tensor,
    target: Tensor,
    *,
    prototypes: Sequence[Tensor | None],
    project: Callable[[Tensor, Tensor], Tensor],
    at_most: Tensor | None,
    n_entries: int,
) -> Tensor:
    """Return the best residuals (batch, time, features) of all sparsity weights, scales and prototypes, per query.

    Parameters
    ----------
    model
        The fitted model.
    x, target
        Queries (batch, time, features), standardised, and target classes (batch,).
    prototypes
        Prototypes (batch, time, features), one after the other; a single None if the generator uses none.
    project
        From queries and residuals to residuals within the constraints.
    at_most
        Largest number of changes of each query (batch,), or None.
    n_entries
        Number of entries that could change.
    """
    n_tried = len(model.log_sparsity_weights) * len(prototypes) * len(model.residual_scales)
    rows = max(1, MAX_ENTRIES // (n_tried * x[0].numel()))
    if len(x) > rows:
        parts = [slice(start, start + rows) for start in range(0, len(x), rows)]
        return torch.cat(
            [
                best_residuals(
                    model,
                    x[part],
                    target[part],
                    prototypes=[None if p is None else p[part] for p in prototypes],
                    project=project,
                    at_most=None if at_most is None else at_most[part],
                    n_entries=n_entries,
                )
                for part in parts
            ]
        )
    tried = []
    for weight in model.log_sparsity_weights:
        for prototype in prototypes:
            residual = model.propose(x, target, weight, prototype)
            tried += [project(x, drop_negligible(scale * residual)) for scale in model.residual_scales]
    k = len(tried)
    delta = torch.cat(tried)  # (k * batch, time, features)
    if at_most is not None:
        # By short windows: below a cap, single large changes count more than whole windows of the usual length.
        delta = keep_first(delta, rank_changes(delta, SHORT_WINDOW_DIVISOR), at_most.repeat(k))
    scores = score_residuals(model, x.repeat(k, 1, 1), delta, target.repeat(k), n_entries)
    best = scores.reshape(k, -1).argmax(0)
    return delta.reshape(k, *x.shape)[best, torch.arange(len(x), device=x.device)]


@torch.no_grad()
def score_residuals(model: FittedModel, x: Tensor, delta: Tensor, target: Tensor, n_entries: int) -> Tensor:
    """Return the score of residuals (batch,): mean probability of the target, minus a penalty for changes.

    Half of the weight is the selector's, since no answer was optimised against it. Residuals that the explained
    classifier does not accept rank below all that it does.
    """
    log_proba = model.ensemble.log_proba(x + delta, with_selector=True)  # (M + 1, B, K)
    proba = target_log_proba(log_proba, target).exp()
    by_members, by_selector = proba[:-1].mean(0), proba[-1]
    accepted = log_proba[0].argmax(1) == target
    share = (delta != 0).sum((1, 2)) / max(1, n_entries)
    return (by_members + by_selector) / 2 - CHANGE_PENALTY * share - REJECTED_PENALTY * ~accepted
