"""One training step of our own method: the paper's, with an ensemble instead of one classifier, noise and gates."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from sparcets.methods.own.ensemble import Member
from sparcets.methods.own.generator import Critic, GatedGenerator
from sparcets.training.cuda import run_on_streams
from sparcets.training.loop import Callback
from sparcets.training.losses import LossInputs, Objective
from sparcets.training.networks import spread_over_time
from sparcets.training.projection import Projection
from sparcets.training.steps import GanStep

MIN_LR = 0.05  # final learning rate, as a share of the initial one
SHIFT_DIVISOR = 20  # series are shifted in time by up to 1/20 of their length
ASKED = 2  # other members that a step on a CPU asks
AVERAGED = 0.02  # share of the training over which the generator is averaged


class ExplainerStep(GanStep):
    """Trains a generator whose changes convince the whole ensemble, under noise, for a range of sparsity weights.

    Noise and shifts on the inputs of the ensemble prevent adversarial perturbations. The sparsity weight is drawn anew
    for every query, so that one generator learns the whole trade-off between changed entries and agreement. The result
    is an exponential moving average of the generator. On a GPU the generator computes in bfloat16, since memory traffic
    dominates the time of a step.

    Parameters
    ----------
    generator, critic, projection, objective
        As in :class:`~sparcets.training.steps.GanStep`.
    members
        Of the ensemble, the explained classifier first: series in the data's own units, and their true lengths if they
        are padded, to log-probabilities (heads, batch, classes). On a CPU a step asks the explained classifier and two
        others, in turn; a GPU asks all.
    x, center, scale, lr, betas, lengths
        As in :class:`~sparcets.training.steps.GanStep`.
    noise
        Largest standard deviation of the noise on the inputs of the ensemble, in standard deviations of each series.
    sparsity_weights
        The smallest and the largest factor of the sparsity term.
    ramp
        Share of the training over which the sparsity term is phased in.
    n_steps
        Of the whole training.
    """

    generator: GatedGenerator

    def __init__(
        self,
        generator: GatedGenerator,
        critic: Critic,
        projection: Projection,
        objective: Objective,
        members: Sequence[Member],
        *,
        x: Tensor,
        center: Tensor,
        scale: Tensor,
        lr: float,
        betas: tuple[float, float],
        noise: float,
        sparsity_weights: tuple[float, float],
        ramp: float,
        n_steps: int,
        lengths: Tensor | None = None,
    ) -> None:
        super().__init__(
            generator,
            critic,
            projection,
            objective,
            self._ensemble_log_proba,
            x=x,
            center=center,
            scale=scale,
            lr=lr,
            betas=betas,
            conditional=True,
            lengths=lengths,
        )
        self.members, self.noise, self.ramp_fraction, self.lr = tuple(members), noise, ramp, lr
        self.low, self.high = math.log(sparsity_weights[0]), math.log(sparsity_weights[1])
        self.sparsity_factor = x.new_ones(())
        # A copy scatters the weights of recurrent layers in memory; `to` puts them into one block, as cuDNN needs them.
        self.ema_generator = copy.deepcopy(generator).to(x.device).eval().requires_grad_(False)
        self.networks["average"] = self.ema_generator
        self.ema_weight = 1 / max(1.0, AVERAGED * n_steps)
        self._log_weight = torch.zeros(0)
        self.n_updates = 0  # decides which members are asked next

    def update_schedule(self, share: float) -> None:
        """Set ramp and learning rate by the share of the training that is done."""
        self.sparsity_factor.fill_(min(1.0, share / self.ramp_fraction) if self.ramp_fraction else 1.0)
        lr = self.lr * max(MIN_LR, min(1.0, 2 * (1 - share)))
        for optimiser in self.optimisers.values():
            for group in optimiser.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(lr)  # in place: a captured graph refers to this tensor
                else:
                    group["lr"] = lr

    def _residual(self, query: Tensor, class_condition: Tensor, lengths: Tensor | None) -> Tensor:
        """Return residuals for random sparsity weights."""
        share = torch.rand(len(query), dtype=query.dtype, device=query.device)
        self._log_weight = self.low + (self.high - self.low) * share
        with torch.autocast(query.device.type, torch.bfloat16, enabled=query.device.type == "cuda"):
            residual: Tensor = self.generator(query, class_condition, self._log_weight, lengths)
        return residual

    def _ensemble_log_proba(self, raw: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return log-probabilities (heads, batch, classes)."""
        asked = self._asked(raw.device)
        return torch.cat(run_on_streams([partial(self._member_log_proba, m, raw, lengths) for m in asked], raw.device))

    def _asked(self, device: torch.device) -> Sequence[Member]:
        """Return the members to ask in this step, the explained classifier first."""
        explained, *others = self.members
        if device.type == "cuda" or len(others) <= ASKED:
            return self.members
        first = ASKED * (self.n_updates + 1)
        return [explained, *(others[(first + i) % len(others)] for i in range(ASKED))]

    def _member_log_proba(self, member: Member, raw: Tensor, lengths: Tensor | None) -> Tensor:
        return member(self._augmented(raw, lengths), lengths).float()

    def _augmented(self, raw: Tensor, lengths: Tensor | None) -> Tensor:
        """Return series (batch, time, features) with a random shift in time and noise, drawn anew for each member.

        The size of the noise is uniform between 0 and its largest: some members were trained with noise, some without,
        and judges will see series without it.
        """
        if not self.noise:
            return raw
        B, T, _ = raw.shape
        reach = max(1, T // SHIFT_DIVISOR)
        shift = torch.randint(-reach, reach + 1, (B, 1), device=raw.device)
        steps = (torch.arange(T, device=raw.device) + shift).clamp(0, T - 1)  # the first and last step fill the gap
        if lengths is not None:
            steps = torch.minimum(steps, lengths[:, None] - 1)
        shifted = raw.gather(1, steps[:, :, None].expand_as(raw))
        size = self.noise * torch.rand(B, 1, 1, dtype=torch.float32, device=raw.device)
        # Relative to each series: small signals survive.
        spread = spread_over_time(self.filled(raw.detach(), lengths), lengths)[:, None]
        return shifted + size * spread * torch.randn_like(raw)

    def _loss_inputs(
        self,
        query: Tensor,
        counterfactual: Tensor,
        delta: Tensor,
        target: Tensor,
        class_condition: Tensor,
        lengths: Tensor | None,
    ) -> LossInputs:
        inputs = super()._loss_inputs(query, counterfactual, delta, target, class_condition, lengths)
        return replace(inputs, sparsity_weight=self.sparsity_factor * self._log_weight.exp())

    def _after_step(self) -> None:
        self.n_updates += 1
        self.update_ema()

    @torch.no_grad()
    def update_ema(self) -> None:
        """Update the average of the generator."""
        for average, new in zip(self.ema_generator.parameters(), self.generator.parameters(), strict=True):
            average.lerp_(new, self.ema_weight)


class Schedule(Callback):
    """Sets the learning rate and the factor of the sparsity term, at the start and after every epoch.

    Parameters
    ----------
    step
        What is trained.
    epochs, start
        Number of epochs, and the first to run.
    n_batches
        Updates in an epoch.
    """

    def __init__(self, step: ExplainerStep, epochs: int, start: int, *, n_batches: int) -> None:
        self.step, self.epochs = step, epochs
        step.n_updates = start * n_batches
        step.update_schedule(start / epochs)

    def on_epoch_end(self, epoch: int, logs: object) -> None:
        """Set the progress."""
        self.step.update_schedule((epoch + 1) / self.epochs)
