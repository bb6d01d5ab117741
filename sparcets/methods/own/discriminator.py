"""Discriminators: models in closed form that tell the method's own answers from recordings.

As the discriminator of a GAN they learn, in rounds, from what the method gives: here from its answers to some training
series. Those in the ensemble have to be convinced by the search; others, with other seeds, sit in the selector. One
kind sees convolutions by a linear head, another how much features move from step to step, by trees: each sees other
artefacts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.core.seeding import generator, spawn
from sparcets.core.series import FloatArray, IntArray, Series
from sparcets.methods.own.convolutions import RandomConvolutions
from sparcets.methods.own.family import RidgeHead, by_length, draw_features
from sparcets.methods.own.forest import Forest

ORDINARY = 0.05  # share of the recordings that look less real than an answer has to, for the selector
TYPICAL = 0.4  # of those, for the ensemble; an answer that looks more real still convinces it no more
MOST = 400  # recordings, and answers, that a discriminator learns from
OWN_SERIES = 30  # recordings of a class that has discriminators of its own; those of other classes have some together
TREES, DEPTH = 100, 9
MANY = 500  # features that have a linear head
ORDERS = (1, 2, 3)  # of differences between steps


class Moves(nn.Module):
    """Series (batch, time, features) to the largest and the mean difference of each order, of every feature."""

    def forward(self, x: Tensor) -> Tensor:
        """Return statistics (batch, 2 * orders * features)."""
        moves, found = x, []
        for _ in ORDERS:
            moves = moves.diff(dim=1) if moves.shape[1] > 1 else torch.zeros_like(moves)
            found += [moves.abs().amax(1), moves.abs().mean(1)]
        return torch.cat(found, dim=1)


class Discriminator(nn.Module):
    """A head that tells answers from recordings by features of one kind.

    Parameters
    ----------
    head
        Linear, or trees; of two classes, answers and recordings.
    recorded
        What it gives recordings that it has not learnt from, ascending (series,).
    """

    recorded: Tensor

    def __init__(self, head: RidgeHead | Forest, recorded: Tensor) -> None:
        super().__init__()
        self.head = head
        self.register_buffer("recorded", recorded)

    @classmethod
    def fit(cls, values: Tensor, y: IntArray, seed: int) -> Discriminator:
        """Learn from features (batch, values) of answers, of class 0, and of recordings, of class 1.

        Many features have a linear head, few have trees, which see what belongs together.
        """
        head: RidgeHead | Forest
        left_out: FloatArray | None
        if values.shape[1] > MANY:
            head, left_out = RidgeHead.fit(values, y, 2)
        else:
            head, left_out = Forest.fit(values, y, 2, n_trees=TREES, max_depth=DEPTH, seed=seed)
        assert left_out is not None
        recorded = np.sort(left_out[y == 1, 1])
        recorded = recorded[~np.isnan(recorded)]  # of few trees, a series may be in every bag
        return cls(head, torch.as_tensor(recorded, dtype=torch.float32, device=values.device))

    @torch.no_grad()
    def rank(self, values: Tensor) -> Tensor:
        """Return the share of recordings that look no more real (batch,) than series with these features."""
        given = self.head.votes(values).mean(1) if isinstance(self.head, Forest) else self.head(values)
        n = torch.searchsorted(self.recorded, given[:, 1].contiguous(), right=True)
        return n.float() / max(1, len(self.recorded))


class Discriminators(nn.Module):
    """Discriminators of all kinds for answers to every class.

    Parameters
    ----------
    convolutions
        Features of the linear ones; the others see :class:`Moves`.
    parts
        Discriminators of each kind, for one class or several.
    part
        Which of the parts is asked about answers to each class (classes,).
    """

    part: Tensor

    def __init__(
        self, convolutions: RandomConvolutions, parts: Sequence[Sequence[Discriminator]], part: Tensor
    ) -> None:
        super().__init__()
        self.features = nn.ModuleList([convolutions, Moves()])
        self.parts = nn.ModuleList(nn.ModuleList(kinds) for kinds in parts)
        self.register_buffer("part", part)

    @classmethod
    def fit(
        cls,
        recordings: Series,
        y: IntArray,
        answers: Series,
        target: IntArray,
        n_classes: int,
        seed: int,
        *,
        judges: bool = False,
        device: torch.device | str = "cpu",
    ) -> Discriminators:
        """Learn from recordings and from answers.

        Parameters
        ----------
        recordings, y
            Standardised series without gaps, and their classes (batch,).
        answers, target
            Such series that the method gave, and their target classes (answers,).
        n_classes
            Number of classes.
        seed
            Same seed, same discriminators.
        judges
            Whether answers are chosen by them; else the search has to convince them.
        device
            Of the discriminators.
        """
        rng = generator(seed, "discriminators")
        wanted = np.unique(target)
        # A class that no answer is of has none of its own: it is asked of those of all classes together.
        enough = all(min((y == k).sum(), (target == k).sum()) >= OWN_SERIES for k in np.unique(y))
        groups = [[k] for k in wanted] if enough else [list(wanted)]
        chosen = [
            [rng.permutation(np.flatnonzero(np.isin(classes, group)))[:MOST] for classes in (target, y)]
            for group in groups
        ]
        series = Series.join([part for made, real in chosen for part in (answers[made], recordings[real])])
        convolutions, convolved = draw_features("convolutions", series, seed, scale=None, sharp=judges, device=device)
        moves = Moves()
        moved = by_length(series, lambda part: moves(torch.as_tensor(part.values, device=device)))
        sizes, parts = [len(made) + len(real) for made, real in chosen], []
        for number, (made, real) in enumerate(chosen):
            is_real, own = np.repeat([0, 1], [len(made), len(real)]), spawn(seed, f"part {number}")
            kinds = (torch.split(values, sizes)[number] for values in (convolved, moved))
            parts.append([Discriminator.fit(values, is_real, own) for values in kinds])
        part = np.zeros(n_classes, dtype=np.int64)
        part[wanted] = np.arange(len(wanted)) if enough else 0
        assert isinstance(convolutions, RandomConvolutions)
        return cls(convolutions, parts, torch.as_tensor(part, device=device))

    @torch.no_grad()
    def rank(self, x: Tensor, target: Tensor) -> Tensor:
        """Return, by kind, the share of recordings that look no more real than answers (kinds, batch).

        Parameters
        ----------
        x, target
            Standardised series without gaps (batch, time, features), of one length, and their target classes (batch,).
        """
        values = [features(x) for features in self.features]
        ranks, part = x.new_zeros(len(values), len(x)), self.part[target]
        for number in sorted(set(part.tolist())):
            rows = (part == number).nonzero()[:, 0]
            for kind, discriminator in enumerate(self.parts[number]):
                ranks[kind, rows] = discriminator.rank(values[kind][rows])
        return ranks

    def to_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return all tensors by name; :meth:`from_arrays` restores the discriminators."""
        return {name: tensor.cpu().contiguous().numpy() for name, tensor in self.state_dict().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Discriminators:
        """Return discriminators from the output of :meth:`to_arrays`."""
        tensors: dict[str, dict[str, Tensor]] = {}
        for name, array in arrays.items():
            module, _, rest = name.rpartition(".")
            tensors.setdefault(module, {})[rest] = torch.tensor(array)

        def restore(name: str) -> Discriminator:
            own = tensors[f"{name}.head"]
            return Discriminator(RidgeHead(**own) if "weight" in own else Forest(**own), tensors[name]["recorded"])

        numbers = range(1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("parts.")))
        parts = [[restore(f"parts.{number}.{kind}") for kind in (0, 1)] for number in numbers]
        return cls(RandomConvolutions(**tensors["features.0"]), parts, tensors[""]["part"])
