"""Proposals: further starts of the search, by a generator that is trained where there are many training series.

The training is the paper's, with an ensemble instead of one classifier and a range of sparsity weights.
"""

from __future__ import annotations

import copy
import math
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from sparcets.core.seeding import spawn
from sparcets.core.series import IntArray
from sparcets.core.settings import ExplainerConfig
from sparcets.methods.adversarial import fit_with_restart, train_step, training_identity
from sparcets.methods.own.ensemble import Ensemble
from sparcets.methods.own.generator import Critic, GatedGenerator, drop_negligible
from sparcets.methods.request import FitJob
from sparcets.training import losses
from sparcets.training.cuda import graph_adam
from sparcets.training.device import seeded, single_precision
from sparcets.training.loop import Batch, Callback, DivergenceCheck, History, Pairing
from sparcets.training.networks import spread_over_time
from sparcets.training.projection import Projection

STEPS, MAX_STEPS = 500, 1100  # of the training: the first, and one more for every fourth series
BATCH_SIZE = 32  # queries of a step
LR, BETAS = 1.5e-3, (0.5, 0.999)  # of Adam; the usual choice for GANs
MIN_LR = 0.05  # final learning rate, as a share of the initial one
WEIGHTS = {"adversarial": 2.5, "classification": 9.0, "similarity": 0.3, "sparsity": 8.0, "smoothness": 20.0}
EXPLAINED_WEIGHT = 0.25  # of the explained classifier in the classification term; the others share the rest
LOG_WEIGHTS = (math.log(0.3), math.log(10.0))  # of the smallest and the largest factor of the sparsity term
RAMP = 0.33  # share of the training over which the sparsity term is phased in
NOISE = 0.5  # largest standard deviation on the inputs of the ensemble, in standard deviations of each series
SHIFT_DIVISOR = 20  # series are shifted in time by up to 1/20 of their length
ASKED = 2  # other members that a step on a CPU asks
AVERAGED = 0.02  # share of the training over which the generator is averaged
CHECK_EVERY = 100  # steps between checks for divergence
SEED = "free"  # name in the seeds; an older word, kept so that the same seed gives the same result


@torch.no_grad()
def propose(generator: GatedGenerator, x: Tensor, target: int) -> Tensor:
    """Return residuals (3, time, features) for one query (time, features): with many changes, fewer, and few.

    They are computed for this query alone, so that they do not depend on its company: the last bits depend on the size
    of a batch, and whether a gate is exactly shut on the last bits.
    """
    low, high = LOG_WEIGHTS
    log_weights = x.new_tensor([low, (low + high) / 2, high])
    classes = torch.full((len(log_weights),), target, device=x.device)
    return drop_negligible(generator(x.expand(len(log_weights), -1, -1), classes, log_weights))


class ProposalStep(Callback):
    """Trains a generator whose changes convince the whole ensemble, under noise, for a range of sparsity weights.

    Noise and shifts on the inputs of the ensemble prevent adversarial perturbations. The sparsity weight is drawn anew
    for every query, so that one generator learns the whole trade-off between changed entries and agreement. The result
    is an exponential moving average of the generator. After ``epoch_steps`` it is called back.
    """

    names = (*WEIGHTS, "generator", "discriminator", "valid", "changed")

    def __init__(self, job: FitJob, rows: IntArray, ensemble: Ensemble, *, epoch_steps: int, seed: int) -> None:
        constraints, device = job.constraints, ensemble.device
        n_features, n_targets = job.info.n_features, job.info.n_classes
        mutable = np.flatnonzero(constraints.editable.any(0)).tolist()
        with seeded(seed, device), single_precision():
            self.generator = GatedGenerator(n_features=n_features, mutable=mutable, n_targets=n_targets).to(device)
            self.critic = Critic(n_features=n_features, n_targets=n_targets).to(device)
        self.average = copy.deepcopy(self.generator).eval().requires_grad_(False)
        trained = {"generator": self.generator, "discriminator": self.critic}
        self.networks = {**trained, "average": self.average}
        self.optimisers = {name: graph_adam(net, device, lr=LR, betas=BETAS) for name, net in trained.items()}
        self.ensemble, self.members = ensemble, ensemble.members()
        self.projection = Projection(constraints, job.info.scaler, gaps=ensemble.gaps).to(device)
        self.n_mutable = int(constraints.mutable.sum())
        self.x = torch.tensor(job.standardised(rows), dtype=torch.float32, device=device)
        self.epochs, self.epoch_steps = -(-min(MAX_STEPS, STEPS + len(rows) // 4) // epoch_steps), epoch_steps
        self.ramp = self.x.new_ones(())
        self.begin(0)

    def begin(self, epoch: int) -> None:
        """Set learning rate and ramp as they are from the start of an epoch on."""
        share = epoch / self.epochs
        self.n_updates = epoch * self.epoch_steps  # decides which members are asked next
        self.ramp.fill_(min(1.0, share / RAMP))
        lr = LR * max(MIN_LR, min(1.0, 2 * (1 - share)))
        for group in (group for optimiser in self.optimisers.values() for group in optimiser.param_groups):
            rate = group["lr"]  # changed in place on a GPU, where a captured graph refers to this tensor
            group["lr"] = rate.fill_(lr) if isinstance(rate, Tensor) else lr

    def on_epoch_end(self, epoch: int, logs: object) -> None:
        """Set learning rate and ramp."""
        self.begin(epoch + 1)

    def update(self, batch: Batch) -> Tensor:
        """Train generator and critic on one batch; return the values of ``names``, detached (names,)."""
        query, target, low, high = self.x[batch["query"]], batch["target"], *LOG_WEIGHTS
        self.generator.train()
        self.critic.train()
        log_weight = low + (high - low) * torch.rand(len(query), dtype=query.dtype, device=query.device)
        delta = self.projection(query, self.generator(self.ensemble.filled(query), target, log_weight))
        made = query + delta
        log_proba = self._log_proba(self.ensemble.to_raw(made))
        explained, *others = [losses.classification(head, target) for head in log_proba]
        terms = {
            "adversarial": -self.critic(self.ensemble.filled(made), target),
            "classification": torch.lerp(torch.stack(others or [explained]).mean(0), explained, EXPLAINED_WEIGHT),
            "similarity": losses.similarity(delta),
            "sparsity": losses.sparsity(delta, self.n_mutable),
            "smoothness": losses.smoothness(delta),
        }
        costs = {**terms, "sparsity": terms["sparsity"] * self.ramp * log_weight.exp()}
        total = torch.stack([weight * costs[name].mean() for name, weight in WEIGHTS.items()]).sum()
        self._descend("generator", total)
        both = self.ensemble.filled(torch.cat([self.x[batch["real"]], made.detach()]))
        real, fake = self.critic(both, torch.cat([target, target])).chunk(2)
        hinge = (F.relu(1 - real) + F.relu(1 + fake)).mean()
        self._descend("discriminator", hinge)
        with torch.no_grad():
            for average, new in zip(self.average.parameters(), self.generator.parameters(), strict=True):
                average.lerp_(new, 1 / max(1.0, AVERAGED * self.epochs * self.epoch_steps))
        self.n_updates += 1
        changed = losses.count_changed(delta, self.n_mutable).mean()
        valid = (log_proba[0].argmax(1) == target).float().mean()
        return torch.stack([*(terms[name].mean() for name in WEIGHTS), total, hinge, valid, changed]).detach()

    def _descend(self, name: str, loss: Tensor) -> None:
        self.optimisers[name].zero_grad(set_to_none=True)
        loss.backward(inputs=list(self.networks[name].parameters()))  # type: ignore[no-untyped-call]
        self.optimisers[name].step()

    def _log_proba(self, raw: Tensor) -> Tensor:
        """Return log-probabilities (heads, batch, classes) by the explained classifier, which comes first, and others.

        A CPU asks two others, in turn; a GPU asks all.
        """
        explained, *others = self.members
        if raw.device.type != "cuda" and len(others) > ASKED:
            first = ASKED * (self.n_updates + 1)
            others = [others[(first + i) % len(others)] for i in range(ASKED)]
        return torch.cat([member(self._augmented(raw)).float() for member in (explained, *others)])

    def _augmented(self, raw: Tensor) -> Tensor:
        """Return series (batch, time, features) with a random shift in time and noise, drawn anew for each member.

        The size of the noise is uniform between 0 and its largest: some members were trained with noise, some without,
        and the selector will see series without it.
        """
        B, T, _ = raw.shape
        reach = max(1, T // SHIFT_DIVISOR)
        shift = torch.randint(-reach, reach + 1, (B, 1), device=raw.device)
        steps = (torch.arange(T, device=raw.device) + shift).clamp(0, T - 1)  # the first and last step fill the gap
        shifted = raw.gather(1, steps[:, :, None].expand_as(raw))
        size = NOISE * torch.rand(B, 1, 1, dtype=torch.float32, device=raw.device)
        spread = spread_over_time(self.ensemble.filled(raw.detach()), None)[:, None]  # small signals survive
        return shifted + size * spread * torch.randn_like(raw)


def train_generator(
    job: FitJob, rows: IntArray, ensemble: Ensemble, config: ExplainerConfig
) -> tuple[GatedGenerator, dict[str, list[float]]]:
    """Train a generator whose changes convince an ensemble; return it with the loss terms by epoch."""
    made: list[tuple[GatedGenerator, dict[str, list[float]]]] = []
    identity = partial(training_identity, "proposals", config, {}, job)

    def train_once(attempt: int) -> None:
        seed = spawn(spawn(config.seed, f"attempt {attempt}"), SEED)
        pairing = Pairing(  # batches of queries, target classes, and real series of those classes
            job.y[rows],
            target=job.target,
            batch_size=BATCH_SIZE,
            balance=False,
            seed=spawn(seed, "pairs"),
            device=ensemble.device,
        )
        step = ProposalStep(job, rows, ensemble, epoch_steps=len(pairing), seed=spawn(seed, "weights"))
        history = History()
        train_step(
            step,
            pairing,
            job,
            epochs=step.epochs,
            seed=spawn(seed, "noise"),
            title="training the generator of proposals",
            history=history,
            callbacks=[DivergenceCheck(), step],
            check_every=CHECK_EVERY,
            identity=partial(identity, attempt),
            classifier=ensemble.explained,
        )
        made.append((step.average, history.values))

    fit_with_restart(job, train_once, identity, advice='Try another seed, or proposals="search".')
    return made[-1]
