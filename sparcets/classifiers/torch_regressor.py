"""TorchRegressor: a network that predicts numbers; explainers of regressors train such ones for themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import frozen
from sparcets.classifiers.regressor import DifferentiableRegressor
from sparcets.config.models import ClassifierConfig
from sparcets.datasets.scaling import Scaler
from sparcets.datasets.splits import stratified_split
from sparcets.errors import TrainingError
from sparcets.networks import ARCHITECTURES
from sparcets.networks.filling import fill_gaps
from sparcets.networks.sizes import check_sizes
from sparcets.progress import progress_bar
from sparcets.seeding import spawn
from sparcets.training.callbacks import EarlyStopping, History, KeepBest, Progress
from sparcets.training.classifier_step import RegressionStep
from sparcets.training.cuda import CapturedStep
from sparcets.training.device import resolve_device, seeded, single_precision
from sparcets.training.loop import shuffled, train
from sparcets.training.threads import threads_for

if TYPE_CHECKING:
    from typing_extensions import Self


class TorchRegressor(DifferentiableRegressor):
    """A neural network for regression; it standardises series and numbers itself.

    Parameters
    ----------
    architecture
        As of a :class:`~sparcets.TorchClassifier`.
    config
        How it is built and trained.

    Attributes
    ----------
    error_
        Root mean square error on validation series, in standard deviations of the labels, after ``fit``.
    """

    _knows_means = True

    def __init__(self, architecture: str, config: ClassifierConfig) -> None:
        self.architecture, self.config, self.missing = architecture, config, config.missing
        self.error_ = np.nan

    @torch.inference_mode(mode=False)  # gradients are computed, also within no_grad or inference_mode
    def fit_unchecked(
        self, X: FloatArray, y: FloatArray, lengths: IntArray | None = None, *, progress: bool | None
    ) -> Self:
        """Train on checked series (batch, time, features), numbers (batch, outputs), and true lengths or None."""
        config, spread = self.config, y.std(0)
        scale = np.where(spread > 0, spread, 1.0)
        self._prepare(Scaler.fit(X, lengths), Scaler(center=y.mean(0), scale=scale), X.shape[1])
        self.unequal = lengths is not None
        device, network = self.device, self._network
        n_steps = None if lengths is None else torch.tensor(lengths, device=device)
        rows = np.zeros(len(X), dtype=np.int64)
        learn, watch = stratified_split(rows, test_size=config.validation, seed=spawn(config.seed, "validation"))
        step = RegressionStep(
            network,
            self._standardise(torch.from_numpy(np.array(X, order="C")).to(device), n_steps),
            torch.tensor((y - y.mean(0)) / scale, dtype=torch.float32, device=device),
            n_steps,
            train_rows=torch.tensor(learn, device=device),
            validation_rows=torch.tensor(watch, device=device),
            lr=config.lr,
            noise=config.noise,
        )
        stopping = EarlyStopping("validation_loss", config.patience)
        best = KeepBest(network, stopping)
        with (
            threads_for(config.batch_size * X[0].size),
            progress_bar(f"training {self.architecture}", config.epochs, show=progress) as bar,
        ):
            train(
                # Series of different lengths are packed on the host, which a graph cannot do.
                step if lengths is not None else CapturedStep(step, device),
                shuffled(len(learn), config.batch_size, spawn(config.seed, "order")),
                epochs=config.epochs,
                seed=spawn(config.seed, "dropout"),
                device=device,
                callbacks=[History(), stopping, best, Progress(bar)],
            )
        if stopping.best_epoch < 0:
            raise TrainingError(
                "the training of a network on the numbers diverged: its validation loss was never finite. Are there "
                "labels, or predictions of the model, that are far from all others?"
            )
        best.restore()
        network.eval().requires_grad_(False)
        network.zero_grad(set_to_none=True)  # frees the gradients of the last step
        self.error_ = float(np.sqrt(stopping.best))
        return self

    @single_precision()
    def _prepare(self, scaler: Scaler, outcome: Scaler, n_steps: int) -> None:
        """Build an untrained network of the right sizes."""
        device = resolve_device(self.config.device)
        self._scaler, self._outcome = scaler, outcome
        self.n_features, self.n_steps, self._n_outputs = len(scaler.center), n_steps, len(outcome.center)
        self._center, self._scale = (
            torch.tensor(v, dtype=torch.float32, device=device) for v in (scaler.center, scaler.scale)
        )
        build = ARCHITECTURES.load(self.architecture)
        config = self.config
        with seeded(spawn(config.seed, "weights"), device):
            network: nn.Module = build(self.n_features, self._n_outputs, config.hidden, config.layers, config.dropout)
        self._network = network.to(device)

    @property
    def device(self) -> torch.device:
        """Device of the network."""
        return self._center.device

    def numbers(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the numbers (batch, outputs) of series in the data's own units, with gradients to ``x``."""
        if not torch.is_grad_enabled() and not self._network.training:  # nothing to freeze, and freezing takes time
            found = self._network(self._standardise(x, lengths), lengths)
        else:
            with frozen(self._network):
                found = self._network(self._standardise(x, lengths), lengths)
        scale, center = (
            torch.as_tensor(v, dtype=torch.float64, device=found.device)
            for v in (self._outcome.scale, self._outcome.center)
        )
        numbers: Tensor = found.double() * scale + center
        return numbers

    def _standardise(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        standard = ((x - self._center) / self._scale).float()
        return fill_gaps(standard, self.config.missing, lengths, otherwise=0.0) if self.takes_gaps else standard

    def weights(self) -> dict[str, Tensor]:
        """Return the weights of the network by name, on the CPU."""
        return {k: v.detach().cpu().contiguous() for k, v in self._network.state_dict().items()}

    def header(self) -> dict[str, Any]:
        """Return everything but the weights, as plain values; the device is chosen anew when it is rebuilt."""
        return {
            "architecture": self.architecture,
            "config": {**self.config.to_dict(), "device": "auto"},
            "n_steps": self.n_steps,
            **({"unequal": True} if self.unequal else {}),
            "scaler": self._scaler.to_dict(),
            "outcome": self._outcome.to_dict(),
            "error": self.error_,
        }

    @classmethod
    @torch.inference_mode(mode=False)  # weights that were made in inference mode could not be used for gradients
    def rebuild(cls, header: Mapping[str, Any], weights: Mapping[str, Tensor], *, device: str = "auto") -> Self:
        """Return the regressor of a :meth:`header` with its weights."""
        config = ClassifierConfig.from_dict({**header["config"], "device": device})
        check_sizes(config.hidden, config.layers, [weight.shape for weight in weights.values()])
        made = cls(header["architecture"], config)
        made._prepare(Scaler.from_dict(header["scaler"]), Scaler.from_dict(header["outcome"]), int(header["n_steps"]))
        made.unequal = bool(header.get("unequal", False))
        made._network.load_state_dict(dict(weights))
        made._network.eval().requires_grad_(False)
        made.error_ = float(header["error"])
        return made
