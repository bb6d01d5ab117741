"""One supervised step: cross-entropy of a network that returns logits, or the squared error of one of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sparcets.core.series import IntArray
from sparcets.core.settings import ClassifierConfig
from sparcets.training import losses
from sparcets.training.cuda import graph_adam
from sparcets.training.loop import Batch
from sparcets.training.losses import Objective
from sparcets.training.networks import blank_padding, fill_gaps, lengths_of, spread_over_time
from sparcets.training.projection import Projection


class ClassifierStep:
    """Trains a network of series and lengths, to logits (batch, classes), with Adam.

    ``x``, ``y`` and ``lengths`` are all standardised series, their labels, or probabilities (series, classes) to be
    matched, and lengths of padded ones, on the network's device; ``split`` are the rows learnt from and watched. The
    noise and the smoothing of labels of ``config`` are for training only.
    """

    names: tuple[str, ...] = ("loss",)

    def __init__(
        self,
        network: nn.Module,
        x: Tensor,
        y: Tensor,
        lengths: Tensor | None,
        split: tuple[IntArray, IntArray],
        config: ClassifierConfig,
    ) -> None:
        self.network, self.config = network, config
        self.x, self.y, self.lengths = x, y, lengths
        self.train_rows, self.validation_rows = (torch.tensor(rows, device=x.device) for rows in split)
        self.optimiser = graph_adam(network, x.device, lr=config.lr)

    def _logits(self, rows: Tensor, noise: float = 0.0) -> Tensor:
        x, lengths = self.x[rows], lengths_of(self.lengths, rows)
        if noise > 0:  # otherwise no random numbers are drawn
            size = noise * spread_over_time(x, lengths)[:, None]  # relative to each series: small signals survive
            x = x + size * blank_padding(torch.randn_like(x), lengths)
        logits: Tensor = self.network(x, lengths)
        return logits

    def _loss(self, logits: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(logits, y, label_smoothing=self.config.label_smoothing)

    def update(self, batch: Batch) -> Tensor:
        """Take one Adam step; return the loss (1,)."""
        rows = self.train_rows[batch["rows"].to(self.train_rows.device)]
        self.network.train()
        if len(rows) == 1:  # a lone series has no batch statistics; it is normalised by the running ones
            for module in self.network.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        logits = self._logits(rows, self.config.noise)
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


class GanStep:
    """Generator first, then the discriminator on the same counterfactuals, as in the published code.

    Nothing in :meth:`update` synchronises with the device, so that a whole step can be captured as one CUDA graph.

    ``x`` are all training series, standardised (batch, time, features), with ``lengths`` if they are padded with 0; NaN
    where entries are missing, which ``projection`` has to know of. ``center`` and ``scale`` lead to the data's own
    units, of which ``log_proba``, the explained classifier, takes series and lengths. If ``conditional``, the networks
    are told the target class.
    """

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        projection: Projection,
        objective: Objective,
        log_proba: Callable[..., Tensor],
        *,
        x: Tensor,
        center: Tensor,
        scale: Tensor,
        lr: float,
        betas: tuple[float, float],
        conditional: bool,
        lengths: Tensor | None = None,
    ) -> None:
        self.generator, self.discriminator = generator, discriminator
        self.projection, self.objective, self.log_proba = projection, objective, log_proba
        self.x, self.center, self.scale, self.lengths = x, center, scale, lengths
        self.conditional = conditional
        self.gaps = bool(x.isnan().any())
        self.optimisers = {
            "generator": graph_adam(generator, x.device, lr=lr, betas=betas),
            "discriminator": graph_adam(discriminator, x.device, lr=lr, betas=betas),
        }
        self.networks: dict[str, nn.Module] = {"generator": generator, "discriminator": discriminator}
        self.names = (*objective.names, "generator")
        self.names += ("discriminator",) * objective.needs_discriminator + ("valid",) * objective.needs_classifier
        self.names += ("changed",)

    def update(self, batch: Batch) -> Tensor:
        """Train both networks on one batch; return the values of ``names``, detached (names,)."""
        query, real = self.x[batch["query"]], self.x[batch["real"]]
        lengths = lengths_of(self.lengths, batch["query"])
        real_lengths = lengths_of(self.lengths, batch["real"])
        target = batch["target"]
        class_condition = target if self.conditional else torch.zeros_like(target)
        self.generator.train()
        self.discriminator.train()
        residual = self.generator(self.filled(query, lengths), class_condition, lengths)
        delta = self.projection(query, residual, lengths)
        counterfactual = query + delta
        raw = counterfactual * self.scale + self.center  # with gaps, which the classifier fills in its own way
        log_proba = logit = raw.new_empty(0)
        if self.objective.needs_classifier:
            log_proba = self.log_proba(raw, lengths)
        if self.objective.needs_discriminator:
            logit = self.discriminator(self.filled(counterfactual, lengths), class_condition, lengths)
        total, values = self.objective(
            delta=delta,
            target=target,
            log_proba=log_proba,
            logit=logit,
            query_raw=self.filled(query, lengths) * self.scale + self.center,
            counterfactual_raw=self.filled(counterfactual, lengths) * self.scale + self.center if self.gaps else raw,
            lengths=lengths,
        )
        self.optimisers["generator"].zero_grad(set_to_none=True)
        total.backward(inputs=list(self.generator.parameters()))  # type: ignore[no-untyped-call]
        report = [values, total.detach()[None]]
        if self.objective.needs_discriminator:
            pair = torch.cat([self.filled(real, real_lengths), self.filled(counterfactual.detach(), lengths)])
            both = lengths_of(self.lengths, torch.cat([batch["real"], batch["query"]]))
            logits = self.discriminator(pair, torch.cat([class_condition, class_condition]), both)
            loss = losses.discriminator(*logits.chunk(2)).mean()
            self.optimisers["discriminator"].zero_grad(set_to_none=True)
            loss.backward(inputs=list(self.discriminator.parameters()))  # type: ignore[no-untyped-call]
            self.optimisers["discriminator"].step()
            report.append(loss.detach()[None])
        self.optimisers["generator"].step()
        if self.objective.needs_classifier:
            report.append((log_proba.detach().argmax(1) == target).float().mean()[None])
        report.append(losses.count_changed(delta.detach(), self.objective.n_mutable, lengths).mean()[None])
        return torch.cat(report)

    def filled(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        """Return standardised series as the networks get them: without gaps."""
        return fill_gaps(x, lengths=lengths, otherwise=0.0) if self.gaps else x
