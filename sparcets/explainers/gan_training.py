"""Training of a generator against a discriminator: checkpoints, restarts, progress; for all methods that have one."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from sparcets.classifiers.base import Classifier
from sparcets.config.explainers import MethodConfig
from sparcets.errors import TrainingError
from sparcets.explainers.request import FitJob
from sparcets.progress import progress_bar
from sparcets.training.callbacks import Callback, History, Progress, TrainingFailure
from sparcets.training.checkpoint import Checkpoint, delete_checkpoints, has_identity
from sparcets.training.cuda import CapturedStep
from sparcets.training.gan_step import GanStep
from sparcets.training.loop import train
from sparcets.training.losses import LossTerm
from sparcets.training.pairing import Pairing
from sparcets.training.threads import threads_for

log = logging.getLogger(__name__)
REFERENCE = 64  # training series by whose predictions the classifier of a checkpoint is recognised
FEW_VALID = 0.5  # share of queries that reach their target after the training; below it, a warning is logged


@dataclass(frozen=True, kw_only=True, eq=False)
class GanTraining:
    """A training that is ready to run.

    Attributes
    ----------
    step, pairing
        What is done with a batch, and the batches of each epoch.
    epochs, start
        Number of epochs, and the first to run.
    seed
        Of dropout and noise.
    callbacks
        Called after every epoch and at every check.
    check_every
        Steps between checks.
    """

    step: GanStep
    pairing: Pairing
    epochs: int
    start: int
    seed: int
    callbacks: Sequence[Callback]
    check_every: int

    def run(self, title: str, progress: bool | None) -> None:
        """Run all steps, as one CUDA graph each if on a GPU, with a progress bar."""
        device = self.step.x.device
        n_entries = self.pairing.batch_size * self.step.x[0].numel()
        with threads_for(n_entries), progress_bar(title, self.epochs, show=progress) as bar:
            bar.advance(self.start)
            train(
                # Series of different lengths are packed or cut on the host, which a graph cannot do.
                CapturedStep(self.step, device) if self.step.lengths is None else self.step,
                self.pairing,
                epochs=self.epochs,
                seed=self.seed,
                device=device,
                callbacks=[*self.callbacks, Progress(bar)],
                start=self.start,
                check_every=self.check_every,
            )


def fit_with_restart(
    job: FitJob, train_once: Callable[[int], None], identity: Callable[[int], str], *, restarts: int = 1
) -> None:
    """Train; if the training fails, begin again from other weights.

    Parameters
    ----------
    job
        The fit.
    train_once
        Trains; given the number of the attempt, from 0 on. Raises :class:`TrainingFailure` if it failed.
    identity
        Identity of the training of an attempt, by which its checkpoint is recognised.
    restarts
        Further attempts after the first.
    """
    attempts = range(restarts + 1)
    # A training that was interrupted in a later attempt is resumed there.
    checkpoint = job.checkpoint
    begun = [a for a in attempts[1:] if checkpoint is not None and has_identity(checkpoint, identity(a))]
    for attempt in attempts[begun[0] if begun else 0 :]:
        try:
            train_once(attempt)
            return
        except TrainingFailure as failure:
            if job.checkpoint is not None:
                delete_checkpoints(job.checkpoint)
            if attempt == restarts:
                again = "; a second start from other weights ended the same way" if restarts else ""
                raise TrainingError(
                    f"{failure}{again}. Try a smaller train.lr, a larger weights.classification, a smaller "
                    "weights.sparsity, or another seed."
                ) from failure
            log.warning("%s; starting again from other weights", failure)


def training_identity(
    method: str, config: MethodConfig, domain_losses: Mapping[str, LossTerm], job: FitJob, attempt: int
) -> str:
    """Return a digest of all that determines the result of a training, except the classifier."""
    digest = hashlib.sha256()
    weights = {name: term.weight for name, term in domain_losses.items()}
    values = {"config": config.deciding_values(), "domain_losses": weights, "attempt": attempt}
    digest.update(json.dumps([method, values, job.constraints_given], sort_keys=True).encode())
    further = [array for array in (job.lengths, job.numbers) if array is not None]
    for array in (job.X, job.y, job.constraints.mutable, *further):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def build_checkpoint(
    folder: Path, step: GanStep, history: History, *, identity: str, job: FitJob, classifier: Classifier
) -> Checkpoint:
    """Return the checkpoint of a training; the classifier is recognised by its predictions."""
    return Checkpoint(
        folder,
        step.networks,
        step.optimisers,
        history,
        identity=identity,
        reference_proba=torch.tensor(classifier.proba_unchecked(*job.first(REFERENCE))),
    )
