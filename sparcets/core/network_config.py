"""Settings of the networks: classifiers, generators, discriminators and the critic."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from sparcets.core.config import Config

Rule = Literal["refuse", "forward", "mean"]
MANY = 4096  # series from which on `sized` keeps the batch size; with fewer series it is smaller


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierConfig(Config):
    """How a :class:`~sparcets.TorchClassifier` is built and trained.

    The defaults are those of the SPARCE authors' classifier (two layers, 32 hidden, dropout 0.2, Adam 1e-3, batch 32),
    with early stopping on a validation part instead of a fixed number of epochs.

    Examples
    --------
    >>> ClassifierConfig(epochs=20).override("hidden=64", "dropout=0.1").hidden
    64
    """

    hidden: int = 32  # width; convolutional networks use multiples of it
    layers: int = 2  # recurrent layers, or blocks of the other networks
    dropout: float = 0.2
    noise: float = 0.0  # added to the series of each training step, in standard deviations of each series
    label_smoothing: float = 0.0  # share of each label that the training loss spreads over all classes
    epochs: int = 100  # at most; early stopping usually ends before
    patience: int = 12  # epochs without a better validation error (or loss, among equals) before it stops
    validation: float = 0.15  # share of the training series (of the subjects, where known) that early stopping watches
    batch_size: int = 32
    lr: float = 1e-3
    missing: Rule = "refuse"  # what the network gets for missing values (NaN)
    output: Literal["softmax", "sigmoid"] = "softmax"  # sigmoid: one output, for two classes, as in the SPARCE paper
    seed: int = 0
    device: str = "auto"

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.hidden >= 1, f"'hidden' must be >= 1, got {self.hidden}"),
            (self.layers >= 1, f"'layers' must be >= 1, got {self.layers}"),
            (0 <= self.dropout < 1, f"'dropout' must be in [0, 1), got {self.dropout}"),
            (self.noise >= 0, f"'noise' must be >= 0, got {self.noise}"),
            (0 <= self.label_smoothing < 1, f"'label_smoothing' must be in [0, 1), got {self.label_smoothing}"),
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

    def sized(self, n_series: int, *, steps: int = 1500) -> ClassifierConfig:
        """Return these settings for a number of series, such that training takes about as long for many as for few.

        Few series (less than ``MANY``) come in batches a quarter as large. Epochs are at most those set, fewer where
        they would take more than ``steps`` steps of optimisation, but 10 at least; patience is a fifth of them, or what
        was set where that is more.

        Examples
        --------
        >>> config = ClassifierConfig(batch_size=128, epochs=60, patience=4)
        >>> [(c.batch_size, c.epochs, c.patience) for c in map(config.sized, (200, 1_580, 14_080))]
        [(32, 60, 12), (32, 35, 7), (128, 15, 4)]
        """
        batch_size = self.batch_size if n_series >= MANY else max(self.batch_size // 4, 1)
        rounds = math.ceil(n_series * (1 - self.validation) / batch_size)  # steps of one epoch
        epochs = min(max(steps // rounds, 10), self.epochs)
        return replace(self, batch_size=batch_size, epochs=epochs, patience=max(epochs // 5, self.patience))


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratorConfig(Config):
    """The paper's generator: a bidirectional backbone and a dense layer per step (section 2)."""

    backbone: Literal["lstm", "gru", "tcn"] = "lstm"
    hidden: int = 64  # the paper's 256 are for a GPU
    layers: int = 2
    dropout: float = 0.1  # between the layers

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (0 <= self.dropout < 1, f"'dropout' must be in [0, 1), got {self.dropout}"),
        ]
        return _size_problems(self.hidden, self.layers) + [message for fine, message in checks if not fine]


@dataclass(frozen=True, kw_only=True, slots=True)
class GatedGeneratorConfig(Config):
    """The generator of :class:`~sparcets.Explainer`: a backbone, gates, and residuals."""

    backbone: Literal["mixer", "lstm", "gru", "tcn"] = "mixer"
    hidden: int | None = None  # channels; None: by the size of the data
    layers: int | None = None  # layers, or blocks of a mixer; None: by the size of the data

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.hidden is None or self.hidden >= 1, f"'hidden' must be >= 1 or None, got {self.hidden}"),
            (self.layers is None or self.layers >= 1, f"'layers' must be >= 1 or None, got {self.layers}"),
        ]
        return [message for fine, message in checks if not fine]


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscriminatorConfig(Config):
    """The paper's discriminator: a bidirectional backbone read at the last step (section 2)."""

    backbone: Literal["lstm", "gru", "tcn"] = "lstm"
    hidden: int = 32
    layers: int = 1

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        return _size_problems(self.hidden, self.layers)


@dataclass(frozen=True, kw_only=True, slots=True)
class CriticConfig(Config):
    """The critic of :class:`~sparcets.Explainer`: dilated convolutions with spectral normalisation."""

    hidden: int = 64
    layers: int = 3

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        return _size_problems(self.hidden, self.layers)


def _size_problems(hidden: int, layers: int) -> list[str]:
    checks = [
        (hidden >= 1, f"'hidden' must be >= 1, got {hidden}"),
        (layers >= 1, f"'layers' must be >= 1, got {layers}"),
    ]
    return [message for fine, message in checks if not fine]


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
