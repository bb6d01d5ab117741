"""Selector: classifiers of every family that no answer is optimised against; it decides which answer is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from sparcets.methods.own.family import FamilyClassifier, FamilyWithin
from sparcets.methods.request import pause
from sparcets.models.base import Classifier
from sparcets.training.device import one_thread_each
from sparcets.training.networks import fill_gaps

NEURAL = "neural"
# Lead of the target over every other class that an answer should have in each family. A linear model is rarely in
# doubt: a small lead says less there than the same one among the votes of trees.
LEAD, LEADS = 0.1, {"convolutions": 0.6}
BATCH = {"cpu": 16, "cuda": 4096}  # series per pass; on a CPU, as many as fit into its caches
ELSEWHERE = "convolutions"  # the family that is asked on another core of a CPU: few large operations, beside many small


@dataclass(frozen=True, eq=False)
class Belief:
    """What the families say of some series.

    Attributes
    ----------
    support
        Share of each family's classifiers that predict the target (batch, families).
    margin
        Probability of the target minus that of the next class, averaged over each family's classifiers (batch,
        families).
    lead
        Margin that each family should have (families,).
    """

    support: Tensor
    margin: Tensor
    lead: Tensor

    @property
    def believed(self) -> Tensor:
        """Whether the majority of every family predicts the target (batch,); True without families."""
        return (self.support > 0.5).all(1)

    @property
    def convincing(self) -> Tensor:
        """Whether it is believed with a lead (batch,), so that it is believed by other judges too."""
        return self.believed & (self.margin >= self.lead).all(1)

    @classmethod
    def join(cls, parts: Sequence[Belief]) -> Belief:
        """Return what is said of the series of all parts, one after the other."""
        return cls(torch.cat([p.support for p in parts]), torch.cat([p.margin for p in parts]), parts[0].lead)

    def select(self, rows: Tensor) -> Belief:
        """Return what is said of some of the series, by a mask or indices."""
        return Belief(self.support[rows], self.margin[rows], self.lead)

    @property
    def n_believing(self) -> Tensor:
        """Number of families whose majority predicts the target (batch,)."""
        return (self.support > 0.5).sum(1)


@dataclass(frozen=True, eq=False)
class Selector:
    """Networks and classifiers of other families, with other seeds than those that answers are optimised against.

    Attributes
    ----------
    networks
        Classifiers of the neural family; may be empty.
    judges
        Classifiers of the other families, those of one family next to each other.
    gaps
        Whether entries of the series may be missing (NaN).
    larger_leads
        Families whose lead has to be larger than usual, and how large.
    """

    networks: Sequence[Classifier]
    judges: Sequence[FamilyClassifier | FamilyWithin]
    gaps: bool = False
    larger_leads: Mapping[str, float] = field(default_factory=LEADS.copy)

    @property
    def families(self) -> tuple[str, ...]:
        """Names of the families, in the order of the columns of a belief."""
        return ((NEURAL,) if self.networks else ()) + tuple(dict.fromkeys(judge.family for judge in self.judges))

    def at_length(self, n_steps: int, of: int) -> Selector:
        """Return the same classifiers for series of ``n_steps`` steps instead of ones padded to ``of``."""
        return replace(self, judges=[judge.at_length(n_steps, of) for judge in self.judges])

    def leads(self, x: Tensor) -> Tensor:
        """Return the margin that each family should have (families,), on the device of some series."""
        return x.new_tensor([self.larger_leads.get(name, LEAD) for name in self.families])

    def ask(self, x: Tensor, raw: Tensor, target: Tensor) -> Belief:
        """Return what all families say.

        Parameters
        ----------
        x, raw
            Series (batch, time, features), standardised and in the data's own units.
        target
            Target classes (batch,).
        """
        if not self.families:
            return Belief(x.new_zeros(len(x), 0), x.new_zeros(len(x), 0), self.leads(x))
        names = list(self.families)
        gains = ELSEWHERE in names and not x.is_cuda and len(x) > BATCH["cpu"]
        elsewhere = names.pop(names.index(ELSEWHERE)) if gains else None
        with one_thread_each(n_workers=1) as worker:
            other = None if elsewhere is None else worker.submit(self.ask_family, elsewhere, x, raw, target)
            said = {name: self.ask_family(name, x, raw, target) for name in names}
            if elsewhere is not None and other is not None:
                said[elsewhere] = other.result()
        support, margin = (torch.stack(column, dim=1) for column in zip(*(said[f] for f in self.families), strict=True))
        return Belief(support, margin, self.leads(x))

    @torch.no_grad()
    def ask_family(self, name: str, x: Tensor, raw: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return support and margin by one family (batch,); see :meth:`ask`."""
        if not len(x):
            return x.new_zeros(0), x.new_zeros(0)
        judges = [judge for judge in self.judges if judge.family == name]

        def ask_part(rows: slice) -> Tensor:
            pause()
            if name == NEURAL:
                return torch.stack([_proba(net, raw[rows], x.device) for net in self.networks])
            measured = fill_gaps(x[rows], otherwise=0.0) if self.gaps else x[rows]
            return torch.cat([judge.votes(measured) for judge in judges])

        parts = range(0, len(x), BATCH[x.device.type])
        votes = [ask_part(slice(start, start + BATCH[x.device.type])) for start in parts]
        return _agreement(torch.cat(votes, dim=1), target)


def _proba(net: Classifier, raw: Tensor, device: torch.device) -> Tensor:
    return net.log_proba(raw.to(net.device)).to(device).float().exp()


def _agreement(votes: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return the share of voters for the target, and the margin of their mean, of votes (voters, batch, classes)."""
    support = (votes.argmax(2) == target).float().mean(0)
    mean = votes.mean(0)
    own = mean.gather(1, target[:, None])
    next_best = mean.scatter(1, target[:, None], -torch.inf).amax(1)
    return support, own[:, 0] - next_best
