"""The five terms of the paper's section 3: pure functions, each returning one value per query.

Residuals and series are (batch, time, features) in standardised units.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

SOFTNESS = 0.1  # of the smooth count: a change of this many standard deviations counts half


def adversarial(logit: Tensor) -> Tensor:
    """−log D(x_cf), from the discriminator's logit (batch,)."""
    return F.softplus(-logit)


def hinge_adversarial(logit: Tensor) -> Tensor:
    """−D(x_cf), the generator's side of the hinge loss (batch,)."""
    return -logit


def classification(log_proba: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of C(x_cf), as log-probabilities (batch, classes), with the target class (batch,)."""
    return F.nll_loss(log_proba, target, reduction="none")


def similarity(delta: Tensor) -> Tensor:
    """‖δ‖₁ / (T·F)."""
    return delta.abs().mean((1, 2))


def count_changed(delta: Tensor, n_mutable: int) -> Tensor:
    """‖δ‖₀ / (T·F_mutable): the share of mutable entries that changed. It has no gradient."""
    T = delta.shape[1]
    return (delta != 0).sum((1, 2)) / (T * n_mutable)


def sparsity(delta: Tensor, n_mutable: int, openness: Tensor | None = None) -> Tensor:
    """‖δ‖₀ / (T·F_mutable) with the gradient of a smooth count, Σ |δ| / (|δ| + ε).

    The value is the exact count (as in the paper), so that it can be read; the gradient is that of the smooth count
    (straight-through), which pushes every changed entry towards 0, small ones most. The count alone has no gradient:
    in the paper's code, this term trained nothing. Where gates decide, their ``openness`` (batch, time, features) takes
    the place of the smooth count: a large change behind a gate is hard to make small, and easy to shut.
    """
    size = delta.abs()
    soft = size / (size + SOFTNESS) if openness is None else openness
    smooth = soft.sum((1, 2)) / (delta.shape[1] * n_mutable)
    return smooth + (count_changed(delta, n_mutable) - smooth).detach()


def smoothness(delta: Tensor) -> Tensor:
    """Σ_t ‖δ_t − δ_{t−1}‖₂ / (T·F), with 0 before the first step (the paper's "jerk")."""
    T, n_features = delta.shape[1:]
    steps = torch.diff(delta, dim=1, prepend=torch.zeros_like(delta[:, :1]))  # (B, T, F)
    length: Tensor = torch.linalg.vector_norm(steps, dim=2)  # (B, T)
    return length.sum(1) / (T * n_features)


def discriminator(real: Tensor, fake: Tensor) -> Tensor:
    """½ · (BCE(D(target), 1) + BCE(D(x_cf), 0)), from logits (batch,), per pair."""
    return (F.softplus(-real) + F.softplus(fake)) / 2


def hinge_discriminator(real: Tensor, fake: Tensor) -> Tensor:
    """max(0, 1 − D(target)) + max(0, 1 + D(x_cf)), from logits (batch,), per pair."""
    return F.relu(1 - real) + F.relu(1 + fake)
