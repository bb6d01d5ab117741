"""One step of generator against discriminator (the paper's section 3), the same for every method that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from sparcets.training import losses
from sparcets.training.cuda import graph_adam, run_on_streams
from sparcets.training.loop import Batch
from sparcets.training.losses import LossInputs, Objective
from sparcets.training.projection import Projection


class GanStep:
    """Generator first, then the discriminator on the same counterfactuals, as in the published code.

    Nothing in :meth:`update` synchronises with the device, so that a whole step can be captured as one CUDA graph.

    Parameters
    ----------
    generator, discriminator
        The networks, on the device of ``x``.
    projection
        The constraints, as a differentiable layer.
    objective
        The loss of the generator.
    log_proba
        The explained classifier: series in the data's own units (and their lengths, if there are any) to
        log-probabilities, with gradients.
    x
        All training series, standardised (batch, time, features).
    center, scale
        To the data's own units (features,).
    lr, betas
        Of Adam, for both networks.
    conditional
        Whether the networks are conditioned on the target class.
    lengths
        True lengths of padded series (batch,), or None; padding is 0 in ``x``.
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
        self.optimisers = {
            "generator": graph_adam(generator, x.device, lr=lr, betas=betas),
            "discriminator": graph_adam(discriminator, x.device, lr=lr, betas=betas),
        }
        self.networks: dict[str, nn.Module] = {"generator": generator, "discriminator": discriminator}
        extra = [
            "generator",
            *(["discriminator"] if objective.needs_discriminator else []),
            *(["valid"] if objective.needs_classifier else []),
            "changed",
        ]
        self.names = (*objective.names, *extra)

    def update(self, batch: Batch) -> Tensor:
        """Train both networks on one batch; return the values of ``names``, detached (names,)."""
        query, real = self.x[batch["query"]], self.x[batch["real"]]
        lengths = None if self.lengths is None else self.lengths[batch["query"]]
        real_lengths = None if self.lengths is None else self.lengths[batch["real"]]
        target = batch["target"]
        class_condition = target if self.conditional else torch.zeros_like(target)
        self.generator.train()
        self.discriminator.train()
        delta = self.projection(query, self._residual(query, class_condition, lengths), lengths)
        counterfactual = query + delta
        inputs = self._loss_inputs(query, counterfactual, delta, target, class_condition, lengths)
        total, values = self.objective(inputs)

        def backward_generator() -> Tensor:
            self.optimisers["generator"].zero_grad(set_to_none=True)
            total.backward(inputs=list(self.generator.parameters()))  # type: ignore[no-untyped-call]
            return total.detach()[None]

        def backward_discriminator() -> Tensor:
            self.optimisers["discriminator"].zero_grad(set_to_none=True)
            both = None if lengths is None or real_lengths is None else torch.cat([real_lengths, lengths])
            loss = self._discriminator_loss(real, counterfactual.detach(), class_condition, both)
            loss.backward(inputs=list(self.discriminator.parameters()))  # type: ignore[no-untyped-call]
            return loss.detach()[None]

        # The two gradients are independent; both optimisers step once both gradients are known.
        backwards = {"generator": backward_generator}
        if self.objective.needs_discriminator:
            backwards["discriminator"] = backward_discriminator
        report = [values, *run_on_streams(list(backwards.values()), query.device)]
        for name in backwards:
            self.optimisers[name].step()
        self._after_step()
        if self.objective.needs_classifier:
            log_proba = inputs.log_proba.detach()
            explained = log_proba if log_proba.ndim == 2 else log_proba[0]
            report.append((explained.argmax(1) == target).float().mean()[None])
        report.append(losses.count_changed(delta.detach(), self.objective.n_mutable, lengths).mean()[None])
        return torch.cat(report)

    def _residual(self, query: Tensor, class_condition: Tensor, lengths: Tensor | None) -> Tensor:
        """Return the generator's residuals (batch, time, features)."""
        known = () if lengths is None else (lengths,)
        residual: Tensor = self.generator(query, class_condition, *known)
        return residual

    def _after_step(self) -> None:
        """Hook that runs after both optimisers have stepped."""

    def _loss_inputs(
        self,
        query: Tensor,
        counterfactual: Tensor,
        delta: Tensor,
        target: Tensor,
        class_condition: Tensor,
        lengths: Tensor | None,
    ) -> LossInputs:
        """Return the counterfactuals with the outputs of classifier and discriminator."""
        raw = counterfactual * self.scale + self.center
        objective, unused = self.objective, raw.new_empty(0)
        known = () if lengths is None else (lengths,)
        log_proba, logit = run_on_streams(
            [
                lambda: self.log_proba(raw, *known) if objective.needs_classifier else unused,
                lambda: (
                    self.discriminator(counterfactual, class_condition, *known)
                    if objective.needs_discriminator
                    else unused
                ),
            ],
            raw.device,
        )
        return LossInputs(
            delta=delta,
            target=target,
            log_proba=log_proba,
            logit=logit,
            query_raw=query * self.scale + self.center,
            counterfactual_raw=raw,
            lengths=lengths,
        )

    def _discriminator_loss(
        self, real: Tensor, fake: Tensor, class_condition: Tensor, lengths: Tensor | None
    ) -> Tensor:
        known = () if lengths is None else (lengths,)
        logits = self.discriminator(
            torch.cat([real, fake]), torch.cat([class_condition, class_condition]), *known
        )  # one pass for both
        return self.objective.discriminator_loss(*logits.chunk(2))

    def validate(self) -> Mapping[str, float]:
        """Return nothing: only training values are reported."""
        return {}
