"""The loss terms of the paper's section 3, as functions with one value per query, and their weighted sum.

Residuals and series are (batch, time, features) in standardised units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.core.errors import ConfigError
from sparcets.core.settings import LossWeights
from sparcets.motion.skeleton import CATCHING_ARMS, Limb, coordinates
from sparcets.training.networks import blank_padding, true_steps

REPORTED = ("generator", "discriminator", "valid", "changed")  # values that a step reports besides the terms
SOFTNESS = 0.1  # of the smooth count: a change of this many standard deviations counts half


def adversarial(logit: Tensor) -> Tensor:
    """−log D(x_cf), from the discriminator's logit (batch,)."""
    return F.softplus(-logit)


def classification(log_proba: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of C(x_cf), as log-probabilities (batch, classes), with the target class (batch,)."""
    return F.nll_loss(log_proba, target, reduction="none")


def similarity(delta: Tensor, lengths: Tensor | None = None) -> Tensor:
    """‖δ‖₁ / (T·F)."""
    return delta.abs().sum((1, 2)) / (true_steps(delta, lengths) * delta.shape[2])


def count_changed(delta: Tensor, n_mutable: int, lengths: Tensor | None = None) -> Tensor:
    """‖δ‖₀ / (T·F_mutable): the share of mutable entries that changed. It has no gradient."""
    return (delta != 0).sum((1, 2), dtype=torch.float32) / (true_steps(delta, lengths) * n_mutable)


def sparsity(delta: Tensor, n_mutable: int, lengths: Tensor | None = None) -> Tensor:
    """‖δ‖₀ / (T·F_mutable) with the gradient of a smooth count, Σ |δ| / (|δ| + ε).

    The value is the exact count (as in the paper), so that it can be read; the gradient is that of the smooth count
    (straight-through), which pushes every changed entry towards 0, small ones most. The count alone has no gradient:
    in the paper's code it trains nothing.
    """
    size = delta.abs()
    smooth = (size / (size + SOFTNESS)).sum((1, 2)) / (true_steps(delta, lengths) * n_mutable)
    return smooth + (count_changed(delta, n_mutable, lengths) - smooth).detach()


def smoothness(delta: Tensor, lengths: Tensor | None = None) -> Tensor:
    """Σ_t ‖δ_t − δ_{t−1}‖₂ / (T·F), with 0 before the first step (the paper's "jerk")."""
    steps = torch.diff(delta, dim=1, prepend=torch.zeros_like(delta[:, :1]))  # (B, T, F)
    # No step leads from the end into the padding.
    length: Tensor = torch.linalg.vector_norm(blank_padding(steps, lengths), dim=2)  # (B, T)
    return length.sum(1) / (true_steps(delta, lengths) * delta.shape[2])


def discriminator(real: Tensor, fake: Tensor) -> Tensor:
    """½ · (BCE(D(target), 1) + BCE(D(x_cf), 0)), from logits (batch,), per pair."""
    return (F.softplus(-real) + F.softplus(fake)) / 2


@dataclass(frozen=True)
class LossTerm:
    """A loss term of the user's own, which encodes domain knowledge.

    Attributes
    ----------
    weight
        Its weight in the sum.
    function
        Takes queries and counterfactuals (batch, time, features) in the data's own units, returns one value per query.
        Padding is equal in both.

    Examples
    --------
    >>> def ends_where_it_ended(query, counterfactual):
    ...     return (counterfactual - query)[:, -1].abs().mean(1)
    >>> LossTerm(weight=10.0, function=ends_where_it_ended).weight
    10.0
    """

    weight: float
    function: Callable[[Tensor, Tensor], Tensor]


class Objective:
    """Weighted sum of named terms, the paper's five and the user's own; a weight of 0 leaves the term out altogether.

    Without ``trains_sparsity``, the sparsity term is reported only, which is the published behaviour. The last
    ``n_side`` features are side inputs, which the user's terms are not given.
    """

    def __init__(
        self,
        weights: LossWeights,
        *,
        n_mutable: int,
        trains_sparsity: bool,
        domain_losses: Mapping[str, LossTerm] | None = None,
        n_side: int = 0,
    ) -> None:
        own = dict(domain_losses or {})
        for name, term in own.items():
            if name in weights.to_dict():
                raise ConfigError(f"the term {name!r} is one of the five already; give yours another name.")
            if name in REPORTED:
                raise ConfigError(f"{name!r} is the name of another value in the history; give your term another name.")
            if not isinstance(term, LossTerm):
                raise ConfigError(f"the term {name!r} must be a LossTerm(weight, function), got {type(term).__name__}.")
        self.n_side = n_side
        self.n_mutable = n_mutable
        self.trains_sparsity = trains_sparsity
        self.domain_losses = {name: term for name, term in own.items() if term.weight != 0}
        self.weights = {name: w for name, w in weights.to_dict().items() if w != 0}
        self.weights |= {name: term.weight for name, term in self.domain_losses.items()}
        self.names = tuple(self.weights)

        self.needs_classifier = "classification" in self.weights
        self.needs_discriminator = "adversarial" in self.weights

    def __call__(
        self,
        *,
        delta: Tensor,
        target: Tensor,
        log_proba: Tensor,
        logit: Tensor,
        query_raw: Tensor,
        counterfactual_raw: Tensor,
        lengths: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the weighted sum, averaged over the batch, and the mean of each term in the order of ``names``.

        Residuals are standardised, and 0 in padding. Log-probabilities of the classifier (batch, classes) and logits of
        the discriminator (batch,) are empty if no term needs them. Series in the data's own units are for the user's
        loss terms.
        """
        count = sparsity if self.trains_sparsity else count_changed  # in the published code, it is reported only
        terms: dict[str, Callable[[], Tensor]] = {
            "adversarial": lambda: adversarial(logit),
            "classification": lambda: classification(log_proba, target),
            "similarity": lambda: similarity(delta, lengths),
            "sparsity": lambda: count(delta, self.n_mutable, lengths),
            "smoothness": lambda: smoothness(delta, lengths),
        }
        measured = slice(query_raw.shape[2] - self.n_side)
        for name in self.domain_losses:
            terms[name] = partial(self._own_term, name, query_raw[..., measured], counterfactual_raw[..., measured])
        values = {name: terms[name]() for name in self.names}
        total = torch.stack([weight * values[name].mean() for name, weight in self.weights.items()]).sum()
        return total, torch.stack([value.detach().mean() for value in values.values()])

    def _own_term(self, name: str, query: Tensor, counterfactual: Tensor) -> Tensor:
        value = self.domain_losses[name].function(query, counterfactual)
        if not isinstance(value, Tensor) or value.shape != query.shape[:1]:
            came = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
            raise ConfigError(
                f"the term {name!r} must return one value per query, a tensor of {len(query)}, got {came}."
            )
        return value


__all__ = ["CATCHING_ARMS", "limb_lengths"]


def limb_lengths(feature_names: Sequence[str], limbs: Sequence[Limb]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a loss term for constant distances between points of the body.

    Its value is the mean over limbs and steps of the absolute difference between each limb's length and that of the
    query, in the data's own units: bones do not stretch, whatever the class.

    Parameters
    ----------
    feature_names
        Names of the features; a point ``Elbow`` has ``Elbow_x``, ``Elbow_y`` and perhaps ``Elbow_z``.
    limbs
        Pairs of points.

    Examples
    --------
    >>> term = limb_lengths(["A_x", "A_y", "B_x", "B_y"], [("A", "B")])
    >>> query = torch.tensor([[[0.0, 0.0, 3.0, 4.0]]])
    >>> term(query, torch.tensor([[[0.0, 0.0, 6.0, 8.0]]]))
    tensor([5.])
    """
    columns = {point: list(coordinates(point, feature_names)) for limb in limbs for point in limb}
    starts = [columns[a] for a, _ in limbs]
    ends = [columns[b] for _, b in limbs]

    def lengths(x: Tensor) -> Tensor:
        parts = [torch.linalg.vector_norm(x[..., a] - x[..., b], dim=-1) for a, b in zip(starts, ends, strict=True)]
        return torch.stack(parts, dim=-1)  # (B, T, limbs)

    def term(query: Tensor, counterfactual: Tensor) -> Tensor:
        return (lengths(counterfactual) - lengths(query)).abs().mean((1, 2))

    return term
