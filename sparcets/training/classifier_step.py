"""One supervised step: cross-entropy of a network that returns logits, or the squared error of one of numbers."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.networks.temporal import blank_padding, spread_over_time
from sparcets.training.cuda import graph_adam
from sparcets.training.loop import Batch


class ClassifierStep:
    """Trains a network on standardised series with Adam.

    Parameters
    ----------
    network
        Takes (batch, time, features) and lengths, returns logits (batch, classes).
    x, y, lengths
        All series, labels (series,) or probabilities (series, classes) to be matched, and lengths of padded series, on
        the network's device.
    train_rows, validation_rows
        Rows for training and for validation.
    lr
        Learning rate.
    noise
        Standard deviation of Gaussian noise, in standard deviations of each series; added in training only.
    label_smoothing
        Share of each label that the training loss spreads over all classes; the validation loss uses none.
    """

    names: tuple[str, ...] = ("loss",)

    def __init__(
        self,
        network: nn.Module,
        x: Tensor,
        y: Tensor,
        lengths: Tensor | None,
        *,
        train_rows: Tensor,
        validation_rows: Tensor,
        lr: float,
        noise: float = 0.0,
        label_smoothing: float = 0.0,
    ) -> None:
        self.network = network
        self.x, self.y, self.lengths = x, y, lengths
        self.train_rows, self.validation_rows = train_rows, validation_rows
        self.noise, self.label_smoothing = noise, label_smoothing
        self.optimiser = graph_adam(network, x.device, lr=lr)

    def _logits(self, rows: Tensor, noise: float = 0.0) -> Tensor:
        x, lengths = self.x[rows], None if self.lengths is None else self.lengths[rows]
        if noise > 0:  # otherwise no random numbers are drawn
            size = noise * spread_over_time(x, lengths)[:, None]  # relative to each series: small signals survive
            x = x + size * blank_padding(torch.randn_like(x), lengths)
        logits: Tensor = self.network(x, lengths)
        return logits

    def _loss(self, logits: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(logits, y, label_smoothing=self.label_smoothing)

    def update(self, batch: Batch) -> Tensor:
        """Take one Adam step; return the loss (1,)."""
        rows = self.train_rows[batch["rows"].to(self.train_rows.device)]
        self.network.train()
        if len(rows) == 1:  # a lone series has no batch statistics; it is normalised by the running ones
            for module in self.network.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        logits = self._logits(rows, self.noise)
        loss = self._loss(logits, self.y[rows])
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        # Recurrent networks have exploding gradients now and then.
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        return loss.detach()[None]

    @torch.no_grad()
    def validate(self) -> Mapping[str, float]:
        """Return loss and error rate on the validation rows."""
        self.network.eval()
        logits = torch.cat([self._logits(rows) for rows in torch.split(self.validation_rows, 512)])
        y = self.y[self.validation_rows]
        return {
            "validation_loss": float(F.cross_entropy(logits, y)),
            "validation_error": float((logits.argmax(1) != (y if y.ndim == 1 else y.argmax(1))).float().mean()),
        }


class RegressionStep(ClassifierStep):
    """Trains a network on standardised series with numbers ``y`` (series, outputs) to be predicted."""

    def _loss(self, logits: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(logits, y)

    @torch.no_grad()
    def validate(self) -> Mapping[str, float]:
        """Return the mean squared error on the validation rows."""
        self.network.eval()
        found = torch.cat([self._logits(rows) for rows in torch.split(self.validation_rows, 512)])
        return {"validation_loss": float(F.mse_loss(found, self.y[self.validation_rows]))}
