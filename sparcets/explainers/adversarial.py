"""AdversarialExplainer: what the methods with a generator and a discriminator share."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.config.explainers import AdversarialConfig
from sparcets.errors import TrainingError
from sparcets.explainers.request import Answers, FitJob, Request
from sparcets.explainers.targeted import TargetedExplainer
from sparcets.networks.discriminators import Discriminator
from sparcets.networks.generators import Generator
from sparcets.progress import progress_bar
from sparcets.seeding import spawn
from sparcets.series_info import SeriesInfo
from sparcets.training.callbacks import Callback, EarlyStopping, History, Progress, TensorBoard
from sparcets.training.capture import CapturedStep
from sparcets.training.checkpoint import Checkpoint, forget, is_of
from sparcets.training.device import resolve_device, seeded
from sparcets.training.gan_step import GanStep
from sparcets.training.health import Health, TrainingFailure
from sparcets.training.loop import train
from sparcets.training.objective import LossTerm, Objective
from sparcets.training.pairing import Pairing
from sparcets.training.projection import Projection

A = TypeVar("A", bound=AdversarialConfig)
log = logging.getLogger(__name__)
ENOUGH = 0.5  # share of training queries that reach their target; below it, the user is told


class AdversarialExplainer(TargetedExplainer[A]):
    """Trains a generator once; then an answer is one forward pass.

    Parameters
    ----------
    classifier
        The model to explain; gradients must flow through it.
    config
        Settings of the method.
    terms
        Terms of your own for the generator's objective, by name.

    Attributes
    ----------
    history_
        Every loss term by name, by epoch; also ``generator``, ``discriminator``, ``valid`` and ``changed``.
    silent_features_
        Mutable features that the generator never changes on the training queries.
    """

    head: ClassVar[str]
    needs_gradients = True

    def __init__(
        self, classifier: Classifier, config: A | None = None, *, terms: Mapping[str, LossTerm] | None = None
    ) -> None:
        super().__init__(classifier, config)
        self.terms = dict(terms or {})
        self.silent_features_: tuple[str, ...] = ()
        self._generator: Generator | None = None

    def _fit(self, job: FitJob) -> None:
        # A training that was cut off in its second attempt goes on with that.
        second = job.checkpoint is not None and is_of(job.checkpoint, self._identity(job, 1))
        for attempt in (1,) if second else (0, 1):
            try:
                self._train(job, attempt)
                return
            except TrainingFailure as failure:
                if job.checkpoint is not None:
                    forget(job.checkpoint)
                if attempt:
                    raise TrainingError(
                        f"{failure}; a second start from other weights ended the same way. Try a smaller train.lr, "
                        "a larger weights.classification, a smaller weights.sparsity, or another seed."
                    ) from failure
                log.warning("%s; starting again from other weights", failure)

    def _train(self, job: FitJob, attempt: int) -> None:
        config, device = self.config.train, resolve_device(self.config.device)
        epochs, batch_size = config.epochs, config.batch_size
        assert epochs is not None  # checked with the settings, like the next
        assert batch_size is not None
        seed = spawn(self.config.seed, f"attempt {attempt}")
        step = self._build_step(job, seed, device)
        pairing = Pairing(
            job.y,
            target=self._own_target(job.info),
            batch_size=batch_size,
            balance=config.balance,
            seed=spawn(seed, "pairs"),
            device=device,
        )
        history = History()
        stopping = EarlyStopping("generator", config.patience or epochs + 1)
        callbacks: list[Callback] = [history, Health(), stopping]
        start = 0
        if job.checkpoint is not None:
            checkpoint = self._build_checkpoint(job, job.checkpoint, step, history, attempt)
            start = checkpoint.resume()
            for epoch, value in enumerate(history.values.get("generator", [])):
                stopping.on_epoch_end(epoch, {"generator": value})
            start = epochs if stopping.stop else start
            callbacks += [checkpoint, TensorBoard(job.checkpoint / "tensorboard")]
        self._run(job, step, pairing, callbacks, epochs=epochs, start=start, seed=spawn(seed, "dropout"))
        self._generator = cast("Generator", step.generator.eval())
        self.history_ = history.values
        self._look_at_the_result(job, pairing.queries, self._own_target(job.info))

    def _run(
        self,
        job: FitJob,
        step: GanStep,
        pairing: Pairing,
        callbacks: Sequence[Callback],
        *,
        epochs: int,
        start: int,
        seed: int,
    ) -> None:
        """Take all steps of a training, as one CUDA graph where there is a GPU, under a progress bar."""
        with progress_bar(f"training {self.method}", epochs, show=job.progress) as bar:
            bar.advance(start)
            train(
                CapturedStep(step, step.x.device),
                pairing,
                epochs=epochs,
                seed=seed,
                device=step.x.device,
                callbacks=[*callbacks, Progress(bar)],
                start=start,
                check_every=self.config.train.check_every,
            )

    def _build_step(self, job: FitJob, seed: int, device: torch.device) -> GanStep:
        config, info = self.config, job.info
        conditional = self._own_target(info) is None
        x = torch.tensor(info.scaler.transform(job.X), dtype=torch.float32, device=device)
        with seeded(spawn(seed, "weights"), device):
            mutable = np.flatnonzero(job.constraints.mutable).tolist()
            generator = self._build_generator(info, mutable, low=x.amin((0, 1)), high=x.amax((0, 1)))
            discriminator = Discriminator(
                n_features=info.n_features,
                n_targets=info.n_classes if conditional else 1,
                backbone=config.discriminator.backbone,
                hidden=config.discriminator.hidden,
                layers=config.discriminator.layers,
            )
        objective = Objective(
            config.weights,
            n_mutable=int(job.constraints.mutable.sum()),
            trains_sparsity=config.trains_sparsity,
            extra=self.terms,
        )
        return GanStep(
            generator.to(device),
            discriminator.to(device),
            Projection(job.constraints, info.scaler).to(device),
            objective,
            self._log_proba,
            x=x,
            # In the data's own type: what float64 tells apart, the classifier should see.
            center=torch.tensor(info.scaler.center.astype(job.X.dtype), device=device),
            scale=torch.tensor(info.scaler.scale.astype(job.X.dtype), device=device),
            config=config.train,
            conditional=conditional,
        )

    def _build_checkpoint(self, job: FitJob, folder: Path, step: GanStep, history: History, attempt: int) -> Checkpoint:
        return Checkpoint(
            folder,
            step.networks,
            step.optimisers,
            history,
            identity=self._identity(job, attempt),
            judgement=torch.tensor(self.classifier.predict_proba(job.X[:64])),
        )

    def _log_proba(self, x: Tensor) -> Tensor:
        model = self.classifier
        assert isinstance(model, DifferentiableClassifier)
        return model.log_proba(x.to(model.device)).to(x.device)

    def _build_generator(self, info: SeriesInfo, mutable: list[int], *, low: Tensor, high: Tensor) -> Generator:
        config = self.config
        hidden, layers = config.generator.hidden, config.generator.layers
        assert hidden is not None  # checked with the settings, like the next
        assert layers is not None
        return Generator(
            n_features=info.n_features,
            mutable=mutable,
            n_targets=1 if self._own_target(info) is not None else info.n_classes,
            backbone=config.generator.backbone,
            hidden=hidden,
            layers=layers,
            dropout=config.generator.dropout,
            head=self.head,
            low=low.cpu(),
            high=high.cpu(),
        )

    def _identity(self, job: FitJob, attempt: int) -> str:
        """Name a training by what decides its result; the classifier is compared by its answers."""
        digest = hashlib.sha256()
        terms = {name: term.weight for name, term in self.terms.items()}
        described = {"config": self.config.to_dict(), "terms": terms, "attempt": attempt}
        digest.update(json.dumps([self.method, described, job.standing], sort_keys=True).encode())
        for array in (job.X, job.y, job.constraints.mutable):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _look_at_the_result(self, job: FitJob, queries: IntArray, target: int | None) -> None:
        """Notice a generator that reaches little, and features that no training query can move (both ReLUs silent)."""
        rows = queries[:1024]
        K = job.info.n_classes
        # Every other class in turn: a feature may matter for some targets alone.
        shift = 1 + np.arange(len(rows)) % (K - 1)
        wanted = np.full(len(rows), target) if target is not None else (job.y[rows] + shift) % K
        admitted = job.constraints.enforce(job.X[rows], self._propose(job.X[rows], wanted, job.info))
        moved = (admitted != job.X[rows]).any((0, 1))  # (features,)
        if not moved.any():
            raise TrainingFailure("the generator is dead: it changes nothing at all")
        silent = job.constraints.mutable & ~moved
        self.silent_features_ = tuple(np.array(job.info.feature_names)[silent].tolist())
        if self.silent_features_:
            log.info("never changed by the generator: %s", ", ".join(self.silent_features_))
        reached = float((self.classifier.predict(admitted) == wanted).mean())
        if reached < ENOUGH:
            log.warning(
                "after the training, %.0f %% of the training queries reach their target. Train longer (train.epochs), "
                "raise weights.classification, lower weights.sparsity, or take another seed; Ics and Nearest need "
                "no training",
                100 * reached,
            )

    def _residuals(self, X: FloatArray, target: IntArray, info: SeriesInfo) -> FloatArray:
        """Return the generator's residuals (batch, time, features), standardised."""
        assert self._generator is not None
        generator = self._generator
        device = next(generator.parameters()).device
        single = self._own_target(info) is not None
        told = torch.tensor(np.zeros_like(target) if single else target, device=device)
        parts = []
        with torch.inference_mode():
            x = info.scaler.transform(X).astype(np.float32, copy=False)
            for start in range(0, len(x), self.config.batch_size):
                rows = slice(start, start + self.config.batch_size)
                parts.append(generator(torch.tensor(x[rows], device=device), told[rows]).cpu().numpy())
        return np.concatenate(parts)

    def _propose(self, X: FloatArray, target: IntArray, info: SeriesInfo) -> FloatArray:
        """Return the generator's counterfactuals (batch, time, features), in the data's own units."""
        delta = self._residuals(X, target, info)
        return info.scaler.move(X, delta)

    def _explain(self, request: Request) -> Answers:
        admitted = request.admit(self._propose(request.X, request.target, request.info))
        return Answers.one_each(request, admitted, "generated")

    def summary(self) -> str:
        """Say in a few lines what was trained, and how it went."""
        text = super().summary()
        if self.info_ is None:
            return text
        target = self._own_target(self.info_)
        towards = "every class" if target is None else self.info_.class_names[target]
        last = ", ".join(f"{name} {values[-1]:.3g}" for name, values in self.history_.items() if values)
        epochs = len(self.history_.get("generator", []))
        lines = [text, f"Trained towards {towards} for {epochs} epochs; in the last one: {last}."]
        if self.silent_features_:
            lines.append(f"Never changed by the generator: {', '.join(self.silent_features_)}.")
        return "\n".join(lines)

    def _state(self) -> dict[str, Any]:
        assert self._generator is not None
        weights = self._generator.state_dict()
        silent = [name in self.silent_features_ for name in self._fitted().feature_names]
        return {
            "silent": np.array(silent),
            **{name: t.detach().cpu().contiguous().numpy() for name, t in weights.items()},
        }

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        nothing = torch.zeros(info.n_features)  # the range of the data comes with the state
        silent = state.pop("silent")
        generator = self._build_generator(info, state["mutable"].tolist(), low=nothing, high=nothing)
        generator.load_state_dict({name: torch.tensor(array) for name, array in state.items()})
        self._generator = generator.to(resolve_device(self.config.device)).eval()
        self.silent_features_ = tuple(np.array(info.feature_names)[silent].tolist())
