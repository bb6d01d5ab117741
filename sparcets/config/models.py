"""Settings of the networks: classifiers, generators, discriminators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparcets.config.base import Config


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierConfig(Config):
    """How a :class:`~sparcets.TorchClassifier` is built and trained.

    The defaults are those of the SPARCE authors' classifier (two layers, 32 hidden, dropout 0.2, Adam 1e-3, batch 32),
    with early stopping on a validation part instead of a fixed number of epochs.
    """

    hidden: int = 32  # width; convolutional networks use multiples of it
    layers: int = 2  # recurrent layers, or blocks of the other networks
    dropout: float = 0.2
    epochs: int = 100  # at most; early stopping usually ends before
    patience: int = 12  # epochs without a better validation error (or loss, among equals) before it stops
    validation: float = 0.15  # share of the training series that early stopping watches
    batch_size: int = 32
    lr: float = 1e-3
    seed: int = 0
    device: str = "auto"

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.hidden >= 1, f"'hidden' must be >= 1, got {self.hidden}"),
            (self.layers >= 1, f"'layers' must be >= 1, got {self.layers}"),
            (0 <= self.dropout < 1, f"'dropout' must be in [0, 1), got {self.dropout}"),
            (self.epochs >= 1, f"'epochs' must be >= 1, got {self.epochs}"),
            (self.patience >= 1, f"'patience' must be >= 1, got {self.patience}"),
            (0 < self.validation < 1, f"'validation' must be between 0 and 1, got {self.validation}"),
            (self.batch_size >= 1, f"'batch_size' must be >= 1, got {self.batch_size}"),
            (self.lr > 0, f"'lr' must be > 0, got {self.lr}"),
        ]
        return [message for fine, message in checks if not fine]

    @classmethod
    def tiny(cls) -> ClassifierConfig:
        """Return settings for tests: seconds on a CPU."""
        return cls(hidden=8, layers=1, dropout=0.0, epochs=30, patience=5, lr=1e-2)


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratorConfig(Config):
    """The generator: a bidirectional backbone and a dense layer per step (the paper's section 2)."""

    backbone: Literal["lstm", "gru", "tcn"] = "lstm"
    hidden: int = 64  # the paper's 256 are for a GPU; minutes become hours on a CPU
    layers: int = 2
    dropout: float = 0.1

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.hidden >= 1, f"'hidden' must be >= 1, got {self.hidden}"),
            (self.layers >= 1, f"'layers' must be >= 1, got {self.layers}"),
            (0 <= self.dropout < 1, f"'dropout' must be in [0, 1), got {self.dropout}"),
        ]
        return [message for fine, message in checks if not fine]


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscriminatorConfig(Config):
    """The discriminator: a bidirectional backbone read at the last step (the paper's section 2)."""

    backbone: Literal["lstm", "gru", "tcn"] = "lstm"
    hidden: int = 32
    layers: int = 1

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.hidden >= 1, f"'hidden' must be >= 1, got {self.hidden}"),
            (self.layers >= 1, f"'layers' must be >= 1, got {self.layers}"),
        ]
        return [message for fine, message in checks if not fine]
