"""The training loop: epochs, batches and callbacks, for every kind of step."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

from sparcets.core.errors import DataError
from sparcets.core.progress import Bar
from sparcets.core.seeding import generator, spawn
from sparcets.core.series import IntArray
from sparcets.training.device import seeded

EXPLODED = 1e6  # a loss this large does not recover
DEAD_CHECKS = 3  # consecutive checks without a single changed entry
LOST_CHECKS = 5  # consecutive checks in which the discriminator is perfect and no counterfactual is valid


class Callback:
    """Base: does nothing."""

    stop: bool = False

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Handle the named values of one epoch."""

    def on_check(self, steps: int, logs: Mapping[str, float]) -> None:
        """Handle the mean values since the last check, ``steps`` steps into the training."""


class History(Callback):
    """Keeps every named value of every epoch, in ``values``."""

    def __init__(self) -> None:
        self.values: dict[str, list[float]] = {}

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Append the values."""
        for name, value in logs.items():
            self.values.setdefault(name, []).append(value)


def history_from_plain(plain: Mapping[str, list[float | None]]) -> dict[str, list[float]]:
    """Return a history that was written as JSON, with NaN for None."""
    return {name: [math.nan if v is None else float(v) for v in series] for name, series in plain.items()}


class Progress(Callback):
    """Advances a progress bar by one epoch and shows the values."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Advance the bar."""
        self.bar.advance(1, "  ".join(f"{name} {value:.3g}" for name, value in logs.items()))


class EarlyStopping(Callback):
    """Stops when a value has not decreased for ``patience`` epochs, and keeps the weights of the best epoch.

    A fall of less than ``SMALLEST`` is none: on separable data the loss creeps towards 0 for ever. A value that is no
    number never improves; if none ever did, ``best_epoch`` stays -1, and ``best_weights`` None. Where the value is the
    same as the best, a fall of ``tie`` counts; an epoch whose ``tie`` is no number never counts.
    """

    SMALLEST = 1e-3

    def __init__(
        self, watch: str, patience: int, *, tie: str | None = None, network: torch.nn.Module | None = None
    ) -> None:
        self.watch = watch
        self.patience = patience
        self.tie = tie
        self.best = math.inf
        self.best_tie = math.inf
        self.best_epoch = -1
        self.network = network
        self.best_weights: dict[str, Tensor] | None = None

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Compare with the best so far."""
        value, tie = logs[self.watch], logs[self.tie] if self.tie is not None else 0.0
        same = self.tie is not None and value == self.best and tie < self.best_tie - self.SMALLEST
        if math.isfinite(tie) and (same or value < self.best - self.SMALLEST):
            self.best, self.best_tie, self.best_epoch = value, tie, epoch
            if self.network is not None:
                self.best_weights = copy.deepcopy(self.network.state_dict())
        self.stop = epoch - self.best_epoch >= self.patience


class TrainingFailure(Exception):  # noqa: N818  (caught by the explainer, which restarts or explains)
    """A training that cannot succeed; the message says why."""


class DivergenceCheck(Callback):
    """Checks the logged values every few steps and raises :class:`TrainingFailure` if the training has failed.

    Parameters
    ----------
    hopeless
        Whether a training without an error of numbers fails too if nothing changes, or if the discriminator has won.
    """

    def __init__(self, *, hopeless: bool = True) -> None:
        self.hopeless = hopeless
        self.dead = 0
        self.lost = 0

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Check the means of the epoch: a short training may end before the first check."""
        _check_explosion(logs, f"epoch {epoch + 1}")

    def on_check(self, steps: int, logs: Mapping[str, float]) -> None:
        """Check the means since the last check."""
        _check_explosion(logs, f"{steps} steps")
        if not self.hopeless:
            return
        self.dead = self.dead + 1 if logs.get("changed") == 0 else 0
        if self.dead >= DEAD_CHECKS:
            raise TrainingFailure(f"the generator is dead: it changes nothing at all after {steps} steps")
        won = logs.get("discriminator", 1.0) < 1e-3 and logs.get("valid", 1.0) < 0.02
        self.lost = self.lost + 1 if won else 0
        if self.lost >= LOST_CHECKS:
            raise TrainingFailure(
                "the discriminator has won: it tells every counterfactual from real series, and the classifier accepts "
                f"{logs['valid']:.0%} of them, after {steps} steps"
            )


def _check_explosion(logs: Mapping[str, float], when: str) -> None:
    for name, value in logs.items():
        if not math.isfinite(value) or abs(value) > EXPLODED:
            raise TrainingFailure(f"the training exploded: {name} is {value:.3g} after {when}")


Batch: TypeAlias = Mapping[str, Tensor]  # what a step is given: rows of the training data, by name, all of one length
Batches: TypeAlias = Callable[[int], Iterable[Batch]]  # the batches of an epoch


class Step(Protocol):
    """One kind of training: owns the networks and optimisers, knows nothing of epochs."""

    names: tuple[str, ...]  # of the values that ``update`` returns

    def update(self, batch: Batch) -> Tensor:
        """Take one optimisation step; return the values of ``names``, detached (names,)."""


def shuffled(n_samples: int, batch_size: int, seed: int) -> Batches:
    """Return batches of all rows in a new order each epoch; the last one may be smaller."""

    def batches(epoch: int) -> Iterator[Batch]:
        order = torch.Generator().manual_seed(spawn(seed, f"epoch {epoch}"))
        for rows in torch.split(torch.randperm(n_samples, generator=order), batch_size):
            yield {"rows": rows}

    return batches


def train(
    step: Step,
    batches: Batches,
    *,
    epochs: int,
    seed: int,
    device: torch.device,
    callbacks: Sequence[Callback],
    start: int = 0,
    check_every: int | None = None,
    validate: Callable[[], Mapping[str, float]] | None = None,
) -> None:
    """Run epochs until they are done or a callback asks to stop.

    Every epoch has a seed of its own, so that a training can be taken up at any epoch, ``start``, and go on as if it
    had never stopped. Values are summed on the device and read at checks and epochs only: the loop never waits for
    single steps. Callbacks are told after every epoch, with the values of ``validate`` on held-out data, and every
    ``check_every`` steps of this run.
    """
    steps, in_window = 0, 0
    window = torch.zeros(len(step.names), dtype=torch.float32, device=device)  # since the last check, across epochs
    for epoch in range(start, epochs):
        with seeded(spawn(seed, f"epoch {epoch}"), device):
            total, rows = torch.zeros_like(window), 0
            for batch in batches(epoch):
                size = len(next(iter(batch.values())))
                values = step.update(batch)
                total.add_(values, alpha=size)
                window.add_(values, alpha=size)
                rows, in_window, steps = rows + size, in_window + size, steps + 1
                if check_every is not None and steps % check_every == 0:
                    _check(callbacks, steps, step.names, window / in_window)
                    window.zero_()
                    in_window = 0
        logs = dict(zip(step.names, (total / rows).tolist(), strict=True))
        logs |= {} if validate is None else validate()
        for callback in callbacks:
            callback.on_epoch_end(epoch, logs)
        if any(callback.stop for callback in callbacks):
            break


def _check(callbacks: Sequence[Callback], steps: int, names: tuple[str, ...], means: Tensor) -> None:
    logs = dict(zip(names, means.tolist(), strict=True))
    for callback in callbacks:
        callback.on_check(steps, logs)


class Pairing:
    """Batches of equal size; an epoch sees every query once (the last batch is filled up from the others).

    Each epoch is drawn from its own seed, so that a training can go on at any epoch without what came before, and
    brought to the device at once. Without a ``target``, each query is sent to a random other class. With ``balance``,
    queries and targets are cut to equal numbers first, as the published code does.
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
    ) -> None:
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
        return -(-len(self.queries) // self.batch_size)

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
