"""Settings of a training."""

from __future__ import annotations

from dataclasses import dataclass

from sparcets.config.base import Config


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Config):
    """How generator and discriminator are trained."""

    epochs: int | None = 40  # one epoch sees every query once; None: by the size of the data
    batch_size: int | None = 64  # None: by the size of the data
    lr: float = 1e-3
    beta1: float = 0.5  # of Adam; the usual choice for GANs
    beta2: float = 0.999
    balance: bool = False  # cut queries and targets to equal numbers, as the published code does
    patience: int = 0  # epochs without a better generator loss before it stops; 0: never, as the paper
    check_every: int = 100  # steps between looks at the training's health

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.epochs is None or self.epochs >= 1, f"'epochs' must be >= 1 or None, got {self.epochs}"),
            (
                self.batch_size is None or self.batch_size >= 1,
                f"'batch_size' must be >= 1 or None, got {self.batch_size}",
            ),
            (self.lr > 0, f"'lr' must be > 0, got {self.lr}"),
            (0 <= self.beta1 < 1, f"'beta1' must be in [0, 1), got {self.beta1}"),
            (0 <= self.beta2 < 1, f"'beta2' must be in [0, 1), got {self.beta2}"),
            (self.patience >= 0, f"'patience' must be >= 0, got {self.patience}"),
            (self.check_every >= 1, f"'check_every' must be >= 1, got {self.check_every}"),
        ]
        return [message for fine, message in checks if not fine]
