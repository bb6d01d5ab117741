"""One step of generator against discriminator (the paper's section 3), the same for every method that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from sparcets.config.runs import TrainConfig
from sparcets.training import losses
from sparcets.training.capture import graph_adam
from sparcets.training.loop import Batch
from sparcets.training.objective import Candidate, Objective
from sparcets.training.projection import Projection
from sparcets.training.streams import side_by_side


class GanStep:
    """Generator first, then the discriminator on the same counterfactuals, as in the published code.

    Nothing in :meth:`update` waits for the device, so that a whole step can be captured as one CUDA graph.

    Parameters
    ----------
    generator, discriminator
        The networks, on the device of ``x``.
    projection
        The constraints, which the generator learns under.
    objective
        What the generator should achieve.
    log_proba
        The explained classifier: series in the data's own units to log-probabilities, with gradients.
    x
        All training series, standardised (batch, time, features).
    center, scale
        To the data's own units (features,).
    config
        Learning rate and the like.
    conditional
        Whether the networks are told the wanted class.
    """

    def __init__(
        self,
        generator: nn.Module,
        discriminator: nn.Module,
        projection: Projection,
        objective: Objective,
        log_proba: Callable[[Tensor], Tensor],
        *,
        x: Tensor,
        center: Tensor,
        scale: Tensor,
        config: TrainConfig,
        conditional: bool,
    ) -> None:
        self.generator, self.discriminator = generator, discriminator
        self.projection, self.objective, self.log_proba = projection, objective, log_proba
        self.x, self.center, self.scale = x, center, scale
        self.conditional = conditional
        betas = (config.beta1, config.beta2)
        self.optimisers = {
            "generator": graph_adam(generator, x.device, lr=config.lr, betas=betas),
            "discriminator": graph_adam(discriminator, x.device, lr=config.lr, betas=betas),
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
        target = batch["target"]
        told = target if self.conditional else torch.zeros_like(target)
        self.generator.train()
        self.discriminator.train()
        delta = self.projection(query, self._residual(query, told, real))
        counterfactual = query + delta
        candidate = self._judge(query, counterfactual, delta, target, told)
        total, values = self.objective(candidate)

        def learn_generator() -> Tensor:
            self.optimisers["generator"].zero_grad(set_to_none=True)
            total.backward(inputs=list(self.generator.parameters()))  # type: ignore[no-untyped-call]
            return total.detach()[None]

        def learn_discriminator() -> Tensor:
            self.optimisers["discriminator"].zero_grad(set_to_none=True)
            loss = self._loss_of_discriminator(real, counterfactual.detach(), told)
            loss.backward(inputs=list(self.discriminator.parameters()))  # type: ignore[no-untyped-call]
            return loss.detach()[None]

        # Neither needs what the other learns: steps are taken when both have been told their gradients.
        learners = {"generator": learn_generator}
        if self.objective.needs_discriminator:
            learners["discriminator"] = learn_discriminator
        report = [values, *side_by_side(list(learners.values()), query.device)]
        for name in learners:
            self.optimisers[name].step()
        self._follow()
        if candidate.log_proba is not None:
            said = candidate.log_proba.detach()
            said = said if said.ndim == 2 else said[0]
            report.append((said.argmax(1) == target).float().mean()[None])
        report.append(losses.count_changed(delta.detach(), self.objective.n_mutable).mean()[None])
        return torch.cat(report)

    def _residual(self, query: Tensor, told: Tensor, real: Tensor) -> Tensor:
        """Return the generator's residuals (batch, time, features); ``real`` are series of the wanted classes."""
        residual: Tensor = self.generator(query, told)
        return residual

    def _follow(self) -> None:
        """Do what follows a step of the generator."""

    def _judge(self, query: Tensor, counterfactual: Tensor, delta: Tensor, target: Tensor, told: Tensor) -> Candidate:
        raw = counterfactual * self.scale + self.center
        needs = self.objective
        said, logit = side_by_side(
            [
                lambda: self.log_proba(raw) if needs.needs_classifier else None,
                lambda: self.discriminator(counterfactual, told) if needs.needs_discriminator else None,
            ],
            raw.device,
        )
        return Candidate(
            delta=delta,
            target=target,
            log_proba=said,
            logit=logit,
            query_raw=query * self.scale + self.center,
            counterfactual_raw=raw,
        )

    def _loss_of_discriminator(self, real: Tensor, fake: Tensor, told: Tensor) -> Tensor:
        logits = self.discriminator(torch.cat([real, fake]), torch.cat([told, told]))  # one pass for both
        return self.objective.discriminator(*logits.chunk(2))

    def validate(self) -> Mapping[str, float]:
        """Return nothing: the training values are what is reported."""
        return {}
