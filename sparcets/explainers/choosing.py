"""Choosing: several answers to every query are tried at once, and the one of most worth is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sparcets.explainers.cutting import keep_first, rank_changes, without_faint
from sparcets.explainers.recipe import Recipe, of_target
from sparcets.networks.gates import SHORT
from sparcets.trade_off import PRICE

ROOM = 2**22  # entries of all tries together


@torch.no_grad()
def choose(
    recipe: Recipe,
    x: Tensor,
    target: Tensor,
    *,
    guides: Sequence[Tensor | None],
    hold: Callable[[Tensor, Tensor], Tensor],
    at_most: Tensor | None,
    entries: int,
) -> Tensor:
    """Return the best residuals (batch, time, features) of all strengths, loudnesses and guides, standardised.

    Parameters
    ----------
    recipe
        What was fitted.
    x, target
        Queries (batch, time, features), standardised, and wanted classes (batch,).
    guides
        Real series (batch, time, features) to follow, one after the other; one None where none is followed.
    hold
        Takes queries and residuals, returns residuals within the constraints.
    at_most
        Largest number of changes of each query (batch,), or None.
    entries
        Number of entries that could change, of which changes are a share.
    """
    tries = len(recipe.strengths) * len(guides) * len(recipe.louder)
    rows = max(1, ROOM // (tries * x[0].numel()))
    if len(x) > rows:  # all tries of all queries at once might fill the memory
        parts = [slice(start, start + rows) for start in range(0, len(x), rows)]
        own = [[None if g is None else g[part] for g in guides] for part in parts]
        caps = [None if at_most is None else at_most[part] for part in parts]
        each = zip(parts, own, caps, strict=True)
        return torch.cat(
            [choose(recipe, x[p], target[p], guides=g, hold=hold, at_most=c, entries=entries) for p, g, c in each]
        )
    tried = []
    for strength in recipe.strengths:
        for guide in guides:
            delta = recipe.propose(x, target, strength, guide)
            tried += [hold(x, without_faint(factor * delta)) for factor in recipe.louder]
    delta = torch.cat(tried)  # (tries * batch, time, features)
    if at_most is not None:
        # In short stretches: below a cap, single strong entries weigh more than whole ones of the usual length.
        delta = keep_first(delta, rank_changes(delta, SHORT), at_most.repeat(len(tried)))
    found = worth(recipe, x.repeat(len(tried), 1, 1), delta, target.repeat(len(tried)), entries)
    best = found.reshape(len(tried), -1).argmax(0)
    return delta.reshape(len(tried), *x.shape)[best, torch.arange(len(x), device=x.device)]


@torch.no_grad()
def worth(recipe: Recipe, x: Tensor, delta: Tensor, target: Tensor, entries: int) -> Tensor:
    """Return how far an answer is believed, at a price for every change (batch,).

    Half of the word is the referee's: it had no part in the training, so that no answer was made to please it. What the
    explained classifier itself does not accept comes after everything that it does.
    """
    said = recipe.hear([*recipe.voices, recipe.referee], x + delta)  # (V + 1, B, K)
    believed = of_target(said, target).exp()
    by_voices, by_referee = believed[:-1].mean(0), believed[-1]
    accepted = said[0].argmax(1) == target
    share = (delta != 0).sum((1, 2)) / max(1, entries)
    return (by_voices + by_referee) / 2 - PRICE * share - 2.0 * ~accepted
