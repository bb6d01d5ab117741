"""Detection of trainings that diverge, collapse or change nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sparcets.training.callbacks import Callback

EXPLODED = 1e6  # a loss this large does not recover
DEAD_CHECKS = 3  # consecutive checks without a single changed entry
LOST_CHECKS = 5  # consecutive checks in which the discriminator is perfect and no counterfactual is valid


class TrainingFailure(Exception):  # noqa: N818  (caught by the explainer, which restarts or explains)
    """A training that cannot succeed; the message says why."""


class DivergenceCheck(Callback):
    """Checks the logged values every few steps and raises :class:`TrainingFailure` if the training has failed."""

    def __init__(self) -> None:
        self.dead = 0
        self.lost = 0

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float]) -> None:
        """Check the means of the epoch: a short training may end before the first check."""
        _check_explosion(logs, f"epoch {epoch + 1}")

    def on_check(self, steps: int, logs: Mapping[str, float]) -> None:
        """Check the means since the last check."""
        _check_explosion(logs, f"{steps} steps")
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
