"""Settings of a training of a generator against a discriminator."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.config.base import Config


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Config):
    """How the paper's methods are trained."""

    epochs: int = 40  # one epoch sees every query once
    batch_size: int = 64
    lr: float = 1e-3
    beta1: float = 0.5  # of Adam; the usual choice for GANs
    beta2: float = 0.999
    balance: bool = False  # cut queries and targets to equal numbers, as the published code does
    patience: int = 0  # epochs without a better generator loss before it stops; 0: never, as in the paper
    check_every: int = 100  # steps between checks for divergence
    restarts: int = 1  # times that a failed training begins again from other weights; 0: it goes on, as in the paper

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.epochs >= 1, f"'epochs' must be >= 1, got {self.epochs}"),
            (self.batch_size >= 1, f"'batch_size' must be >= 1, got {self.batch_size}"),
            (self.patience >= 0, f"'patience' must be >= 0, got {self.patience}"),
            (self.restarts >= 0, f"'restarts' must be >= 0, got {self.restarts}"),
        ]
        return [message for fine, message in checks if not fine] + _optimiser_problems(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class AutoTrainConfig(Config):
    """How :class:`~sparcets.Explainer` is trained; what is None is chosen by the size of the data."""

    epochs: int | None = None
    batch_size: int | None = None
    lr: float = 1.5e-3
    beta1: float = 0.5  # of Adam; the usual choice for GANs
    beta2: float = 0.999
    check_every: int = 100  # steps between checks for divergence

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.epochs is None or self.epochs >= 1, f"'epochs' must be >= 1 or None, got {self.epochs}"),
            (
                self.batch_size is None or self.batch_size >= 1,
                f"'batch_size' must be >= 1 or None, got {self.batch_size}",
            ),
        ]
        return [message for fine, message in checks if not fine] + _optimiser_problems(self)


def _optimiser_problems(config: TrainConfig | AutoTrainConfig) -> list[str]:
    checks = [
        (config.lr > 0, f"'lr' must be > 0, got {config.lr}"),
        (0 <= config.beta1 < 1, f"'beta1' must be in [0, 1), got {config.beta1}"),
        (0 <= config.beta2 < 1, f"'beta2' must be in [0, 1), got {config.beta2}"),
        (config.check_every >= 1, f"'check_every' must be >= 1, got {config.check_every}"),
    ]
    return [message for fine, message in checks if not fine]
