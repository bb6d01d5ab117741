"""One step of the default recipe: the paper's, with more voices than one, noise, and a generator for every strength."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from sparcets.config.runs import TrainConfig
from sparcets.networks.critic import Critic
from sparcets.networks.gated import GatedGenerator
from sparcets.networks.pooling import spread_over_time
from sparcets.training.callbacks import Callback
from sparcets.training.gan_step import GanStep
from sparcets.training.objective import Candidate, Objective
from sparcets.training.projection import Projection
from sparcets.training.streams import side_by_side

SLOWEST = 0.05  # of the learning rate, at the end
SHIFTED = 20  # voices hear a series up to this part of its length earlier or later
AVERAGED = 0.02  # share of the training over which the generator is averaged


class RecipeStep(GanStep):
    """Trains a generator whose changes convince the classifier *and* witnesses, under noise, for every strength.

    A change that only one network believes in is a trick on that network. Noise on what the voices hear leaves tricks
    no room, either. The strength says how much a changed entry costs, and is drawn anew for every query: one generator
    learns the whole trade-off. What is kept is the average of the generator's last states, which is steadier than any.
    On a GPU the generator computes in bfloat16: its states are what a step spends its time on moving about.

    Parameters
    ----------
    generator, critic, projection, objective
        As in :class:`~sparcets.training.gan_step.GanStep`.
    voices
        The explained classifier, then the witnesses: series in the data's own units to log-probabilities.
    x, center, scale, config
        As in :class:`~sparcets.training.gan_step.GanStep`.
    noise
        Loudest of what is added to the counterfactuals that the voices hear, in standard deviations of each series.
    strengths
        The smallest and the largest factor of the sparsity term.
    ramp
        Share of the training over which the sparsity term comes in.
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
        voices: Sequence[Callable[[Tensor], Tensor]],
        *,
        x: Tensor,
        center: Tensor,
        scale: Tensor,
        config: TrainConfig,
        noise: float,
        strengths: tuple[float, float],
        ramp: float,
        n_steps: int,
    ) -> None:
        super().__init__(
            generator,
            critic,
            projection,
            objective,
            self._hear,
            x=x,
            center=center,
            scale=scale,
            config=config,
            conditional=True,
        )
        self.voices, self.noise, self.ramp_share, self.lr = tuple(voices), noise, ramp, config.lr
        self.low, self.high = math.log(strengths[0]), math.log(strengths[1])
        self.ramp = torch.ones((), device=x.device)
        self.average = copy.deepcopy(generator).eval().requires_grad_(False)
        self.networks["average"] = self.average
        self.weight_of_new = 1 / max(1.0, AVERAGED * n_steps)
        self._strength = torch.zeros(0)
        self._openness: Tensor | None = None

    def set_progress(self, share: float) -> None:
        """Set what depends on how much of the training is done: the sparsity term comes in, the steps get smaller."""
        self.ramp.fill_(min(1.0, share / self.ramp_share) if self.ramp_share else 1.0)
        lr = self.lr * max(SLOWEST, min(1.0, 2 * (1 - share)))
        for optimiser in self.optimisers.values():
            for group in optimiser.param_groups:
                if isinstance(group["lr"], Tensor):
                    group["lr"].fill_(lr)  # in place: a captured graph holds this very number
                else:
                    group["lr"] = lr

    def _residual(self, query: Tensor, told: Tensor, real: Tensor) -> Tensor:
        self._strength = self.low + (self.high - self.low) * torch.rand(len(query), device=query.device)
        with torch.autocast(query.device.type, torch.bfloat16, enabled=query.device.type == "cuda"):
            residual, openness = self.generator.with_openness(query, told, self._strength, real)
        # The way to a real series is given: only gates that shut make it sparser.
        self._openness = openness if self.generator.guided else None
        return residual

    def _hear(self, raw: Tensor) -> Tensor:
        """Return log-probabilities (voices, batch, classes): the classifier's, then the witnesses'."""
        return torch.stack(side_by_side([partial(self._ask, voice, raw) for voice in self.voices], raw.device))

    def _ask(self, voice: Callable[[Tensor], Tensor], raw: Tensor) -> Tensor:
        return voice(self._disturbed(raw)).float()

    def _disturbed(self, raw: Tensor) -> Tensor:
        """Return series (batch, time, features) a little earlier or later, and noisy, for one voice to hear.

        What convinces in one exact place only, or one network under one noise, is a trick; judges know no such tricks.
        The noise goes from none to all of it: some voices learnt with noise, some without, and judges will hear none.
        """
        if not self.noise:
            return raw
        B, T, _ = raw.shape
        reach = max(1, T // SHIFTED)
        by = torch.randint(-reach, reach + 1, (B, 1), device=raw.device)
        steps = (torch.arange(T, device=raw.device) + by).clamp(0, T - 1)  # the first and the last step fill the gap
        moved = raw.gather(1, steps[:, :, None].expand_as(raw))
        loudness = self.noise * torch.rand(B, 1, 1, device=raw.device)
        own = spread_over_time(raw.detach(), None)[:, None]  # what hardly moves is not drowned
        return moved + loudness * own * torch.randn_like(raw)

    def _judge(self, query: Tensor, counterfactual: Tensor, delta: Tensor, target: Tensor, told: Tensor) -> Candidate:
        candidate = super()._judge(query, counterfactual, delta, target, told)
        return replace(candidate, sparsity_weight=self.ramp * self._strength.exp(), openness=self._openness)

    def _follow(self) -> None:
        with torch.no_grad():
            for kept, new in zip(self.average.parameters(), self.generator.parameters(), strict=True):
                kept.lerp_(new, self.weight_of_new)


class Schedule(Callback):
    """Tells a step after every epoch how much of the training is done."""

    def __init__(self, step: RecipeStep, epochs: int, start: int) -> None:
        self.step, self.epochs = step, epochs
        step.set_progress(start / epochs)

    def on_epoch_end(self, epoch: int, logs: object) -> None:
        """Take note."""
        self.step.set_progress((epoch + 1) / self.epochs)
