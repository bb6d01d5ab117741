"""The only training loop we own: epochs, shuffled batches, callbacks. What one step does is the caller's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
from torch import Tensor

from sparcets.training.callbacks import Callback


class Step(Protocol):
    """One kind of training: owns the networks and optimisers, knows nothing of epochs."""

    def update(self, rows: Tensor) -> Mapping[str, Tensor]:
        """Take one optimisation step on these rows of the training data; return named values, detached."""

    def validate(self) -> Mapping[str, float]:
        """Return named values on held-out data, measured after each epoch."""


def train(
    step: Step, *, n_samples: int, epochs: int, batch_size: int, seed: int, callbacks: Sequence[Callback]
) -> None:
    """Run epochs of shuffled batches until they are done or a callback asks to stop.

    Values are summed on the device and read once per epoch, so that the loop never waits for single steps.
    """
    order = torch.Generator().manual_seed(seed)
    for epoch in range(epochs):
        sums: dict[str, Tensor] = {}
        counts: dict[str, int] = {}  # of rows behind each value: a step need not report all values every time
        for rows in torch.split(torch.randperm(n_samples, generator=order), batch_size):
            for name, value in step.update(rows).items():
                weighted = value * len(rows)
                sums[name] = sums[name] + weighted if name in sums else weighted
                counts[name] = counts.get(name, 0) + len(rows)
        logs = {name: float(total) / counts[name] for name, total in sums.items()}
        logs.update(step.validate())
        for callback in callbacks:
            callback.on_epoch_end(epoch, logs)
        if any(callback.stop for callback in callbacks):
            break
