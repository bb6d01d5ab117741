"""Refining: a short descent from where the generator left off, for the few queries it did not get across."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.explainers.recipe import Recipe
from sparcets.training.projection import Projection

STEPS = 80
LR = 0.05
DISTANCE = 0.3  # weight of ‖δ‖₁ / (T·F) against the cross-entropy of the voices


def refine(recipe: Recipe, projection: Projection, x: Tensor, start: Tensor, target: Tensor, free: Tensor) -> Tensor:
    """Return residuals that convince all voices as far as a few steps can, all queries at once.

    Parameters
    ----------
    recipe
        The voices.
    projection
        The constraints.
    x, start
        Queries and the residuals to start from (batch, time, features), standardised.
    target
        Wanted classes (batch,).
    free
        Entries that may change (batch, time, features).
    """
    delta = (start * free).clone().requires_grad_(True)
    optimiser = torch.optim.Adam([delta], lr=LR)
    for _ in range(STEPS):
        optimiser.zero_grad()
        held = projection(x, delta * free)
        said = recipe.log_proba(x + held)  # (V, B, K)
        missed = torch.stack([F.nll_loss(voice, target, reduction="none") for voice in said]).mean(0)
        # One descent per query: their losses share nothing, so the gradient of the sum is each one's own.
        loss = (missed + DISTANCE * held.abs().mean((1, 2))).sum()
        (delta.grad,) = torch.autograd.grad(loss, [delta])
        optimiser.step()
    with torch.no_grad():
        refined: Tensor = projection(x, delta * free)
    return refined.detach()
