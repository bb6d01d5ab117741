"""The search: which pieces of a change convince the whole ensemble.

A start is a change that is known to be enough, or nearly: the difference to a real series of the target class, or the
residual of the generator. It is cut into pieces where it crosses zero, so that a piece can be left out without a jump
in the series. In every round, the gradients of the members say what each piece contributes, and the pieces that
contribute most per entry are kept: fewer after a round that convinced the members, more after one that did not. The
values may deviate from the start, smoothly and where members are to be convinced. What the rounds hold are the
candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.methods.own.candidates import drop_negligible
from sparcets.methods.own.ensemble import Ensemble, target_log_proba
from sparcets.methods.own.generator import window_mean
from sparcets.methods.request import pause
from sparcets.training.device import threads_for
from sparcets.training.projection import Projection

ROWS = {"cpu": 6, "cuda": 6144}  # rows searched at a time: those of one query, or of many
FIRST = (0.0, -0.6, -1.2)  # logarithm of the share of entries kept in the first rounds
STEPS = (0.4, 0.25, 0.15)  # by which it then falls or rises, round by round
LADDER = (-0.5, -0.35, -0.22, -0.1, 0.1, 0.25, 0.4)  # further shares tried at last, relative to the last one
PARTS = 14  # pieces of a feature, at most
SMOOTHED = 20  # a change is averaged over 1/20 of the series before it is cut
MEMORY = 0.8  # weight of the earlier rounds in what a piece contributes
MAX_WEIGHT = 5.0  # of a head that is far from convinced
ENOUGH = 0.2  # log-odds of the target at which a head counts as convinced, at most
FEW_HEADS = 4  # with more, one of the auxiliary heads may remain unconvinced
SPREADS = (3, 8)  # deviations are smooth over so many parts of the series
RATE, DECAY, INERTIA = 0.3, 0.06, 0.7  # of the deviations, per round
# Where the explained classifier alone is to be convinced, by any change that does it: larger deviations, more rounds.
RATE_ALONE, FURTHER = 0.5, 20 * (0.0,)
MAX_DEVIATION = 3.0  # standard deviations: no values that no series has
CONVINCED_RATE = 0.5  # of it where the members are convinced already


@dataclass(frozen=True, eq=False)
class Starts:
    """Where the search of some queries begins; several rows may belong to one query.

    Attributes
    ----------
    x, change
        Queries and changes to start from (rows, time, features), standardised.
    target
        Target classes (rows,).
    deviates
        Whether the values may deviate from the start (rows,); if not, only parts of it are taken.
    most
        Largest share of the editable entries that is kept (rows,).
    """

    x: Tensor
    change: Tensor
    target: Tensor
    deviates: Tensor
    most: Tensor

    def part(self, first: int, size: int) -> Starts:
        """Return ``size`` rows from the given one on; beyond the end, the last one is repeated."""
        rows = torch.arange(first, first + size, device=self.x.device).clamp(max=len(self.x) - 1)
        return Starts(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def search_pieces(
    ensemble: Ensemble, projection: Projection, starts: Starts, *, explained_alone: bool = False
) -> list[Tensor]:
    """Return candidate residuals (rows, time, features), one tensor per round and one per step of the ladder.

    Parameters
    ----------
    ensemble
        The classifiers to be convinced.
    projection
        The constraints.
    starts
        Queries and changes to start from.
    explained_alone
        Whether the explained classifier alone is to be convinced.
    """
    # Always as many rows at a time: sums over another number of rows differ in their last bits, which a search
    # amplifies. So an answer does not depend on the queries that it is searched with.
    n, size = len(starts.x), ROWS[starts.x.device.type]
    members = _Members(ensemble, projection, explained_alone=explained_alone)
    with threads_for(size * starts.x[0].numel()):
        parts = [_search_rows(members, starts.part(first, size)) for first in range(0, n, size)]
    return [torch.cat(candidates)[:n] for candidates in zip(*parts, strict=True)]


def _search_rows(members: _Members, starts: Starts) -> tuple[Tensor, ...]:
    """Search all rows at once; see :func:`search_pieces`."""
    x, projection = starts.x, members.projection
    pieces = Pieces(x, starts.change, projection)
    rate = (RATE_ALONE if len(members.members) == 1 else RATE) * starts.deviates[:, None, None].to(x.dtype)
    values, velocity = starts.change, torch.zeros_like(x)
    kept, mask = x.new_zeros(len(x)), torch.ones_like(x)
    weight, held = None, []
    for step in (*FIRST[1:], *STEPS, *(FURTHER if members.alone else ())):
        pause()
        gradient, convinced, weight = members.ask(starts, mask * values, weight)
        pieces.credit(gradient * values)
        velocity = INERTIA * velocity + (1 - INERTIA) * _smooth_direction(gradient * mask, mask)
        needed = torch.where(convinced, CONVINCED_RATE, torch.ones_like(kept))[:, None, None]
        deviation = (values - starts.change + rate * needed * velocity) * (1 - DECAY)
        deviation = deviation.clamp(-MAX_DEVIATION, MAX_DEVIATION)
        values = starts.change + deviation
        kept = torch.full_like(kept, step) if step < 0 else torch.where(convinced, kept - step, kept + step)
        kept = torch.minimum(kept, starts.most.log())
        mask = pieces.keep(kept)
        held.append(mask * values)
    held += [pieces.keep(torch.minimum(kept + step, starts.most.log())) * values for step in LADDER]
    candidates: Tensor = projection(x.repeat(len(held), 1, 1), drop_negligible(torch.cat(held)))
    return candidates.chunk(len(held))


class _Members:
    """The classifiers to be convinced; see :func:`search_pieces`."""

    def __init__(self, ensemble: Ensemble, projection: Projection, *, explained_alone: bool) -> None:
        self.ensemble, self.projection, self.alone = ensemble, projection, explained_alone
        self.members = ensemble.members()[: 1 if explained_alone else None]
        n_heads = ensemble.heads()[len(self.members) - 1].stop
        self.levels = ensemble.levels[:n_heads].log()  # (heads, classes)

    def ask(self, starts: Starts, delta: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return in which direction changes convince, whether the members are (rows,), and the weights of the heads.

        A head counts the more the less it is convinced, since the least convinced family decides.

        Parameters
        ----------
        starts, delta
            The queries, and the changes of them (rows, time, features).
        weight
            Weights of the heads (heads, rows) in the round before.
        """
        wanted = _log_odds(self.levels[:, starts.target])  # (heads, rows)
        change = delta.detach().requires_grad_()
        raw = self.ensemble.to_raw(starts.x + self.projection(starts.x, change))
        log_proba = torch.cat([member(raw) for member in self.members])
        odds = _log_odds(target_log_proba(log_proba, starts.target))
        now = (1 / F.softplus(odds.detach() - wanted)).clamp(max=MAX_WEIGHT)
        now = now if weight is None else (now + weight) / 2
        # The losses of the rows share nothing, so the gradient of their sum is each row's own.
        (gradient,) = torch.autograd.grad((now * odds).sum(), change)
        enough = odds >= wanted.clamp(max=ENOUGH)
        n_left = (~enough[1:]).sum(0)
        convinced = enough[0] & (n_left <= (1 if len(enough) > FEW_HEADS else 0))
        return gradient, convinced, now


def _log_odds(log_proba: Tensor) -> Tensor:
    log_proba = log_proba.clamp(max=-1e-6)
    return log_proba - torch.log1p(-log_proba.exp())


def _smooth_direction(gradient: Tensor, mask: Tensor) -> Tensor:
    """Return a gradient (rows, time, features) smoothed over time at several scales, of unit size in each row."""
    total = torch.zeros_like(gradient)
    for parts in SPREADS:
        smooth = window_mean(window_mean(gradient, parts), parts) * mask
        total = total + smooth / smooth.square().mean((1, 2), keepdim=True).sqrt().clamp(min=1e-12)
    return total / len(SPREADS)


class Pieces:
    """The pieces of a change, and what each has contributed so far.

    Parameters
    ----------
    x, change
        Queries, and changes of them (rows, time, features), standardised.
    projection
        The constraints: which entries may change; features that change together only are cut alike.
    """

    def __init__(self, x: Tensor, change: Tensor, projection: Projection) -> None:
        self.groups = projection.groups()
        for members in self.groups:
            first = change.index_select(2, members[:1])
            change = change.index_copy(2, members, first.expand(-1, -1, len(members)))
        self.piece = cut_pieces(change)  # (rows, time, features)
        self.editable = projection.editable_entries(x).expand_as(change)
        self.size = self._sum(self.editable.to(change.dtype)).clamp(min=1)  # (rows, pieces, features)
        self.n_entries = self.editable.sum((1, 2))
        self.credits = torch.zeros_like(self.size)

    def credit(self, gain: Tensor) -> None:
        """Add what the entries (rows, time, features) contribute, to first order."""
        of_piece = self._sum(torch.where(self.editable, gain, 0.0)) / self.size
        self.credits = MEMORY * self.credits + of_piece / of_piece.abs().mean((1, 2), keepdim=True).clamp(min=1e-12)

    def keep(self, log_share: Tensor) -> Tensor:
        """Return masks (rows, time, features) of the best pieces, with shares (rows,) of the editable entries."""
        score = self.credits.gather(1, self.piece)
        for members in self.groups:
            shared = score.index_select(2, members).mean(2, keepdim=True)
            score = score.index_copy(2, members, shared.expand(-1, -1, len(members)))
        score = torch.where(self.editable, score, -torch.inf).flatten(1)
        order = score.argsort(dim=1, descending=True, stable=True)
        n = (log_share.exp() * self.n_entries + 1e-3).floor()
        kept = (torch.arange(score.shape[1], device=score.device) < n[:, None]).to(log_share.dtype)
        return torch.zeros_like(score).scatter_(1, order, kept).reshape(self.piece.shape)

    def _sum(self, values: Tensor) -> Tensor:
        """Return sums over each piece (rows, pieces, features)."""
        B, T, n_features = values.shape
        return values.new_zeros(B, min(PARTS, T), n_features).scatter_add_(1, self.piece, values)


def cut_pieces(change: Tensor) -> Tensor:
    """Return the piece that every entry of changes (rows, time, features) belongs to, counted in each feature.

    Pieces end where the change, smoothed a little, crosses zero; none is shorter than a fourteenth of the series.

    >>> change = torch.tensor([1.0, 2, 1, -1, -2, -1, 1, 1]).reshape(1, 8, 1)
    >>> cut_pieces(change).flatten().tolist()
    [0, 0, 0, 1, 1, 1, 2, 2]
    """
    T = change.shape[1]
    shortest = max(2, -(-T // PARTS))
    smooth = window_mean(change, SMOOTHED)
    crosses = (smooth[:, 1:] > 0) != (smooth[:, :-1] > 0)
    piece = torch.zeros(change.shape, dtype=torch.int64, device=change.device)
    last = torch.zeros_like(piece[:, 0])
    for t in range(shortest, T - shortest + 1):
        starts = crosses[:, t - 1] & (t - last >= shortest)
        last = torch.where(starts, t, last)
        piece[:, t] = starts
    return piece.cumsum(1).clamp(max=PARTS - 1)
