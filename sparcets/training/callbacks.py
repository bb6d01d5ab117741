"""Callbacks of a training: called after every epoch; they may stop it."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from pathlib import Path

import torch

from sparcets.errors import StorageError
from sparcets.progress import Bar
from sparcets.storage import reason

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


def history_to_plain(values: Mapping[str, list[float]]) -> dict[str, list[float | None]]:
    """Return a history for JSON, which has no NaN: values that are no finite numbers become None."""
    return {name: [v if math.isfinite(v) else None for v in series] for name, series in values.items()}


def history_from_plain(plain: Mapping[str, list[float | None]]) -> dict[str, list[float]]:
    """Return the history that :func:`history_to_plain` was given, with NaN for None."""
    return {name: [math.nan if v is None else float(v) for v in series] for name, series in plain.items()}


class Progress(Callback):
    """Advances a progress bar by one epoch and shows the values."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Advance the bar."""
        self.bar.advance(1, "  ".join(f"{name} {value:.3g}" for name, value in logs.items()))


class EarlyStopping(Callback):
    """Stops when a value has not decreased for ``patience`` epochs; ``improved`` is whether it just did.

    A fall of less than ``SMALLEST`` is none: on separable data the loss creeps towards 0 for ever. A value that is no
    number never improves; if none ever did, ``best_epoch`` stays -1. Where the value is the same as the best, a fall of
    ``tie`` counts; an epoch whose ``tie`` is no number never counts.
    """

    SMALLEST = 1e-3

    def __init__(self, watch: str, patience: int, *, tie: str | None = None) -> None:
        self.watch = watch
        self.patience = patience
        self.tie = tie
        self.best = math.inf
        self.best_tie = math.inf
        self.best_epoch = -1
        self.improved = False

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Compare with the best so far."""
        value, tie = logs[self.watch], logs[self.tie] if self.tie is not None else 0.0
        same = self.tie is not None and value == self.best and tie < self.best_tie - self.SMALLEST
        self.improved = math.isfinite(tie) and (same or value < self.best - self.SMALLEST)
        if self.improved:
            self.best, self.best_tie, self.best_epoch = value, tie, epoch
        self.stop = epoch - self.best_epoch >= self.patience


class KeepBest(Callback):
    """Copies a network's weights whenever early stopping saw an improvement, and puts the best ones back at the end."""

    def __init__(self, network: torch.nn.Module, watched: EarlyStopping) -> None:
        self.network = network
        self.watched = watched
        self._best = copy.deepcopy(network.state_dict())

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Copy the weights if they are the best so far; ``watched`` must stand before this in the list."""
        if self.watched.improved:
            self._best = copy.deepcopy(self.network.state_dict())

    def restore(self) -> None:
        """Put the best weights back."""
        self.network.load_state_dict(self._best)


class TensorBoard(Callback):
    """Writes the values for TensorBoard, if that is installed; otherwise it does nothing."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self._writer = None
            return
        try:
            self._writer = SummaryWriter(str(folder))
        except OSError as error:
            raise StorageError(f"cannot write {folder}: {reason(error)}. Choose another path.") from error

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Write the values of an epoch."""
        if self._writer is not None:
            for name, value in logs.items():
                self._writer.add_scalar(name, value, epoch)
            self._writer.flush()


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
