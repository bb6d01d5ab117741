"""The training loop: epochs, batches and callbacks, for every kind of step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from sparcets.seeding import spawn
from sparcets.training.callbacks import Callback
from sparcets.training.device import seeded

Batch: TypeAlias = Mapping[str, Tensor]  # what a step is given: rows of the training data, by name, all of one length
Batches: TypeAlias = Callable[[int], Iterable[Batch]]  # the batches of an epoch


class Step(Protocol):
    """One kind of training: owns the networks and optimisers, knows nothing of epochs.

    Attributes
    ----------
    names
        Of the values that ``update`` returns.
    """

    names: tuple[str, ...]

    def update(self, batch: Batch) -> Tensor:
        """Take one optimisation step; return the values of ``names``, detached (names,)."""

    def validate(self) -> Mapping[str, float]:
        """Return named values on held-out data, measured after each epoch."""


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
) -> None:
    """Run epochs until they are done or a callback asks to stop.

    Every epoch has a seed of its own, so that a training can be taken up at any epoch and go on as if it had never
    stopped. Values are summed on the device and read at checks and epochs only: the loop never waits for single steps.

    Parameters
    ----------
    step
        What to do with a batch.
    batches
        The batches of each epoch.
    epochs, start
        Number of epochs, and the first to run.
    seed
        Of what the step draws at random (dropout).
    device
        Where it runs.
    callbacks
        Told after every epoch, and every ``check_every`` steps of this run.
    check_every
        Steps between checks; None checks at the end of epochs only.
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
        logs.update(step.validate())
        for callback in callbacks:
            callback.on_epoch_end(epoch, logs)
        if any(callback.stop for callback in callbacks):
            break


def _check(callbacks: Sequence[Callback], steps: int, names: tuple[str, ...], means: Tensor) -> None:
    logs = dict(zip(names, means.tolist(), strict=True))
    for callback in callbacks:
        callback.on_check(steps, logs)
