"""Batches of each epoch: queries, their target classes, and real series of those classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from sparcets.arrays import IntArray
from sparcets.errors import DataError
from sparcets.seeding import generator
from sparcets.training.loop import Batch


class Pairing:
    """Batches of equal size; an epoch sees every query once (the last batch is filled up from the others).

    Each epoch is drawn from its own seed, so that a training can go on at any epoch without what came before.

    Parameters
    ----------
    y
        Labels of the training series (batch,).
    target
        The one class to be reached, or None for every class: then each query is sent to a random other class.
    batch_size
        Queries per batch.
    balance
        Whether queries and targets are cut to equal numbers first, as the published code does.
    seed
        Of all draws.
    device
        Where the batches are needed; an epoch's are brought there at once.
    min_batches
        Batches of an epoch; where the queries make fewer, they come several times.
    """

    def __init__(
        self,
        y: IntArray,
        *,
        target: int | None,
        batch_size: int,
        balance: bool,
        seed: int,
        device: torch.device,
        min_batches: int = 1,
    ) -> None:
        self.min_batches = min_batches
        self.y, self.target, self.seed, self.device = y, target, seed, device
        self.classes, self.position = np.unique(y, return_inverse=True)  # those that have series
        self.members = {int(k): np.flatnonzero(y == k) for k in self.classes}
        self.queries = np.arange(len(y)) if target is None else np.flatnonzero(y != target)
        if not len(self.queries):
            raise DataError("every training series is in the target class, so there is no query to learn from.")
        if target is not None and target not in self.members:
            raise DataError("no training series is in the target class, so there is nothing to learn it from.")
        if balance and target is not None:
            rng = generator(seed, "balance")
            n = min(len(self.queries), len(self.members[target]))
            self.queries = np.sort(rng.permutation(self.queries)[:n])
            self.members[target] = np.sort(rng.permutation(self.members[target])[:n])
        self.batch_size = min(batch_size, len(self.queries))

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return max(self.min_batches, -(-len(self.queries) // self.batch_size))

    def __call__(self, epoch: int) -> Iterator[Batch]:
        """Yield the batches of an epoch: rows of queries, target classes, rows of real series of those classes."""
        rng = generator(self.seed, f"epoch {epoch}")
        order = np.resize(rng.permutation(self.queries), len(self) * self.batch_size)
        if self.target is None:
            # Any class but the query's own, all equally likely.
            n_classes = len(self.classes)
            targets = self.classes[(self.position[order] + rng.integers(1, n_classes, len(order))) % n_classes]
        else:
            targets = np.full(len(order), self.target)
        real = np.empty_like(order)
        for k in self.members:
            places = np.flatnonzero(targets == k)
            if len(places):
                real[places] = self._real(k, len(places), rng)
        columns = {"query": order, "target": targets, "real": real}
        batches = {name: torch.from_numpy(v.reshape(len(self), -1)).to(self.device) for name, v in columns.items()}
        for i in range(len(self)):
            yield {name: rows[i] for name, rows in batches.items()}

    def _real(self, k: int, n: int, rng: np.random.Generator) -> IntArray:
        """Return ``n`` real series of class k: each once before any comes twice."""
        rounds = -(-n // len(self.members[k]))
        drawn: IntArray = np.concatenate([rng.permutation(self.members[k]) for _ in range(rounds)])
        return drawn[:n]
