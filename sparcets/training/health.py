"""Trainings that went wrong, told early and in words."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sparcets.training.callbacks import Callback

EXPLODED = 1e6  # a loss that large never comes back
DEAD_CHECKS = 3  # looks in a row without a single changed entry
LOST_CHECKS = 5  # looks in a row in which the discriminator told everything apart and the generator reached nothing


class TrainingFailure(Exception):  # noqa: N818  (caught by the explainer, which restarts or explains)
    """A training that will not come to anything; the message says why."""


class Health(Callback):
    """Looks at the values every few steps and raises :class:`TrainingFailure` when there is no hope."""

    def __init__(self) -> None:
        self.dead = 0
        self.lost = 0

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Look at the epoch's means: a short training may end before the first check."""
        _look_for_explosion(logs, f"epoch {epoch + 1}")

    def on_check(self, steps: int, logs: Mapping[str, float]) -> None:
        """Look at the means since the last check."""
        _look_for_explosion(logs, f"{steps} steps")
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


def _look_for_explosion(logs: Mapping[str, float], when: str) -> None:
    for name, value in logs.items():
        if not math.isfinite(value) or abs(value) > EXPLODED:
            raise TrainingFailure(f"the training exploded: {name} is {value:.3g} after {when}")
